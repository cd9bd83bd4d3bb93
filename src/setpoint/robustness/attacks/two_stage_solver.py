"""Two stages: many starts for a few steps, then the best of them to the end.

A row of the first stage is an image with one start: a random one, against all classes or against
one rival. The best row of an image goes on with its penalty weight and its curvature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint._core.errors import Argument, KindError
from setpoint._core.options import is_real
from setpoint.robustness.attacks.attack_losses import MARGIN_CLIP, margin, of_class, soft_margin
from setpoint.robustness.attacks.attack_problem import Posed
from setpoint.robustness.attacks.distances import Distance
from setpoint.robustness.attacks.model_probe import Model
from setpoint.robustness.attacks.random_starts import Draws, rivals_of
from setpoint.solvers.batched import BatchedResult, BatchedState, solve_batched

#: Standard deviation of a start around the image, as a share of the box: the first, and the others.
NEAR, FAR = 0.01, 0.05
#: Share of eps the solver keeps away from, half of which it may use up.
SLACK = 1e-3
#: Share of the clean margin that a margin has to be over 0, half of which it may fall short.
OVER = 1e-3
#: Share of the calls of a line that its first stage takes.
FIRST = 0.3
#: On the KKT residual, relative to the gradient: a start that is this still is done.
STILL = 1e-3

Box = tuple[float, float]
Function = Callable[..., Tensor]  #: (z, *Images.data) -> (R,)


class CountedModel:
    """The model, its calls counted: logits and what an attack makes large of them."""

    def __init__(self, model: Model, sign: float, soft: bool) -> None:
        self._model, self._sign, self._soft = model, sign, soft
        self.forwards = 0

    def margin(self, z: Tensor, label: Tensor) -> Tensor:
        """± margin: at least 0 where the attack has what it wants; no gradient."""
        with torch.no_grad():
            return self._sign * margin(self._logits(z), label)

    def score(self, z: Tensor, label: Tensor, rival: Tensor) -> Tensor:
        """What is made large: against a rival (>= 0), or the loss itself (rival < 0)."""
        logits = self._logits(z)
        whole = soft_margin(logits, label) if self._soft else margin(logits, label)
        one = of_class(logits, rival.clamp_min(0)) - of_class(logits, label)
        return self._sign * torch.where(rival < 0, whole, one)

    def _logits(self, z: Tensor) -> Tensor:
        self.forwards += len(z)
        return self._model(z).to(z.dtype)


@dataclass(frozen=True)
class Lines:
    """How many starts, how far the followed one goes, and with which memory."""

    restarts: int
    iterations: int
    hessian: str | int

    def __post_init__(self) -> None:
        for name in ("restarts", "iterations"):
            value = getattr(self, name)
            if not is_real(value) or value < 1 or value % 1:
                raise KindError(
                    "{argument}: a whole number, 1 or more", argument=Argument(name, value)
                )

    @property
    def first(self) -> int:
        """Calls of the first stage."""
        return max(1, round(FIRST * self.iterations)) if self.restarts > 1 else self.iterations

    @property
    def second(self) -> int:
        """Calls of the second."""
        return self.iterations - self.first


@dataclass(frozen=True, eq=False)
class Images:
    """Images, a row each, and what the functions and the judging need of them."""

    clean: Tensor  # (R, *shape)
    label: Tensor  # (R,) the class to leave, or to reach
    rival: Tensor  # (R,) the class that is set against it; −1: all
    scale: Tensor  # (R,) what the distance is divided by
    floor: Tensor  # (R,) the margin from which the attack has what it wants
    size: Tensor  # (R,) of the clean margin

    def take(self, index: Tensor) -> Images:
        """Some of the rows."""
        return Images(*(a[index] for a in self.data))

    @property
    def data(self) -> tuple[Tensor, ...]:
        """As the functions are given them."""
        return self.clean, self.label, self.rival, self.scale, self.floor, self.size


#: Images and points (R, *shape) -> better points, and how good they are (R,)
Judged = Callable[[Images, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Constrained:
    """An attack as a constrained program: objective, one inequality, the box."""

    objective: Function
    inequality: Function
    feasibility: float
    box: Box
    hessian: str | int

    def run(
        self, images: Images, start: Tensor, calls: int, resume: BatchedState | None = None
    ) -> BatchedResult:
        """At most so many calls from the start (R, *shape), or on from a state."""
        return solve_batched(
            self.objective,
            start,
            inequalities=self.inequality,
            bounds=self.box,
            data=images.data,
            tolerance=STILL,
            feasibility=self.feasibility,
            max_evaluations=calls,
            hessian=self.hessian,
            resume=resume,
        )


def losing_program(
    scored: CountedModel, measure: Distance, box: Box, hessian: str | int, clip: float
) -> Constrained:
    """Minimise −min(ℓ, clip) s.t. d / ε <= 1: past the clip it is flat, the image is done."""

    def objective(z: Tensor, *row: Tensor) -> Tensor:
        _, label, rival, *_ = row
        return -scored.score(z, label, rival).clamp_max(clip)

    def inequality(z: Tensor, *row: Tensor) -> Tensor:
        clean, scale = row[0], row[3]
        least = torch.finfo(scale.dtype).tiny ** 0.5
        return measure(clean, z) / (scale * (1 - SLACK)).clamp_min(least) - 1

    return Constrained(objective, inequality, SLACK / 2, box, hessian)


def nearing_program(
    scored: CountedModel, measure: Distance, box: Box, hessian: str | int, enough: float = 0.0
) -> Constrained:
    """Minimise max(d / ε, enough) s.t. margin > 0 by a little, counted in clean margins."""

    def objective(z: Tensor, *row: Tensor) -> Tensor:
        clean, scale = row[0], row[3]
        least = torch.finfo(scale.dtype).tiny ** 0.5
        return (measure(clean, z) / scale.clamp_min(least)).clamp_min(enough)

    def inequality(z: Tensor, *row: Tensor) -> Tensor:
        _, label, rival, _, floor, size = row
        return (floor - scored.score(z, label, rival)) / size + OVER

    return Constrained(objective, inequality, OVER / 2, box, hessian)


def two_stages(
    program: Constrained, images: Images, start: Tensor, judged: Judged, lines: Lines
) -> tuple[Tensor, Tensor, Tensor]:
    """The best point of each image, how good it is, and the steps all its starts took.

    ``images`` holds each image once a start: by start, then by image.
    """
    first = program.run(images, start, lines.first)
    points, quality = judged(images, first.x)
    rows = _best(quality, lines.restarts)
    taken = first.iterations.view(lines.restarts, -1).sum(0)
    images, points, quality = images.take(rows), points[rows], quality[rows]
    if lines.second:
        state = first.state.take(rows)
        second = program.run(images, state.x.view_as(points), lines.second, state)
        moved, value = judged(images, second.x)
        better = value > quality
        wide = better.reshape(-1, *(1,) * (points.ndim - 1))
        points, quality = torch.where(wide, moved, points), torch.where(better, value, quality)
        taken = taken + second.iterations
    return points, quality, taken


def _best(quality: Tensor, restarts: int) -> Tensor:
    """(B,) the number of each image's best row."""
    quality = torch.where(quality.isnan(), -torch.inf, quality).view(restarts, -1)
    count = quality.shape[1]
    return quality.argmax(0) * count + torch.arange(count, device=quality.device)


