"""A first image of y, to start from.

"smooth"   x̂ = argmin_x ‖A(x) − y‖² + w ‖∇x‖², clipped to the range, by Adam on the pixels, for
any differentiable operator; a blind one stays at its start
"pnp"      the plug-and-play image (:mod:`.baselines.pnp`) by the prior's own denoiser; a blind
operator starts from the unknowns found with it
"best"     of three candidates, the means of a few posterior samples by either rule of
:mod:`.baselines.dps` and the plug-and-play image, by the cost ‖A(x) − y‖²/(2σ²) + E(x) with E of
:mod:`.energy`. Plug-and-play with an unknown kernel at times ends with a doubled image and half the
kernel, which explains y and is no image of the prior's, and samples at times miss y: both cost
more. But a mode that explains y better than the noise allows has fitted the noise, and costs little
for it: there the mean with the lower cost is taken, if it explains y.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.restoration.baselines.dps import RULES, dps
from setpoint.restoration.baselines.pnp import pnp
from setpoint.restoration.energy import prior_energy
from setpoint.restoration.search import WORSE, variance
from setpoint.restoration.task import Outcome, Task
from setpoint.restoration.watch import Watch

#: w over the variance of the noise.
SMOOTH = 2.5
#: Samples and steps of "best", by each rule.
SAMPLES, STEPS = 8, 250
#: Share of the noise's energy below which a residual is of a mode that fitted the noise.
BETTER = 0.8


def warm_image(task: Task, start: str | Tensor) -> tuple[Tensor, Tensor | None]:
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
    if start == "best" and task.forward.blind and not task.forward.per_image:
        raise DataError(
            "warm_from='best' chooses for each image, and the operator has parameters that the "
            "whole batch shares: say warm_from='pnp'"
        )
    # steps of the start are told as they are made; the history is the search's own
    apart = replace(task, watch=Watch(callback=task.watch.callback))
    mode = pnp(apart)
    if start == "pnp":
        return mode.image.detach(), mode.unknowns
    means = [dps(apart, samples=SAMPLES, iterations=STEPS, rule=rule) for rule in RULES]
    return _best(task, [*means, mode])


def _best(task: Task, found: list[Outcome]) -> tuple[Tensor, Tensor | None]:
    """Of each image the best candidate, the last one being a mode and the others means."""
    bound = variance(task)[0]
    fits = [task.forward.residual(x.image, task.y, x.unknowns) / bound for x in found]
    costs = torch.stack(
        [
            task.forward.count * fit / 2 + prior_energy(x.image, task.prior)
            for x, fit in zip(found, fits, strict=True)
        ]
    )
    costs = torch.nan_to_num(costs, nan=math.inf)  # samples that diverged are not chosen
    mean = costs[:-1].argmin(dim=0)  # (B,)
    explains = torch.stack(fits).gather(0, mean[None])[0] <= WORSE
    best = torch.where(explains & (fits[-1] < BETTER), mean, costs.argmin(dim=0))
    rows = torch.arange(len(best), device=best.device)
    image = torch.stack([x.image for x in found])[best, rows]
    each = [x.unknowns for x in found if x.unknowns is not None]
    return image.detach(), torch.stack(each)[best, rows].detach() if each else None


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
