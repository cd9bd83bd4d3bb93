"""Nearer to the clean image along the decision surface: linearised projections in the norm.

At a move u with score m and gradient g the surface is taken as the plane g·(v − u) = −m. Two points
of it are exact projections in the norm (``reach``): the one nearest to u, and the one nearest to 0,
the clean image. The next move lies between them,

    u ← (1 − α) (u + reach(∓g, |m|)) + α reach(g, g·u − m)

which is on the plane and closer to 0; α falls during the run, so that the moves settle where the
surface bends or breaks. Both right-hand sides are taken η ≥ 1 times as far, so that the move ends
on the wanted side. The least move that had what the attack wants is kept. The idea of projecting on
the linearised surface with a bias to the clean image is FAB's (Croce and Hein 2020, eqs. 7-11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack_problem import AttackRows
from setpoint.robustness.attacks.distances import norms
from setpoint.robustness.attacks.model_probe import Probe
from setpoint.robustness.attacks.projections import reach


@dataclass(frozen=True)
class NearestBoundary:
    """The least moves so far.

    Attributes
    ----------
    radius : Tensor (R,)
        Their norm; ∞ where no move had what the attack wants.
    moves : Tensor (R, n)
        The moves; 0 where there is none.
    last : Tensor (R, n)
        Where the run stands.
    """

    radius: Tensor
    moves: Tensor
    last: Tensor


@dataclass(frozen=True)
class Course:
    """How a run of ``near`` goes: its length, and α and η from first to last."""

    iterations: int
    bias: tuple[float, float]
    overshoot: tuple[float, float]

    def at(self, turn: int) -> tuple[float, float]:
        """α and η of one iteration: half a cosine from first to last."""
        share = 0.5 * (1.0 + math.cos(math.pi * turn / max(self.iterations - 1, 1)))
        return tuple(last + (first - last) * share for first, last in (self.bias, self.overshoot))  # type: ignore[return-value]


def near(
    probe: Probe,
    rows: AttackRows,
    start: Tensor,
    p: float,
    course: Course,
    tick: Callable[[], None] | None = None,
) -> NearestBoundary:
    """Run the iteration above from some moves; the least wanted move of each row is kept.

    Parameters
    ----------
    probe : Probe
        The model.
    rows : AttackRows
        The rows.
    start : Tensor (R, n)
        The first moves.
    p : float
        The power of the norm.
    course : Course
        Length, bias and overshoot.
    tick : callable or None
        Called after every iteration.
    """
    moves = rows.inside(start)
    radius = torch.full_like(rows.clean[:, 0], torch.inf)
    kept = torch.zeros_like(moves)
    for turn in range(course.iterations):
        bias, beyond = course.at(turn)
        seen = probe.look(rows.clean + moves, rows.labels, rows.rivals)
        size = norms(moves, p)
        better = (seen.margin >= rows.floor) & (size < radius)
        radius = torch.where(better, size, radius)
        kept = torch.where(better[:, None], moves, kept)
        moves = rows.inside(_between(rows, moves, seen.score, seen.gradient, p, bias, beyond))
        if tick is not None:
            tick()
    return NearestBoundary(radius, kept, moves)


def _between(
    rows: AttackRows, moves: Tensor, score: Tensor, g: Tensor, p: float, bias: float, beyond: float
) -> Tensor:
    side = torch.where(score < 0, 1.0, -1.0).to(g.dtype)[:, None]
    here = moves + reach(side * g, rows.low - moves, rows.high - moves, beyond * score.abs(), p)
    level = (g * moves).sum(1) - score
    there = reach(g, rows.low, rows.high, beyond * level, p)
    return (1.0 - bias) * here + bias * there
