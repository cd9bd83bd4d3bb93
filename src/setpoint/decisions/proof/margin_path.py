"""A path of rules from safe to bold, laid out on reference rows.

The candidates of a proof are fixed before the certify rows are looked at. One threshold: cut points
of the reference scores. Any other kind of rule: the rule that is best on the reference rows when
every bound is tightened by a margin, for margins from wide to none and a little beyond,

    left >= c   becomes   left >= c + m w          left <= c   becomes   left <= c − m w

with w how far a bound on that many certify rows lies from the value, as the rule without a margin
has it: each constraint gets the room that its own proof takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from setpoint.decisions.certify import population_of
from setpoint.decisions.proof.power import power_at
from setpoint.decisions.quantities.from_expression import ConstraintClaim, claims_of
from setpoint.expressions import Columns, Constraint, Number
from setpoint.goals import Goal
from setpoint.rules.decision_rule import DecisionRule, choose, declared
from setpoint.rules.rule import Rule, RuleSearch

MARGINS = (4, 3, 2.4, 2, 1.7, 1.45, 1.25, 1.1, 1, 0.9, 0.8, 0.65, 0.5, 0.3, 0, -0.3)
FEWER = (3, 2, 1.4, 1, 0.7, 0.4, 0)  #: where each rule takes its time: offsets of classes


def margin_path(
    goal: Goal, reference: Columns, search: RuleSearch, delta: float, size: int
) -> list[DecisionRule]:
    """Rules from the widest margin to the narrowest, without those that repeat one before."""
    plain = choose(goal, reference, search)
    widths = _widths(goal, plain.point, reference, delta, size)
    path: list[DecisionRule] = []
    for margin in FEWER if search.rule.slow_search else MARGINS:
        rule = plain
        if margin != 0:
            wanted = _by_widths(goal, widths, margin)
            if wanted is None:
                continue  # beyond what the metric can be
            rule = choose(wanted, reference, search)
        if rule.feasible and all(rule.point != other.point for other in path):
            path.append(rule)
    return path


def tightened_goal(
    goal: Goal, rule: Rule, reference: Columns, delta: float, size: int, margin: float
) -> Goal | None:
    """The goal with each bound moved inwards by a margin; None where a metric cannot be there."""
    return _by_widths(goal, _widths(goal, rule, reference, delta, size), margin)


def _by_widths(goal: Goal, widths: list[float], margin: float) -> Goal | None:
    pairs = zip(goal.constraints, widths, strict=True)
    tightened = tuple(_tightened(c, margin * width) for c, width in pairs)
    if None in tightened:
        return None
    return Goal(goal.sense, goal.objective, tightened)  # type: ignore[arg-type]


def _widths(goal: Goal, rule: Rule, reference: Columns, delta: float, size: int) -> list[float]:
    """How far the bound of each constraint will lie from its value on so many rows."""
    widths = []
    decided = unweighted_decisions(rule, reference)
    for claim in claims_before(goal, rule, decided):
        quantity = claim.on(decided)
        edge = quantity.lower(delta) if claim.op == ">=" else quantity.upper(delta)
        value = claim.asked if quantity.value is None else quantity.value
        width = abs(value - edge) * math.sqrt(reference.size / size)
        low, high = claim.constraint.left.interval()
        room = high - claim.asked if claim.op == ">=" else claim.asked - low
        fallback = 0.1 * (room if math.isfinite(room) else max(abs(claim.asked), 1.0))
        widths.append(width if math.isfinite(width) and width > 0 else fallback)
    return widths


def _tightened(constraint: Constraint, by: float) -> Constraint | None:
    """The constraint with its bound moved inwards; None where the metric cannot be there."""
    bound = constraint.number
    if bound is None or constraint.op == "==":
        return constraint
    low, high = constraint.left.interval()
    moved = bound + by if constraint.op == ">=" else bound - by
    if not low < moved < high:
        return None
    return Constraint(constraint.left, constraint.op, Number(moved))


def joint_power(
    claims: Sequence[ConstraintClaim], decided: Columns, delta: float, size: int
) -> float:
    """The least power of ``size`` rows over the claims, as the rows decided here have it."""
    return min(
        power_at(claim.on(decided), claim.op, claim.asked, delta, decided.size, size)
        for claim in claims
    )


def claims_before(goal: Goal, rule: Rule, decided: Columns) -> tuple[ConstraintClaim, ...]:
    """What the goal claims of decisions like these, all groups declared."""
    return claims_of(goal, population_of(rule, replace(decided, task=declared(goal, decided))))


def unweighted_decisions(rule: DecisionRule | Rule, columns: Columns) -> Columns:
    """The rows as a rule decides them, each counted once."""
    return rule.decided_columns(replace(columns, weight=None))
