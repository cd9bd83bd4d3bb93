"""What it costs to break a constraint, where a rule or a model has to be chosen."""

from __future__ import annotations

import math

from setpoint.expressions import Constraint

_LEAST = 5.0


def price_of(constraint: Constraint) -> float:
    """What a unit of shortfall costs, in units of the objective: max(5, 1/room).

    Room is the distance of the bound from the end of its scale: to break fpr <= 0.02 by 0.02 costs
    as much as all recall, and a floor on precision is a cap on the share of false alarms.

    >>> from setpoint.goals import Goal
    >>> goal = Goal.parse("maximize recall subject to precision >= 0.8, fpr <= 0.02")
    >>> [round(price_of(c), 6) for c in goal.constraints]
    [5.0, 50.0]
    """
    if constraint.right.needs():
        return _LEAST
    bound = float(constraint.right.read({}).value)
    low, high = constraint.left.interval()
    room = high - bound if constraint.op == ">=" else bound - low
    return max(_LEAST, 1 / room) if 0 < room < math.inf else _LEAST
