"""A tree of rates whose rows overlap: each rate bounded at a share of δ, joined by monotonicity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint._core.errors import GoalError
from setpoint.decisions.quantities.quantity import Bounds, said, value_on
from setpoint.decisions.quantities.rate import Rate, RateClaim
from setpoint.expressions import Columns, Expression, Number, Product, Ratio, Several, Sum
from setpoint.expressions.arithmetic import Power
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.value_intervals import Interval


@dataclass(frozen=True, eq=False, repr=False)
class _Between(Expression):
    """A rate inside a tree, of which an interval is known."""

    ends: Interval

    def read(self, env: Any) -> Reading:
        raise GoalError(f"{self} is an interval and has no value")

    def text(self) -> tuple[str, int]:
        return f"[{self.ends[0]:g}, {self.ends[1]:g}]", 4

    def latex(self) -> str:
        return self.text()[0]

    def interval(self) -> Interval:
        return self.ends


@dataclass(frozen=True, eq=False)
class JoinedClaim:
    """A tree of rates."""

    tree: Expression
    #: by the key of the sub-tree: wherever it occurs, it is the same rate
    parts: dict[tuple, RateClaim]

    exact = True

    @cached_property
    def directions(self) -> dict[tuple, int]:
        """Whether the tree rises (1) or falls (−1) with each part; 0 where that depends."""
        return {part: _direction(self.tree, part, self.parts) for part in self.parts}

    def on(self, columns: Columns) -> Joined:
        rates = {part: claim.on(columns) for part, claim in self.parts.items()}
        return Joined(self, rates, value_on(self.tree, columns))


@dataclass(frozen=True, eq=False)
class Joined(Bounds):
    """A tree of rates: each end that matters is bounded at an equal share of δ."""

    claim: JoinedClaim
    parts: dict[tuple, Rate]
    value: float | None

    exact = True

    @property
    def how(self) -> str:
        return f"{said(self.rates)}, {len(self.parts)} parts at a share of the level each"

    @property
    def rates(self) -> tuple[Rate, ...]:
        return tuple(self.parts.values())

    def lower(self, delta: float) -> float:
        return self._ends(delta, 1)[0]

    def upper(self, delta: float) -> float:
        return self._ends(delta, -1)[1]

    def _ends(self, delta: float, sign: int) -> Interval:
        directions = self.claim.directions
        share = delta / sum(2 if d == 0 else 1 for d in directions.values())
        known = {}
        for part, r in self.parts.items():
            way = sign * directions[part]
            low = r.lower(share) if way >= 0 else r.span[0]
            high = r.upper(share) if way <= 0 else r.span[1]
            known[part] = _Between((low, high))
        return _substituted(self.claim.tree, known).interval()


def _substituted(tree: Expression, known: dict[tuple, Any]) -> Expression:
    if tree.key() in known:
        return known[tree.key()]
    return tree.rebuild(tuple(_substituted(child, known) for child in tree.children()))


def _direction(tree: Expression, part: tuple, parts: dict[tuple, RateClaim]) -> int:
    """1 if the tree rises with the part, −1 if it falls, 0 if that depends; 2 without the part."""
    key = tree.key()
    if key == part:
        return 1
    if key in parts or not tree.children():
        return 2
    below = [_direction(child, part, parts) for child in tree.children()]
    if all(d == 2 for d in below):
        return 2
    if isinstance(tree, Sum | Several):
        return _agreed(below)
    if isinstance(tree, Product):
        scale = float(np.prod([f.value for f in tree.factors if isinstance(f, Number)]))
        varying = [f for f in tree.factors if not isinstance(f, Number)]
        plain = len(varying) == 1 or all(_span(f, parts)[0] >= 0 for f in varying)
        return _agreed(below) * (1 if scale > 0 else -1) if plain else 0
    if isinstance(tree, Ratio):
        signs = [below[0], below[1] if below[1] == 2 else -below[1]]
        positive = all(_span(side, parts)[0] >= 0 for side in (tree.numerator, tree.denominator))
        return _agreed(signs) if positive else 0
    if isinstance(tree, Power):
        return below[0] * (1 if tree.exponent > 0 else -1) if _span(tree.base, parts)[0] >= 0 else 0
    return 0


def _agreed(directions: list[int]) -> int:
    known = {d for d in directions if d != 2}
    return known.pop() if len(known) == 1 else 0


def _span(tree: Expression, parts: dict[tuple, RateClaim]) -> Interval:
    return _substituted(tree, {p: _Between(r.span) for p, r in parts.items()}).interval()
