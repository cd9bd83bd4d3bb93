"""A first image of y, to start from.

"smooth"   x̂ = argmin_x ‖A(x) − y‖² + w ‖∇x‖², clipped to the range, by Adam on the pixels, for
any differentiable operator; a blind one stays at its start
"pnp"      the plug-and-play image (:mod:`.baselines.pnp`) by the prior's own denoiser; a blind
operator starts from the unknowns found with it
"norm", "level"   the mean of a few posterior samples by this rule of :mod:`.baselines.dps`, and
the unknowns found with them. Plug-and-play with an unknown kernel at times ends with a doubled
image and half the kernel, which explains y, or with a sharp kernel and an image that fits the
noise; a kernel that serves several samples does neither
"best"     of these two the one with the lower cost ‖A(x) − y‖²/(2σ²) + E(x), E of :mod:`.energy`,
for each image. The first term of the truth itself deviates by √(m/2): "level" is taken where its
cost is lower by more than that
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.restoration.baselines.dps import RULES, dps
from setpoint.restoration.baselines.plug_and_play import pnp
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.methods.regularisers import prior_energy
from setpoint.restoration.methods.seed_search import variance
from setpoint.restoration.priors.prior import column

#: w over the variance of the noise.
SMOOTH = 2.5
#: Samples and steps of "norm" and "level".
SAMPLES, STEPS = 8, 250
#: Ways to make x̂.
STARTS = ("pnp", *RULES, "best", "smooth")


def warm_image(task: RestorationTask, start: str | Tensor) -> tuple[Tensor, Tensor | None]:
    """x̂ (B, *shape), and the unknowns that belong to it.

    Parameters
    ----------
    task : RestorationTask
        What is restored.
    start : "auto", "pnp", "norm", "level", "best", "smooth" or torch.Tensor
        How x̂ is made, or x̂ itself. "auto" is "pnp" where the prior has a denoiser, and "best"
        where the operator is blind as well.
    """
    unknowns = task.forward.start(len(task.y), task.y.real)
    if isinstance(start, Tensor):
        want = (len(task.y), *task.prior.shape)
        if tuple(start.shape) != want:
            raise DataError(f"warm_from has shape {tuple(start.shape)} and {want} is needed")
        return start.detach().to(task.y.real), unknowns
    start = named(task, start)
    if start == "smooth":
        return rough(task), unknowns
    if start not in STARTS:
        names = ", ".join(map(repr, STARTS))
        raise DataError(f"warm_from={start!r} is not known: say {names} or give images")
    if not hasattr(task.prior, "denoise"):
        raise KindError(
            f"warm_from={start!r} needs a denoiser, and {type(task.prior).__name__} has no "
            "denoise(x, sigma): say warm_from='smooth'"
        )
    if start == "best" and task.forward.blind and not task.forward.per_image:
        raise DataError(
            "warm_from='best' chooses for each image, and the operator has parameters that the "
            "whole batch shares: say warm_from='pnp'"
        )
    # steps of the start are told as they are made; the history is the search's own
    apart = replace(task, watch=IterateHistory(callback=task.watch.callback))
    if start == "pnp":
        outcome = pnp(apart)
    else:
        asked = RULES if start == "best" else (start,)
        means = [dps(apart, samples=SAMPLES, iterations=STEPS, rule=rule) for rule in asked]
        outcome = _better(task, *means) if start == "best" else means[0]
    return outcome.image.detach(), outcome.unknowns


def named(task: RestorationTask, start: str) -> str:
    """What "auto" stands for; any other start is what it says."""
    if start != "auto":
        return start
    if not hasattr(task.prior, "denoise"):
        return "smooth"
    return "best" if task.forward.per_image else "pnp"


def _better(
    task: RestorationTask, usual: RestorationOutcome, other: RestorationOutcome
) -> RestorationOutcome:
    """Of each image the usual start, or the other one where that is clearly better."""
    costs = []
    for x in (usual, other):
        fit = task.forward.residual(x.image, task.y, x.unknowns) / variance(task)[0]
        cost = task.forward.count * fit / 2 + prior_energy(x.image, task.prior)
        costs.append(torch.nan_to_num(cost, nan=math.inf))  # samples that diverged
    better = costs[0] - costs[1] > (task.forward.count / 2).sqrt()
    image = torch.where(column(better, usual.image), other.image, usual.image)
    if usual.unknowns is None or other.unknowns is None:
        return RestorationOutcome(image)
    return RestorationOutcome(
        image, unknowns=torch.where(better[:, None], other.unknowns, usual.unknowns)
    )


def rough(task: RestorationTask, iterations: int = 150, rate: float = 0.05) -> Tensor:
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
