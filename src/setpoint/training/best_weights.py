"""The best weights so far, by the rank of a verdict: a copy that later steps do not change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from setpoint.training.checkpoint import copied


@dataclass(frozen=True)
class EpochVerdict:
    """What a judge says of a model: ``rank`` sorts (greater is better), ``shown`` is for people."""

    rank: tuple[float, ...]
    shown: dict[str, Any] = field(default_factory=dict)


class BestWeights:
    """The weights of the best verdict; of equal ones the first, without verdicts the last.

    Parameters
    ----------
    device : torch.device or str, optional
        Where they are kept; that of the model by default.

    Attributes
    ----------
    state : dict or None
        "model", "epoch", "rank" and "shown" of the best; None before the first offer.
    """

    def __init__(self, device: torch.device | str | None = None) -> None:
        self.device = device
        self.state: dict[str, Any] | None = None

    @property
    def epoch(self) -> int:
        """When the best weights were offered; -1 before the first offer."""
        return -1 if self.state is None else int(self.state["epoch"])

    @property
    def verdict(self) -> EpochVerdict | None:
        """What was said of the best weights, where anything was."""
        if self.state is None or self.state["rank"] is None:
            return None
        return EpochVerdict(tuple(self.state["rank"]), dict(self.state["shown"]))

    def offer(self, model: nn.Module, epoch: int, verdict: EpochVerdict | None) -> bool:
        """Keep the weights if they are better; whether they were."""
        best = self.verdict
        if verdict is not None and best is not None and not verdict.rank > best.rank:
            return False
        self.state = {
            "model": copied(model.state_dict(), self.device),
            "epoch": epoch,
            "rank": None if verdict is None else list(verdict.rank),
            "shown": {} if verdict is None else verdict.shown,
        }
        return True

    def restore(self, model: nn.Module) -> None:
        """Load the best weights into the model, where there are any."""
        if self.state is not None:
            model.load_state_dict(self.state["model"])
