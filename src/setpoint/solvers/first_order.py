"""First order: stochastic gradient steps with a learning rate that warms up and decays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from setpoint._core.errors import KindError
from setpoint._core.options import choice, number

OPTIMISERS = ("adamw", "adam", "sgd")


@dataclass(frozen=True)
class FirstOrder:
    """AdamW, Adam or SGD, a learning rate that follows a half cosine, and clipped gradients.

    rate(s) = learning_rate · min(1, (s + 1)/w) · (f + (1 − f) ½ (1 + cos(π s/S)))

    with w = warmup steps, S = all steps, f = the share that is left at the end.

    Parameters
    ----------
    learning_rate : float
    optimiser : {"adamw", "adam", "sgd"}
    weight_decay : float
    momentum : float
        Of sgd.
    clip : float
        Largest norm of a gradient; longer ones are shortened to it. inf clips none.
    warmup : int
        Steps in which the rate rises.
    final : float
        f; 1 keeps the rate constant.
    """

    learning_rate: float = 3e-3
    optimiser: str = "adamw"
    weight_decay: float = 1e-4
    momentum: float = 0.9
    clip: float = 10.0
    warmup: int = 0
    final: float = 1.0

    def __post_init__(self) -> None:
        choice("optimiser", self.optimiser, OPTIMISERS)
        number("learning_rate", self.learning_rate, 0, open_low=True, error=KindError)
        if self.clip != math.inf:  # which clips nothing
            number("clip", self.clip, 0, open_low=True, error=KindError)
        for name in ("weight_decay", "momentum", "warmup", "final"):
            number(name, getattr(self, name), 0, error=KindError)

    def start(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser over some parameters."""
        trainable = [p for p in parameters if p.requires_grad]
        if self.optimiser == "sgd":
            return torch.optim.SGD(
                trainable, self.learning_rate, self.momentum, weight_decay=self.weight_decay
            )
        kind = torch.optim.AdamW if self.optimiser == "adamw" else torch.optim.Adam
        return kind(trainable, self.learning_rate, weight_decay=self.weight_decay)

    def rate(self, step: int, steps: int) -> float:
        """The learning rate at a step, counted from 0, of so many."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        fall = 0.5 * (1 + math.cos(math.pi * min(step / max(steps, 1), 1.0)))
        return self.learning_rate * rise * (self.final + (1 - self.final) * fall)

    def step(self, optimiser: torch.optim.Optimizer, step: int, steps: int) -> None:
        """Move by the gradients that are there, and forget them.

        A group of parameters with a ``scale`` moves at that multiple of the rate.
        """
        for group in optimiser.param_groups:
            group["lr"] = self.rate(step, steps) * group.get("scale", 1.0)
        if math.isfinite(self.clip):
            parameters = [p for group in optimiser.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self.clip)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