def starts_of(
    posed: Posed, restarts: int, draws: Draws, scale: Tensor, box: Box
) -> tuple[Images, Tensor]:
    """Each image ``restarts`` times, and where its rows start: near the image, where d has a slope.

    The first start is against all classes; where no class is asked for, the others are against the
    rivals in the order of their logits.
    """
    count, shape = len(posed.rows.clean), posed.shape
    clean = posed.rows.clean.view(-1, *shape)
    label = posed.rows.labels
    none = torch.full_like(label, -1)[:, None]
    if posed.probe.sign > 0:
        order = torch.cat([none, rivals_of(posed.logits, label, restarts - 1)], 1)
    else:
        order = none
    starts, rivals = [], []
    for k in range(restarts):
        starts.append(noisy(clean, NEAR if k == 0 else FAR, draws, box))
        rivals.append(order[:, k % order.shape[1]])
    index = torch.arange(count, device=clean.device).repeat(restarts)
    size = (-posed.margins).clamp_min(MARGIN_CLIP)
    alone = Images(clean, label, label, scale, posed.rows.floor, size)
    return replace(alone.take(index), rival=torch.cat(rivals)), torch.cat(starts)


def noisy(clean: Tensor, size: float, draws: Draws, box: Box) -> Tensor:
    """Images with uniform noise, its standard deviation a share of the box, clipped to the box."""
    wide = box[1] - box[0]
    wide = wide if math.isfinite(wide) else 1.0
    noise = draws.uniform(clean[0].numel()).view_as(clean) - 0.5
    return (clean + size * math.sqrt(12) * wide * noise).clamp(*box)
