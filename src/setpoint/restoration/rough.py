"""A rough image of y: smooth, and explaining y.

    x̂ = argmin_x ‖A(x) − y‖² + w ‖∇x‖²,   clipped to the range,

by Adam on the pixels, for any differentiable operator; a blind one stays at its start.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint.restoration.search import variance
from setpoint.restoration.task import Task

#: w over the variance of the noise.
SMOOTH = 2.5


def rough(task: Task, iterations: int = 150, rate: float = 0.05) -> Tensor:
    """x̂ of each image, (B, *shape)."""
    low, high = task.prior.range
    width = high - low if math.isfinite(high - low) else 1.0
    middle = (low + high) / 2 if math.isfinite(high - low) else 0.0
    y = task.y.real
    x = y.new_full((len(y), *task.prior.shape), middle).requires_grad_(True)
    unknowns = task.forward.start(len(y), y)
    weight = SMOOTH * variance(task)[0]
    adam = torch.optim.Adam([x], lr=rate * width)
    for step in range(iterations):
        adam.param_groups[0]["lr"] = rate * width * (1 - step / iterations)
        loss = task.forward.residual(x, task.y, unknowns) * task.forward.count
        loss = loss + weight * _steps(x)
        (x.grad,) = torch.autograd.grad(loss.sum(), x)
        adam.step()
    x = x.detach()
    return x.clamp(low, high) if math.isfinite(high - low) else x


def _steps(x: Tensor) -> Tensor:
    """Squared differences of neighbouring pixels, (B,)."""
    down = (x[..., 1:, :] - x[..., :-1, :]).square().flatten(1).sum(1)
    return down + (x[..., 1:] - x[..., :-1]).square().flatten(1).sum(1)
