"""Total variation:  min_x ½‖A(x) − y‖² + λ TV(x),  x in the declared range.

A differentiable, linear or not. Accelerated proximal gradients (Beck and Teboulle 2009) with a step
of its own for each image: it is halved, and the try repeated, where the quadratic bound on the data
term fails, and the momentum starts anew where it points uphill (O'Donoghue and Candès 2015).

λ is found on the way from the noise level by the discrepancy principle, ‖A(x) − y‖² = τ m σ²
(Morozov): it starts large, which also carries values far into what was not observed, and moves by

    log λ ← log λ + rate · (log τ m σ² − log ‖A(x) − y‖²).

Blind: the joint minimum over image and kernel is the blurred image and no blur (Levin et al. 2009).
So the kernel starts broad, λ falls first, down to a floor, and the unknowns take slow gradient
steps on the data term only while the residual is above its aim: what is found is about the broadest
kernel that explains y. Kernels that followed a slowly falling λ ended at no blur.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.restoration.baselines.blind_unknowns import Unknowns
from setpoint.restoration.baselines.task_and_start import (
    above_zero,
    first_image,
    noise_level,
    rows,
    space_of,
    total,
    whole_number,
)
from setpoint.restoration.baselines.variation import denoised, differences, total_variation_of
from setpoint.restoration.measurement.restoration_task import Outcome, Task

_LARGE = 0.3  # the first λ, in units of half the range: flat images
_LEAST = 1e-6  # λ never falls below this, in the same units
_BLIND = 0.15  # nor, where a kernel is unknown, below this many σ
_FALL = 0.06  # log λ moves at most this much in a step


@dataclass
class _State:
    """Where the descent is: B images at once."""

    x: Tensor  # (B, C, H, W)
    ahead: Tensor  # (B, C, H, W), with momentum
    field: Tensor  # (B, 2, C, H, W), the dual of the proximal map
    speed: Tensor  # (B,), t of the momentum
    steepness: Tensor  # (B,), L: the step is 1/L
    weight: Tensor  # (B,), λ
    squared: Tensor  # (B,), ‖A(x) − y‖²


def total_variation(
    task: Task,
    *,
    iterations: int = 600,
    weight: float | None = None,
    discrepancy: float = 1.0,
    sigma: float | None = None,
    proximal_steps: int = 10,
    unknowns_rate: float = 0.007,
    unknowns_steps: int = 1,
) -> Outcome:
    """Restore by total variation.

    Parameters
    ----------
    task : Task
        What is to be restored.
    iterations : int
        Steps on the image.
    weight : float, optional
        λ, in the units of the image; found from the noise level by default.
    discrepancy : float
        τ: the squared residual aimed at is τ m σ².
    sigma : float, optional
        σ in the units of y; the task's noise by default, estimated where it has none.
    proximal_steps : int
        Dual steps of each proximal map.
    unknowns_rate, unknowns_steps
        Adam's rate and steps, after each step on the image, on the unknowns of a blind operator.
    """
    whole_number("iterations", iterations)
    above_zero(weight=weight, discrepancy=discrepancy)
    space = space_of(task)
    unknowns = Unknowns(task, unknowns_rate)
    state = _begun(task, unknowns.value)
    level = noise_level(task, sigma)
    aim = discrepancy * task.forward.count * level**2  # (B,)
    task.watch.steps = iterations
    least = _BLIND * level if task.forward.blind else _LEAST * space.half * torch.ones_like(level)
    for step in range(iterations):
        _descend(task, state, unknowns.value, proximal_steps)
        if unknowns.value is not None:
            unknowns.steps(state.x, unknowns_steps, state.squared > aim)
            state.squared = _squared(task, state.x, unknowns.value)
        left = 1 - step / iterations
        if weight is None:
            error = (aim / state.squared.clamp(min=1e-30)).log()
            change = (0.1 * error).clamp(-_FALL, _FALL) * min(1.0, 2 * left)
        else:
            change = (weight / state.weight).log().clamp(-_FALL, _FALL)
        state.weight = torch.maximum(state.weight * change.exp(), least)
        loss = 0.5 * state.squared + state.weight * total_variation_of(state.x)
        reached = state.squared / task.forward.count
        task.watch(step, state.x, loss, reached, unknowns=unknowns.value, weight=state.weight)
    how = "given" if weight is not None else "found by the discrepancy principle"
    return Outcome(
        image=state.x,
        unknowns=unknowns.value,
        chosen=torch.full((len(state.x),), iterations - 1, device=state.x.device),
        why=["the last iterate of a descent"] * len(state.x),
        status=f"{iterations} steps of total variation, weight {how}",
    )


def _begun(task: Task, unknowns: Tensor | None) -> _State:
    """The first image, and 1/step from one product with A'A."""
    x = first_image(task, unknowns)
    ones = torch.ones(len(x), dtype=x.dtype, device=x.device)
    return _State(
        x=x,
        ahead=x,
        field=torch.zeros_like(differences(x)),
        speed=ones,
        steepness=0.25 * ones,  # too long a step on purpose: the bound below shortens it
        weight=_LARGE * space_of(task).half * ones,
        squared=_squared(task, x, unknowns),
    )


def _squared(task: Task, x: Tensor, unknowns: Tensor | None) -> Tensor:
    with torch.no_grad():
        return task.forward.residual(x, task.y, unknowns) * task.forward.count


def _descend(task: Task, state: _State, unknowns: Tensor | None, proximal_steps: int) -> None:
    """One accelerated proximal step, or a shorter step length where the bound fails."""
    space, x, ahead, steep = space_of(task), state.x, state.ahead, state.steepness
    with torch.enable_grad():
        point = ahead.detach().requires_grad_()
        value = 0.5 * task.forward.residual(point, task.y, unknowns) * task.forward.count
        (slope,) = torch.autograd.grad(value.sum(), point)
    value = value.detach()
    new, field = denoised(
        ahead - slope / rows(steep, x),
        state.weight / steep,
        space,
        steps=proximal_steps,
        field=state.field,
    )
    move, squared = new - ahead, _squared(task, new, unknowns)
    bound = value + total(slope * move) + 0.5 * steep * total(move**2)
    # rounding makes the bound fail at a standstill, hence the slack
    slack = 10 * torch.finfo(x.dtype).eps * (value + 1)
    good = 0.5 * squared <= bound + slack  # NaN is not
    uphill = total((ahead - new) * (new - x)) > 0
    speed = torch.where(uphill, torch.ones_like(state.speed), state.speed)
    faster = 0.5 * (1 + (1 + 4 * speed**2).sqrt())
    # a failed try falls back to the last image without momentum: there short steps descend
    kept, onward = rows(good, x), rows((speed - 1) / faster, x)
    state.ahead = torch.where(kept, new + onward * (new - x), x)
    state.x, state.squared = torch.where(kept, new, x), torch.where(good, squared, state.squared)
    state.field = torch.where(kept.unsqueeze(1), field, state.field)
    state.speed = torch.where(good, faster, torch.ones_like(faster))
    # steps may grow again, slowly: the slope of a nonlinear A changes along the way
    state.steepness = torch.where(good, steep * 0.99, steep * 2)
