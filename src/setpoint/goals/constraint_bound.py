"""A constraint as a metric, a comparison and a number, so that its bound can be moved.

    left >= b                stays                              cap c = −b
    left <= b                stays                              cap c = b
    left >= right            as  left − right >= 0
    left == right            as  |left − right| <= 0

All are read as *excess <= cap*, with the excess −metric for >= and metric for <=: the greater the
cap, the less is asked, whichever way the constraint was written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.expressions import Constraint, Expression, Number
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal


@dataclass(frozen=True, eq=False)
class ConstraintBound:
    """One constraint of a goal.

    Attributes
    ----------
    constraint : Constraint
        As it was written.
    metric : Expression
    op : {">=", "<="}
    bound : float
    """

    constraint: Constraint
    metric: Expression
    op: str
    bound: float

    @classmethod
    def of(cls, constraint: Constraint) -> ConstraintBound:
        """Read a constraint as a metric against a number."""
        left, right = constraint.sides
        if constraint.op == "==":
            return cls(constraint, abs(left - right), "<=", 0.0)
        if constraint.number is not None:
            return cls(constraint, left, constraint.op, constraint.number)
        if not left.needs():
            turned = {">=": "<=", "<=": ">="}[constraint.op]
            return cls(constraint, right, turned, float(left.read({}).value))
        return cls(constraint, left - right, constraint.op, 0.0)

    @property
    def sign(self) -> int:
        """1 for a cap, −1 for a floor: excess = sign · metric, cap = sign · bound."""
        return 1 if self.op == "<=" else -1

    @property
    def equality(self) -> bool:
        """Whether it was written with ==."""
        return self.constraint.op == "=="

    @property
    def span(self) -> tuple[float, float]:
        """The values the metric can take."""
        return self.metric.interval()

    @property
    def cap(self) -> float:
        """The bound, the greater the looser."""
        return self.sign * self.bound

    @property
    def scale(self) -> float:
        """What a share of the bound is a share of: its size, or 1 where it is 0."""
        return abs(self.bound) or 1.0

    @property
    def points(self) -> bool:
        """Whether the metric is counted in points, hundredths of a whole."""
        return in_points(self.metric)

    def at(self, bound: float) -> Constraint:
        """The constraint with another bound."""
        if bound == self.bound:
            return self.constraint
        return Constraint(self.metric, self.op, Number(float(bound)))

    def at_cap(self, cap: float) -> Constraint:
        """The constraint with another cap."""
        return self.at(self.sign * cap)

    def lacking(self, excess: Any, cap: float) -> Any:
        """How far an excess is beyond a cap, so that floors near 1 and caps near 0 count alike.

        In log-odds for a metric within [0, 1], as a share of the bound for others; 0 within it.
        """
        if self.span != (0.0, 1.0):
            return np.maximum((excess - cap) / self.scale, 0.0)
        ends = [np.clip(self.sign * x, 1e-4, 1 - 1e-4) for x in (np.asarray(excess), cap)]
        there, here = (np.log(p / (1 - p)) for p in ends)
        return np.where(np.isfinite(excess), np.maximum(self.sign * (there - here), 0.0), np.inf)

    def slack(self, cap: float) -> float:
        """Rounding that a comparison with this cap forgives."""
        return SLACK * max(1.0, abs(cap))

    def outward(self, excess: float) -> float:
        """The tightest bound with few digits that an excess keeps.

        Two decimals, or two digits of the distance to the nearer end of the metric's range where
        that is shorter; three digits of a metric without ends. Never beyond the range.
        """
        digits = self.digits(excess)
        cap = math.ceil(excess * 10**digits - 1e-6) / 10**digits
        while excess - cap > self.slack(cap):
            cap += 10.0**-digits
        low, high = self.span
        bound = min(max(round(self.sign * cap, max(digits, 0)), low), high)
        return float(bound) + 0.0  # not −0.0

    def digits(self, excess: float) -> int:
        """Decimals that a bound near this excess is written with."""
        low, high = self.span
        ends = [abs(self.sign * excess - end) for end in (low, high) if math.isfinite(end)]
        if len(ends) < 2 or high - low > 2:
            return 2 - math.floor(math.log10(abs(excess))) if excess else 2
        nearest = min(ends)
        return 2 if not 0 < nearest < 0.02 else 2 + math.floor(-math.log10(nearest))


def in_points(metric: Expression) -> bool:
    """Whether a metric lies within [−1, 1]."""
    low, high = metric.interval()
    return low >= -1 and high <= 1


def asked_of(goal: Goal) -> tuple[ConstraintBound, ...]:
    """The constraints of a goal."""
    return tuple(map(ConstraintBound.of, goal.constraints))


def moved(goal: Goal, asked: tuple[ConstraintBound, ...], caps: tuple[float, ...]) -> Goal:
    """The goal at other caps; a constraint whose cap is infinite is left out."""
    pairs = zip(asked, caps, strict=True)
    kept = tuple(a.at_cap(cap) for a, cap in pairs if math.isfinite(cap))
    return Goal(goal.sense, goal.objective, kept)


def numbered(goal: Goal) -> Goal:
    """The goal with every constraint as a metric against a number."""
    found = (Constraint(a.metric, a.op, Number(a.bound)) for a in asked_of(goal))
    return Goal(goal.sense, goal.objective, tuple(found))
