"""A rule with a margin: the best one whose constraints also hold two standard errors away.

A threshold chosen where a constraint just holds breaks it on new rows about half of the time. With
a margin a pure rate must hold by its one-sided Wilson bound,

    p + z²/2n − z √(p (1 − p)/n + z²/4n²)   over   1 + z²/n          (Wilson 1927)

Any other constraint, and any other kind of rule, is tightened by z times the distance of its
one-sided bound at Φ(−1). Where no rule has the margin it is halved, twice, then given up. A margin
is a habit, not a proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setpoint.decisions.proof.margin_path import tightened_goal
from setpoint.decisions.proof.testing_order import threshold_claims
from setpoint.decisions.quantities.from_expression import ConstraintClaim
from setpoint.expressions import Columns, Scan, Sweep
from setpoint.goals import Goal
from setpoint.rules.decision_rule import DecisionRule, choose, decision_rule
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import tune_threshold
from setpoint.rules.rule import RuleSearch

MARGIN = 2.0  #: standard errors; see the decision on defaults for what others gave
_SHARES = (1.0, 0.5, 0.25)  #: of the margin, tried in turn
_ONE_ERROR = 0.15865525393145707  #: Φ(−1)


def cautious(
    goal: Goal, columns: Columns, search: RuleSearch, *, margin: float = MARGIN
) -> tuple[DecisionRule, float]:
    """The best rule with a margin on these rows, and the share of the margin it has.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, on the host.
    search : RuleSearch
    margin : float
        z of every constraint. 0 is none.

    Returns
    -------
    DecisionRule, float
        1 where the margin is whole, less where no rule has it.
    """
    goal = goal.lowered
    if margin == 0 or not goal.constraints:
        return choose(goal, columns, search), 0.0
    claims = threshold_claims(goal, columns) if search.rule.along_scores else ()
    if claims and all(claim.pure_rates for claim in claims):
        return _one_threshold(goal, columns, claims, margin)
    plain = choose(goal, columns, search)
    if not plain.feasible:
        return plain, 0.0
    for share in _SHARES[:1] if search.rule.slow_search else _SHARES:
        wanted = tightened_goal(
            goal, plain.point, columns, _ONE_ERROR, columns.size, margin * share
        )
        rule = None if wanted is None else choose(wanted, columns, search)
        if rule is not None and rule.feasible:
            return _judged_by(goal, rule, columns, plain), share
    return plain, 0.0


def _one_threshold(
    goal: Goal, columns: Columns, claims: tuple[ConstraintClaim, ...], margin: float
) -> tuple[DecisionRule, float]:
    problem = GoalOnRows.meet(goal, columns)
    sweep = Sweep(columns)
    scan = problem.scan(sweep)
    places = np.arange(sweep.size)
    counts = [
        (*rate.along(sweep, places), claim.op, float(rate.share(claim.asked)))
        for claim in claims
        for rate in claim.pure_rates
    ]
    for share in _SHARES:
        rooms = [room_with_margin(k, n, op, b, share * margin) for k, n, op, b in counts]
        index = _first(scan, np.minimum.reduce(rooms) >= -1e-12)
        if index is not None:
            return decision_rule(tune_threshold(problem, sweep, index), columns), share
    return decision_rule(tune_threshold(problem, sweep), columns), 0.0


def _first(scan: Scan, allowed: np.ndarray) -> int | None:
    """The best feasible candidate among those allowed."""
    return scan.best(scan.feasible() & allowed)


def room_with_margin(k: np.ndarray, n: np.ndarray, op: str, bound: float, z: float) -> np.ndarray:
    """How far the Wilson bound of k of n lies on the right side of a bound; −inf where n is 0.

    >>> room_with_margin(np.array([90, 98]), np.array([100, 100]), ">=", 0.9, 1.0).round(3)
    array([-0.034,  0.061])
    """
    if op == "<=":
        k, bound = n - k, 1 - bound
    some = n > 0
    n = np.where(some, n, 1.0)
    p = np.clip(k / n, 0, 1)
    half = z * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    least = (p + z * z / (2 * n) - half) / (1 + z * z / n)
    return np.where(some, least - bound, -np.inf)


def _judged_by(
    goal: Goal, rule: DecisionRule, columns: Columns, plain: DecisionRule
) -> DecisionRule:
    """A rule chosen for a tightened goal, with what the goal itself reads there."""
    decided = rule.decided_columns(columns)
    problem = GoalOnRows.ground(goal, decided)
    point = problem.judge(decided)
    unknown = [None] * len(goal.constraints)
    binding = [h.binding for h in plain.held]
    held = problem.standings(point, unknown, [True] * len(unknown), binding)
    return replace(
        rule,
        goal=goal,
        feasible=point.feasible,
        value=point.value,
        held=held,
        frontier=plain.frontier,
    )
