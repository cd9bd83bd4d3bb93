"""Questions of a baseline to its task: range, noise, linearity, a first image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from setpoint._core.options import number
from setpoint.restoration.baselines.least_squares import damped_least_squares
from setpoint.restoration.measurement.restoration_task import RestorationTask

# toward the middle of the range: enough where A loses pixels, little where it has them
_PULL = 0.05


@dataclass(frozen=True)
class Space:
    """The images a task is about.

    Attributes
    ----------
    shape : tuple of int
        Of one image, (C, H, W).
    low, high : float
        The declared range; may be infinite.
    """

    shape: tuple[int, ...]
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return self.low > -float("inf") and self.high < float("inf")

    @property
    def half(self) -> float:
        """Half the width of the range, 1 where it is infinite."""
        return 0.5 * (self.high - self.low) if self.bounded else 1.0

    @property
    def middle(self) -> float:
        """The middle of the range, 0 where it is infinite."""
        return 0.5 * (self.high + self.low) if self.bounded else 0.0

    def clip(self, x: Tensor) -> Tensor:
        """X inside the range."""
        return x.clamp(self.low, self.high)


def space_of(task: RestorationTask) -> Space:
    """The image space of a task: its prior's shape and declared range."""
    low, high = task.prior.range
    return Space(tuple(task.prior.shape), float(low), float(high))


def rows(values: Tensor, like: Tensor) -> Tensor:
    """(B,) as (B, 1, 1, …), to be multiplied with rows of ``like``."""
    return values.reshape(-1, *([1] * (like.ndim - 1)))


def total(values: Tensor) -> Tensor:
    """The sum of each image's entries, (B, …) -> (B,)."""
    return values.flatten(1).sum(1)


def noise_level(task: RestorationTask, stated: float | None = None) -> Tensor:
    """σ of each image's measurement, (B,), in the units of y.

    Stated by hand, else of the task's noise at the measured values, else estimated from y.
    """
    y = task.y
    if stated is not None:
        number("sigma", stated, 0, open_low=True)
        return torch.full((len(y),), float(stated), dtype=y.real.dtype, device=y.device)
    seen = task.forward.observed
    if task.noise is None:
        # an estimate of 0 says that most pixels carry no noise, not that none does
        level = task.estimated_sigma().clamp(min=4e-3 * space_of(task).half)
    else:
        variance = task.noise.variance_seen(y).expand(y.shape)
        variance = variance if seen is None else torch.where(seen > 0, variance, 0)
        level = (total(variance) / task.forward.count).clamp(min=0).sqrt()
    # a level of nothing would ask for an exact fit, which no finite number of steps gives
    return level.clamp(min=1e-4 * space_of(task).half)


def is_linear(task: RestorationTask) -> bool:
    """Whether A is linear in the image: as the operator says, else tried on two random images."""
    declared = getattr(task.forward.operator, "linear", None)
    # a blind operator is not linear in image and unknowns together, but may be in the image
    if declared is not None and (declared or not task.forward.blind):
        return bool(declared)
    space, batch = space_of(task), len(task.y)
    unknowns = task.forward.start(batch, task.y) if task.forward.blind else None
    draw = task.generator("linearity")
    one, two = (
        space.middle
        + space.half
        * torch.rand(
            (batch, *space.shape), dtype=task.y.real.dtype, device=task.y.device, generator=draw
        )
        for _ in range(2)
    )
    with torch.no_grad():
        apart = task.forward(0.3 * one + 0.9 * two, unknowns)
        joined = 0.3 * task.forward(one, unknowns) + 0.9 * task.forward(two, unknowns)
        return bool((apart - joined).abs().max() <= 1e-4 * joined.abs().max())


def seen_of(
    task: RestorationTask, unknowns: Tensor | None
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A with its unknowns and y, both 0 where y was not observed."""
    observed = task.forward.observed
    if observed is None:
        return lambda x: task.forward(x, unknowns), task.y
    seen = observed > 0
    return lambda x: torch.where(seen, task.forward(x, unknowns), 0), torch.where(seen, task.y, 0)


def passed(task: RestorationTask) -> Tensor:
    """The share of an image's variance that A lets pass: g ≈ tr(AAᵀ)/m, (B,).

    As ‖Aᵀε‖²/‖ε‖² with one draw of ε, right for any ε where AAᵀ is a multiple of 1, as it is for
    masks and block means. For a nonlinear A, of A' at the first image.
    """
    unknowns = task.forward.start(len(task.y), task.y) if task.forward.blind else None
    seen = task.forward.observed
    with torch.enable_grad():
        point = first_image(task, unknowns).requires_grad_()
        out = seen_of(task, unknowns)[0](point)
        noise = torch.randn(
            out.shape, dtype=out.dtype, device=out.device, generator=task.generator("passed")
        )
        (back,) = torch.autograd.grad(out, point, noise)
    sent = total(noise.abs() ** 2 if seen is None else noise.abs() ** 2 * seen)
    return total(back**2) / sent.clamp(min=torch.finfo(back.dtype).tiny)


def first_image(task: RestorationTask, unknowns: Tensor | None) -> Tensor:
    """An image to start from, (B, *shape), inside the range.

    Linear A: argmin ‖A x − y‖² + 0.05 ‖x − c‖² with c the middle of the range. Otherwise y itself
    where it looks like an image (resized), else the middle with a little noise, as A may be flat
    or even there.
    """
    space = space_of(task)
    operator, y = seen_of(task, unknowns)
    like = y.real
    middle = torch.full((len(y), *space.shape), space.middle, dtype=like.dtype, device=y.device)
    if is_linear(task):
        damping = torch.full((len(y),), _PULL, dtype=like.dtype, device=y.device)
        return space.clip(damped_least_squares(operator, y, middle, damping, rounds=1, steps=15))
    image_like = getattr(task.forward.operator, "output", None) == "image"
    if image_like and y.ndim == 4 and y.shape[1] == space.shape[0]:
        size = list(space.shape[1:])
        same = list(y.shape[2:]) == size
        return space.clip(y if same else functional.interpolate(y, size=size, mode="bilinear"))
    noise = torch.randn(
        middle.shape, dtype=like.dtype, device=y.device, generator=task.generator("first image")
    )
    return space.clip(middle + 0.1 * space.half * noise)
