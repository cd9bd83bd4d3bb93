"""The nearest goals that can be met: one constraint relaxed alone, or all by the same share.

    alone      c_j + what is lacking, with the other caps as they were
    together   c_j + λ |bound_j|, with the least λ >= 0 that some candidate meets

Bounds are rounded outwards, to few digits, and every goal given is one that ``tune`` meets on the
same rows. Rates are taken from candidates with enough rows behind them: three right of three is no
reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from setpoint._core.json_codec import Record
from setpoint.decisions.sensitivity.value_function import Caps, Landscape, Spot
from setpoint.goals import Goal
from setpoint.goals.constraint_bound import ConstraintBound, moved

ALONE, TOGETHER = "alone", "together"
_TRIES = 6


@dataclass(frozen=True)
class NearestGoal(Record):
    """A goal that is met on these rows, near the one that is not.

    Attributes
    ----------
    goal : Goal
    relaxed : tuple of str
        The constraints that gave way, as they now stand.
    how : {"alone", "together"}
        One constraint, the others as they were; or all by the same share of their bounds.
    share : float
        The most that a bound gave way, as a share of itself.
    value : float
        The objective that the goal reaches.
    sides : tuple of float
        What each constraint bounds, there.
    behind : int
        Rows under the smallest rate there.
    """

    goal: Goal
    relaxed: tuple[str, ...]
    how: str
    share: float
    value: float
    sides: tuple[float, ...]
    behind: int

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; the goal stands as text."""
        return {**super().to_json(), "goal": str(self.goal)}


def nearest_goals(land: Landscape, caps: Caps) -> tuple[NearestGoal, ...]:
    """Goals that can be met, the least relaxed first; those of one constraint before all."""
    several = len(land.asked) > 1
    alone = [found for j in range(len(land.asked)) if (found := _alone(land, caps, j)) is not None]
    alone.sort(key=lambda n: n.share)
    together = _together(land, caps) if several or not alone else None
    return (*alone, *(() if together is None else (together,)))


def _alone(land: Landscape, caps: Caps, j: int) -> NearestGoal | None:
    spot = land.tightest(j, caps)
    if spot is None:
        return None

    def relaxed(extra: float) -> tuple[float, ...]:
        excess = max(spot.excess[j], caps[j]) + extra * land.asked[j].scale
        return (*caps[:j], _rounded(land, j, excess), *caps[j + 1 :])

    return _first_met(land, caps, relaxed, ALONE)


def _together(land: Landscape, caps: Caps) -> NearestGoal | None:
    spot = land.nearest(caps)
    if spot is None:
        return None
    trios = list(zip(spot.excess, caps, land.asked, strict=True))
    share = max(0.0, max((e - cap) / a.scale for e, cap, a in trios))

    def relaxed(extra: float) -> tuple[float, ...]:
        wide = (cap + (share + extra) * a.scale for _, cap, a in trios)
        return tuple(_rounded(land, j, cap) for j, cap in enumerate(wide))

    return _first_met(land, caps, relaxed, TOGETHER)


def _rounded(land: Landscape, j: int, excess: float) -> float:
    asked = land.asked[j]
    return asked.sign * asked.outward(excess)


def _first_met(
    land: Landscape, caps: Caps, relaxed: Callable[[float], tuple[float, ...]], how: str
) -> NearestGoal | None:
    """The first of ever wider caps that a candidate is found for: a search can miss its own."""
    for extra in _extras():
        wide = relaxed(extra)
        spot = land.best(wide)
        if spot is not None:
            return _nearest(land, caps, wide, spot, how)
    return None


def _extras() -> Iterator[float]:
    yield 0.0
    yield from (0.005 * 2**i for i in range(_TRIES))


def _nearest(land: Landscape, caps: Caps, wide: Caps, spot: Spot, how: str) -> NearestGoal:
    goal = moved(land.goal, land.asked, tuple(wide))
    trios = list(zip(land.asked, caps, wide, strict=True))
    return NearestGoal(
        goal=goal,
        relaxed=tuple(str(a.at_cap(w)) for a, cap, w in trios if w > cap),
        how=how,
        share=max((max(w - cap, 0.0) / a.scale for a, cap, w in trios), default=0.0),
        value=land.goal.sign * spot.merit,
        sides=tuple(a.sign * e for a, e in zip(land.asked, spot.excess, strict=True)),
        behind=spot.behind,
    )


def caps_of(land: Landscape, goal: Goal) -> tuple[float, ...]:
    """The caps of a goal that has the same constraints at other bounds."""
    bounds = (ConstraintBound.of(constraint).bound for constraint in goal.constraints)
    return tuple(a.sign * bound for a, bound in zip(land.asked, bounds, strict=True))


def said(value: float | None) -> str:
    """A value in words; an empty rate has none."""
    return "empty" if value is None or not math.isfinite(value) else f"{value:.3g}"
