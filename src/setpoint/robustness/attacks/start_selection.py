"""A race between starts: many go a short way, the best go on.

Every image starts once against each of its nearest classes; after a few iterations the best three
go on, joined by random starts against the best and one other; the nearest point of all goes the
long way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack_problem import AttackRows, Posed
from setpoint.robustness.attacks.boundary_projection import Course, NearestBoundary, near
from setpoint.robustness.attacks.distances import norms
from setpoint.robustness.attacks.random_starts import Draws, rivals_of

#: Lines that go on after the first heat, and those that get random starts.
SECOND, AGAIN = 3, 2
#: The norm of a random start, in units of the radius it has to beat.
STRETCH = 1.5


@dataclass(frozen=True)
class Heats:
    """The lengths of a race.

    Attributes
    ----------
    first, second, again, last : Course
        Against all classes; the best three; each random start; the winner.
    rivals : int
        Classes in the first heat.
    restarts : int
        Random starts.
    """

    first: Course
    second: Course
    again: Course
    last: Course
    rivals: int
    restarts: int

    @property
    def turns(self) -> int:
        """Iterations one after the other."""
        again = self.restarts * self.again.iterations
        return self.first.iterations + self.second.iterations + again + self.last.iterations


def heats(iterations: int, rivals: int, restarts: int) -> Heats:
    """A race whose winner takes ``iterations`` steps: 1/10, 3/10 and 6/10 of them in turn."""
    short, middle = max(iterations // 10, 1), max(3 * iterations // 10, 1)
    middling = Course(middle, (0.3, 0.02), (1.02, 1.005))
    return Heats(
        Course(short, (0.3, 0.1), (1.05, 1.02)),
        middling,
        middling,
        Course(max(iterations - short - middle, 1), (0.1, 0.002), (1.005, 1.0005)),
        rivals,
        restarts,
    )


@dataclass(frozen=True)
class Line:
    """The k lines of each image: moves (B, k, n), radii and rivals (B, k); None: no rival named."""

    radius: Tensor
    moves: Tensor
    stand: Tensor
    rivals: Tensor | None

    def best(self, p: float, count: int) -> Line:
        """The ``count`` nearest lines of each image; those that have nothing yet come last."""
        flat = norms(self.stand.flatten(0, 1), p).view_as(self.radius)
        order = torch.where(self.radius.isfinite(), self.radius, 1e3 * (1.0 + flat))
        top = order.topk(min(count, order.shape[1]), dim=1, largest=False).indices
        wide = top[..., None].expand(-1, -1, self.moves.shape[2])
        return Line(
            self.radius.gather(1, top),
            self.moves.gather(1, wide),
            self.stand.gather(1, wide),
            None if self.rivals is None else self.rivals.gather(1, top),
        )

    def led_by(self, turn: int) -> Line:
        """The same lines, the best one first and then each of the others in its turn."""
        count = self.radius.shape[1]
        second = [1 + turn % (count - 1)] if count > 1 else []
        order = [0, *second, *(slot for slot in range(1, count) if slot not in second)]
        return Line(
            self.radius[:, order],
            self.moves[:, order],
            self.stand[:, order],
            None if self.rivals is None else self.rivals[:, order],
        )

    def improved(self, other: Line) -> Line:
        """Each line, or where it is nearer the line of the other in the same place.

        The other may have fewer lines: they stand for the first ones.
        """
        count = other.radius.shape[1]
        better = other.radius < self.radius[:, :count]
        # a line without a wanted move goes on from where it stands now
        moved = better | ~self.radius[:, :count].isfinite()
        radius = torch.where(better, other.radius, self.radius[:, :count])
        moves = torch.where(better[..., None], other.moves, self.moves[:, :count])
        stand = torch.where(moved[..., None], other.stand, self.stand[:, :count])
        return Line(
            torch.cat([radius, self.radius[:, count:]], 1),
            torch.cat([moves, self.moves[:, count:]], 1),
            torch.cat([stand, self.stand[:, count:]], 1),
            self.rivals,
        )


def race(
    posed: Posed, p: float, heats: Heats, draws: Draws, tick: Callable[[], None] | None = None
) -> tuple[NearestBoundary, int]:
    """The nearest wanted move of each image, and the gradients taken for each."""
    rows, probe = posed.rows, posed.probe
    rivals = None
    if probe.sign > 0:
        rivals = rivals_of(posed.logits, rows.labels, heats.rivals)
    width = 1 if rivals is None else rivals.shape[1]
    start = torch.zeros_like(rows.clean)[:, None].expand(-1, width, -1)

    def run(course: Course, start: Tensor, rivals: Tensor | None) -> Line:
        nonlocal taken
        count = start.shape[1]
        taken += count * course.iterations
        nearest = near(probe, _spread(rows, count, rivals), start.flatten(0, 1), p, course, tick)
        moves, last = nearest.moves.view(start.shape), nearest.last.view(start.shape)
        radius = nearest.radius.view(start.shape[:2])
        stand = torch.where(radius.isfinite()[..., None], moves, last)
        return Line(radius, moves, stand, rivals)

    taken, wide = 0, norms(rows.high - rows.low, p)[:, None]
    lines = run(heats.first, start, rivals).best(p, SECOND)
    lines = lines.improved(run(heats.second, lines.stand, lines.rivals))
    for turn in range(heats.restarts):
        lines = lines.best(p, SECOND).led_by(turn)
        radius = lines.radius[:, :AGAIN]
        radius = STRETCH * torch.where(radius.isfinite(), radius, wide)
        drawn = [draws.moves(rows.low, rows.high, size, p) for size in radius.unbind(1)]
        against = None if lines.rivals is None else lines.rivals[:, :AGAIN]
        lines = lines.improved(run(heats.again, torch.stack(drawn, 1), against))
    lines = lines.best(p, 1)
    lines = lines.improved(run(heats.last, lines.stand, lines.rivals))
    return NearestBoundary(lines.radius[:, 0], lines.moves[:, 0], lines.stand[:, 0]), taken


def _spread(rows: AttackRows, count: int, rivals: Tensor | None) -> AttackRows:
    if rivals is not None:
        return rows.against(rivals)
    index = torch.arange(len(rows.clean), device=rows.clean.device).repeat_interleave(count)
    return replace(rows.take(index), rivals=None)
