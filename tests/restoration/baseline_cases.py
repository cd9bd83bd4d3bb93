"""Small tasks for the baselines: a phantom of flat parts, and a task of any operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.measurement.restoration_task import RestorationTask


@dataclass(frozen=True)
class Shape:
    """A prior of which a shape and a range are known, and nothing else."""

    shape: tuple[int, ...]
    range: tuple[float, float] = (0.0, 1.0)
    seed_shape: tuple[int, ...] = (1,)

    def __call__(self, z: Tensor) -> Tensor:
        """Not for use."""
        raise AssertionError("a baseline that needs no prior called it")


def task_of(
    y: Tensor,
    operator: Callable[..., Tensor],
    prior: Any,
    *,
    sigma: float | None = 0.02,
    seed: int = 0,
) -> RestorationTask:
    """A task as a method is given it."""
    noise = None if sigma is None else Gaussian(sigma)
    return RestorationTask(y, Forward(operator, y), prior, noise, seed, IterateHistory())


def phantom(side: int = 16, channels: int = 1, batch: int = 2) -> Tensor:
    """A bright rectangle, another in each image and channel, on a darker ground."""
    x = torch.full((batch, channels, side, side), 0.2, dtype=torch.float64)
    for row in range(batch):
        for channel in range(channels):
            x[row, channel, 3 + row : side - 4, 4 + channel : side - 5 - row] = 0.9
    return x


def noisy(y: Tensor, sigma: float, seed: int = 0) -> Tensor:
    """With Gaussian noise."""
    draw = torch.Generator().manual_seed(seed)
    return y + sigma * torch.randn(y.shape, dtype=y.dtype, generator=draw)


def error(x: Tensor, truth: Tensor) -> float:
    """Root mean squared error."""
    return float((x - truth).square().mean().sqrt())
