"""A rough image of y, to start from.

"smooth"   x̂ = argmin_x ‖A(x) − y‖² + w ‖∇x‖², clipped to the range, by Adam on the pixels, for
any differentiable operator; a blind one stays at its start
"pnp"      the plug-and-play image (:mod:`.baselines.pnp`) by the prior's own denoiser; a blind
operator starts from the unknowns found with it
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.restoration.baselines.pnp import pnp
from setpoint.restoration.search import variance
from setpoint.restoration.task import Task
from setpoint.restoration.watch import Watch

#: w over the variance of the noise.
SMOOTH = 2.5


def warm(task: Task, start: str | Tensor) -> tuple[Tensor, Tensor | None]:
    """x̂ (B, *shape), and the unknowns that belong to it.

    Parameters
    ----------
    task : Task
        What is restored.
    start : "pnp", "smooth", "auto" or torch.Tensor
        How x̂ is made, or x̂ itself. "auto" is "pnp" where the prior has a denoiser.
    """
    if isinstance(start, Tensor):
        want = (len(task.y), *task.prior.shape)
        if tuple(start.shape) != want:
            raise DataError(f"warm_from has shape {tuple(start.shape)} and {want} is needed")
        return start.detach().to(task.y.real), task.forward.start(len(task.y), task.y.real)
    denoises = hasattr(task.prior, "denoise")
    if start == "auto":
        start = "pnp" if denoises else "smooth"
    if start == "smooth":
        return rough(task), task.forward.start(len(task.y), task.y.real)
    if start != "pnp":
        raise DataError(f"warm_from={start!r} is not known: say 'pnp', 'smooth' or give images")
    if not denoises:
        raise KindError(
            f"warm_from='pnp' needs a denoiser, and {type(task.prior).__name__} has no "
            "denoise(x, sigma): say warm_from='smooth'"
        )
    found = pnp(replace(task, watch=Watch()))
    return found.image.detach(), found.unknowns


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
