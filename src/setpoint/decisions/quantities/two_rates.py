"""Two rates on separate rows, compared: gaps and ratios of groups, youden, other prevalences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from setpoint.decisions.quantities.quantity import Bounds
from setpoint.decisions.quantities.rate import Rate, RateClaim
from setpoint.expressions import Columns
from setpoint.expressions.value_intervals import Interval


@dataclass(frozen=True, eq=False, kw_only=True)
class PairClaim:
    """a·M₁ + b·M₂ + e ≥ t for two pure rates on separate rows.

    Attributes
    ----------
    one, two : RateClaim
    plane : callable
        From t to (a, b, e).
    span : Interval
        The values it can take.
    point : callable
        From the values of the two rates to its own.
    """

    one: RateClaim
    two: RateClaim
    plane: Callable[[float], tuple[float, float, float]]
    span: Interval
    point: Callable[[float, float], float]

    exact = True

    def on(self, columns: Columns) -> Pair:
        return Pair(self, self.one.on(columns), self.two.on(columns))


@dataclass(frozen=True, eq=False)
class Pair(Bounds):
    """Two pure rates on separate rows, compared.

    At each point (m₁, m₂) of the boundary the two p-values are independent, and their product x is
    uniform at worst, so x (1 − ln x) is a p-value (Fisher 1932). Its greatest value along the
    boundary is one for the whole null hypothesis. Between two points of the grid it is bounded by
    the larger of each p-value.
    """

    claim: PairClaim
    one: Rate
    two: Rate

    how = "exact binomial on two groups of rows, p-values joined"
    exact = True

    @property
    def value(self) -> float | None:
        if self.one.value is None or self.two.value is None:
            return None
        value = self.claim.point(self.one.value, self.two.value)
        return None if np.isnan(value) else value

    @property
    def rates(self) -> tuple[Rate, ...]:
        return self.one, self.two

    def proves(self, op: str, bound: float, delta: float) -> bool:
        a, b, e = self.claim.plane(bound)
        if op == "<=":
            a, b, e = -a, -b, -e
        return self._p(a, b, e) <= delta

    def _p(self, a: float, b: float, e: float) -> float:
        """The p-value of a·M₁ + b·M₂ + e <= 0."""
        if self.one.n == 0 or self.two.n == 0:
            return 1.0
        for r, slope, other in ((self.one, a, b), (self.two, b, a)):
            if other == 0:  # a claim on one of them
                return _alone(r, slope, e)
        m1 = _grid(self.one, self.two, a, b, e)
        first = _evidence(self.one, m1, a)
        second = _evidence(self.two, -(a * m1 + e) / b, b)
        joined = np.maximum(first[1:], first[:-1]) * np.maximum(second[1:], second[:-1])
        worst = float(np.max(joined))
        return worst * (1 - np.log(worst)) if worst > 0 else 0.0

    def lower(self, delta: float) -> float:
        return self._edge(">=", *self.claim.span, delta)

    def upper(self, delta: float) -> float:
        low, high = self.claim.span
        return self._edge("<=", high, low, delta)

    def _edge(self, op: str, sure: float, other: float, delta: float) -> float:
        if self.one.n == 0 or self.two.n == 0:
            return sure
        if np.isinf(sure) or np.isinf(other):  # a quotient: look for a pair of finite ends first
            ladder = [0.0, *np.geomspace(2.0**-10, 2.0**20, 31)]
            proven = [self.proves(op, t, delta) for t in ladder]
            if op == ">=":
                last = proven.index(False) if False in proven else len(ladder)
                if last in (0, len(ladder)):
                    return ladder[max(last - 1, 0)]
                sure, other = ladder[last - 1], ladder[last]
            else:
                if not proven[-1]:
                    return sure
                first = len(proven) - proven[::-1].index(False) if False in proven else 0
                if first == 0:
                    return ladder[0]
                sure, other = ladder[first], ladder[first - 1]
        for _ in range(40):
            middle = (sure + other) / 2
            if self.proves(op, middle, delta):
                sure = middle
            else:
                other = middle
        return sure


def _grid(one: Rate, two: Rate, a: float, b: float, e: float) -> np.ndarray:
    """Points of the boundary a·m₁ + b·m₂ + e = 0, as m₁."""
    low, high = one.span
    points = [np.linspace(low, high, 65), one.likely]
    points.append(-(b * two.likely + e) / a)
    return np.unique(np.clip(np.concatenate(points), low, high))


def _alone(r: Rate, slope: float, e: float) -> float:
    """The p-value of slope·M + e <= 0 for one rate."""
    if slope == 0:
        return 1.0 if e <= 0 else 0.0
    return float(_evidence(r, np.array([-e / slope]), slope)[0])


def _evidence(r: Rate, values: np.ndarray, direction: float) -> np.ndarray:
    """P-values that a pure rate lies on the better side of each value (direction > 0: above).

    A value that the rate cannot reach from the worse side is no part of the null hypothesis (0);
    one beyond its best leaves no evidence (1).
    """
    low, high = r.span
    beyond = (
        np.where(values < low, 0.0, 1.0) if direction > 0 else np.where(values > high, 0.0, 1.0)
    )
    p = r.p_above(values) if direction > 0 else r.p_below(values)
    return np.where((values < low) | (values > high), beyond, p)
