"""A path of rules from safe to bold, laid out on reference rows.

The candidates of a proof are fixed before the certify rows are looked at. One threshold: cut points
of the reference scores. Any other kind of rule: the rule that is best on the reference rows when
every bound is tightened by a margin, for margins from wide to none and a little beyond,

    left >= c   becomes   left >= c + m (top − c)
    left <= c   becomes   left <= c − m (c − bottom)

with [bottom, top] what the metric can be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.errors import SetpointError
from setpoint.decisions.applied import with_decisions
from setpoint.decisions.certify import declared, subject_of
from setpoint.decisions.choose import choose
from setpoint.decisions.planner import power_at
from setpoint.decisions.rule import DecisionRule
from setpoint.expressions import Columns, Constraint, Number
from setpoint.goals import Goal

MARGINS = np.r_[np.linspace(0.9, 0.1, 17), np.linspace(0.08, -0.1, 10)]


def margin_path(
    goal: Goal, reference: Columns, kind: str, by: str | None, head: Any, seed: int
) -> list[DecisionRule]:
    """Rules from the widest margin to the narrowest, without those that repeat the one before."""
    found: list[DecisionRule] = []
    points: list[dict] = []
    for margin in MARGINS:
        tightened = tuple(_tightened(c, float(margin)) for c in goal.constraints)
        try:
            rule = choose(
                Goal(goal.sense, goal.objective, tightened), reference, kind, by, head, seed
            )
        except SetpointError:
            continue  # a bound that cannot be met at all
        if rule.feasible and (point := rule.point_to_json()) not in points:
            found.append(rule)
            points.append(point)
    return found


def _tightened(constraint: Constraint, margin: float) -> Constraint:
    if constraint.right.needs() or constraint.op == "==":
        return constraint
    bound = float(constraint.right.read({}).value)
    low, high = constraint.left.interval()
    if constraint.op == ">=":
        room = high - bound if np.isfinite(high) else abs(bound)
        return Constraint(constraint.left, ">=", Number(bound + margin * room))
    room = bound - low if np.isfinite(low) else abs(bound)
    return Constraint(constraint.left, "<=", Number(bound - margin * room))


def joint_power(
    goal: Goal, rule: DecisionRule, reference: Columns, delta: float, size: int
) -> float:
    """The least power of ``size`` rows over the constraints, as the reference rows have it."""
    decided = with_decisions(rule, replace(reference, weight=None))
    decided = replace(decided, task=declared(goal, decided))
    powers = [1.0]
    for constraint in goal.constraints:
        found, asked = subject_of(constraint, decided, None, (), rule)
        powers.append(power_at(found, constraint.op, asked, delta, decided.size, size))
    return min(powers)
