"""A first image of y, to start from.

"smooth"   x̂ = argmin_x ‖A(x) − y‖² + w ‖∇x‖², clipped to the range, by Adam on the pixels, for
any differentiable operator; a blind one stays at its start
"pnp"      the plug-and-play image (:mod:`.baselines.pnp`) by the prior's own denoiser; a blind
operator starts from the unknowns found with it
"best"     of the plug-and-play image and the mean of a few posterior samples
(:mod:`.baselines.dps`) the one with the least ‖A(x) − y‖²/(2σ²) + E(x), E being :mod:`.energy`.
Plug-and-play with an unknown kernel at times ends with a doubled image and half the kernel, which
explains y and is no image of the prior's: E tells.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.restoration.baselines.dps import dps
from setpoint.restoration.baselines.pnp import pnp
from setpoint.restoration.energy import prior_energy
from setpoint.restoration.priors.protocol import column
from setpoint.restoration.search import variance
from setpoint.restoration.task import Outcome, Task
from setpoint.restoration.watch import Watch

#: w over the variance of the noise.
SMOOTH = 2.5
#: Samples and steps of "best".
SAMPLES, STEPS = 4, 250


def first_image(task: Task, start: str | Tensor) -> tuple[Tensor, Tensor | None]:
    """x̂ (B, *shape), and the unknowns that belong to it.

    Parameters
    ----------
    task : Task
        What is restored.
    start : "auto", "pnp", "best", "smooth" or torch.Tensor
        How x̂ is made, or x̂ itself. "auto" is "pnp" where the prior has a denoiser, and "best"
        where the operator is blind as well.
    """
    unknowns = task.forward.start(len(task.y), task.y.real)
    if isinstance(start, Tensor):
        want = (len(task.y), *task.prior.shape)
        if tuple(start.shape) != want:
            raise DataError(f"warm_from has shape {tuple(start.shape)} and {want} is needed")
        return start.detach().to(task.y.real), unknowns
    denoises = hasattr(task.prior, "denoise")
    if start == "auto":
        start = ("best" if task.forward.per_image else "pnp") if denoises else "smooth"
    if start == "smooth":
        return rough(task), unknowns
    if start not in ("pnp", "best"):
        raise DataError(
            f"warm_from={start!r} is not known: say 'pnp', 'best', 'smooth' or give images"
        )
    if not denoises:
        raise KindError(
            f"warm_from={start!r} needs a denoiser, and {type(task.prior).__name__} has no "
            "denoise(x, sigma): say warm_from='smooth'"
        )
    quiet = replace(task, watch=Watch())
    found = pnp(quiet)
    if start == "pnp":
        return found.image.detach(), found.unknowns
    other = dps(quiet, samples=SAMPLES, iterations=STEPS)
    better = _cost(task, other) < _cost(task, found)
    image = torch.where(column(better, found.image), other.image, found.image)
    if found.unknowns is not None and other.unknowns is not None:
        unknowns = torch.where(column(better, found.unknowns), other.unknowns, found.unknowns)
    return image.detach(), unknowns


def _cost(task: Task, found: Outcome) -> Tensor:
    """−log of the posterior, up to a constant, (B,)."""
    residual = task.forward.residual(found.image, task.y, found.unknowns)
    fit = task.forward.count * residual / (2 * variance(task)[0])
    return fit + prior_energy(found.image, task.prior)


def rough(task: Task, iterations: int = 150, rate: float = 0.05) -> Tensor:
    """The smooth x̂ of each image, (B, *shape)."""
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
