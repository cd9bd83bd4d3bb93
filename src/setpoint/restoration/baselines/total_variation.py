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

from setpoint._core.options import number, whole
from setpoint.restoration.baselines.blind_unknowns import Unknowns
from setpoint.restoration.baselines.task_and_start import (
    Space,
    first_image,
    noise_level,
    rows,
    space_of,
    total,
)
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask

# Total variation of an image and its proximal map.
#
#     TV(x) = Σ_pixels √(Σ_channels (∂_h x)² + (∂_w x)²),     forward differences, none over the
#     edge,
#     prox(b) = argmin_{x in range} ½‖x − b‖² + γ TV(x).
#
# Isotropic, and over the channels together, so that the edges of a colour image stay in one place.
# The dual of the proximal map, max over fields p with |p| ≤ 1 at each pixel, is climbed by
# accelerated projected gradients (Beck and Teboulle 2009, section 4), from a given p on, which
# makes a handful of steps enough inside a slow outer loop.


def differences(x: Tensor) -> Tensor:
    """Forward differences, (B, C, H, W) -> (B, 2, C, H, W)."""
    out = x.new_zeros(len(x), 2, *x.shape[1:])
    out[:, 0, :, :-1] = x[:, :, 1:] - x[:, :, :-1]
    out[:, 1, :, :, :-1] = x[..., 1:] - x[..., :-1]
    return out


def gathered(field: Tensor) -> Tensor:
    """The adjoint of :func:`differences`, (B, 2, C, H, W) -> (B, C, H, W)."""
    down, right = field[:, 0, :, :-1], field[:, 1, :, :, :-1]
    out = torch.zeros_like(field[:, 0])
    out[:, :, 1:] += down
    out[:, :, :-1] -= down
    out[..., 1:] += right
    out[..., :-1] -= right
    return out


def total_variation_of(x: Tensor) -> Tensor:
    """TV of each image, (B,)."""
    return differences(x).square().sum((1, 2)).sqrt().flatten(1).sum(1)


def denoised(
    b: Tensor, weight: Tensor, space: Space, *, steps: int, field: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """argmin_{x in range} ½‖x − b‖² + γ TV(x), and the dual field it was found with.

    Parameters
    ----------
    b : torch.Tensor
        (B, C, H, W).
    weight : torch.Tensor
        (B,), γ.
    space : Space
        The range.
    steps : int
        Of the dual climb.
    field : torch.Tensor, optional
        (B, 2, C, H, W), where the climb starts.
    """
    gamma = rows(weight, b)
    # ‖differences‖² <= 8, so the dual's gradient has the Lipschitz constant 8 γ²: with p in units
    # of 1, the step is 1/(8γ)
    stride = 1 / (8 * gamma.clamp(min=torch.finfo(b.dtype).tiny)).unsqueeze(1)
    p = torch.zeros_like(differences(b)) if field is None else field
    ahead, momentum = p, 1.0
    for _ in range(steps):
        x = space.clip(b - gamma * gathered(ahead))
        reached = ahead + stride * differences(x)
        after = reached / reached.square().sum((1, 2), keepdim=True).sqrt().clamp(min=1)
        faster = 0.5 * (1 + (1 + 4 * momentum**2) ** 0.5)
        ahead = after + ((momentum - 1) / faster) * (after - p)
        p, momentum = after, faster
    return space.clip(b - gamma * gathered(p)), p


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
    task: RestorationTask,
    *,
    iterations: int = 600,
    weight: float | None = None,
    discrepancy: float = 1.0,
    sigma: float | None = None,
    proximal_steps: int = 10,
    unknowns_rate: float = 0.007,
) -> RestorationOutcome:
    """Restore by total variation.

    Parameters
    ----------
    task : RestorationTask
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
    unknowns_rate : float
        Rate of the one step of Adam on the unknowns of a blind operator after each step on the
        image.
    """
    whole("iterations", iterations, 1)
    if weight is not None:
        number("weight", weight, 0, open_low=True)
    number("discrepancy", discrepancy, 0, open_low=True)
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
            unknowns.steps(state.x, 1, state.squared > aim)
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
    return RestorationOutcome(
        image=state.x,
        unknowns=unknowns.value,
        chosen=torch.full((len(state.x),), iterations - 1, device=state.x.device),
        why=["the last iterate of a descent"] * len(state.x),
        status=f"{iterations} steps of total variation, weight {how}",
    )


def _begun(task: RestorationTask, unknowns: Tensor | None) -> _State:
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


def _squared(task: RestorationTask, x: Tensor, unknowns: Tensor | None) -> Tensor:
    with torch.no_grad():
        return task.forward.residual(x, task.y, unknowns) * task.forward.count


def _descend(
    task: RestorationTask, state: _State, unknowns: Tensor | None, proximal_steps: int
) -> None:
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
    accepted, onward = rows(good, x), rows((speed - 1) / faster, x)
    state.ahead = torch.where(accepted, new + onward * (new - x), x)
    state.x = torch.where(accepted, new, x)
    state.squared = torch.where(good, squared, state.squared)
    state.field = torch.where(accepted.unsqueeze(1), field, state.field)
    state.speed = torch.where(good, faster, torch.ones_like(faster))
    # steps may grow again, slowly: the slope of a nonlinear A changes along the way
    state.steepness = torch.where(good, steep * 0.99, steep * 2)
