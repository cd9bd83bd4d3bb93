"""A rule with a margin: the best one whose constraints also hold k standard errors away.

A threshold chosen where a constraint just holds breaks it on new rows about half of the time. With
a margin a pure rate must hold by its one-sided Wilson bound,

    p + z²/2n − z √(p (1 − p)/n + z²/4n²)   over   1 + z²/n          (Wilson 1927)

with z = ½ for rates among the rows decided (precision: their number moves with the threshold, and a
whole standard error costs too much), z = 1 for the others (recall, fpr). Any other constraint, and
any other kind of rule, is tightened by z times the distance of its one-sided bound at Φ(−1). Where
no rule has the margin it is halved, twice, then given up. A margin is a habit, not a proof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.decisions.applied import with_decisions
from setpoint.decisions.choose import choose
from setpoint.decisions.order import counts_along, pure_claims
from setpoint.decisions.path import tightened_goal
from setpoint.decisions.problem import Problem
from setpoint.decisions.rule import DecisionRule
from setpoint.decisions.threshold import tune_threshold
from setpoint.expressions import Columns, Sweep
from setpoint.goals import Goal, lower

AMONG_DECIDED, AMONG_ALL = 0.5, 1.0
_SHARES = (1.0, 0.5, 0.25)  #: of the margin, tried in turn
_ONE_ERROR = 0.15865525393145707  #: Φ(−1)


def cautious(
    goal: Goal,
    columns: Columns,
    kind: str,
    *,
    by: str | None = None,
    head: Any = None,
    seed: int = 0,
    margin: float | None = None,
) -> tuple[DecisionRule, float]:
    """The best rule with a margin on these rows, and the share of the margin it has.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, on the host.
    kind, by, head, seed
        As for :func:`setpoint.decisions.choose.choose`.
    margin : float, optional
        z for every constraint; by default ½ among the rows decided and 1 among all. 0 is none.

    Returns
    -------
    DecisionRule, float
        1 where the margin is whole, 0 where no rule has any.
    """
    goal = lower(goal)
    if margin == 0 or not goal.constraints:
        return choose(goal, columns, kind, by, head, seed), 0.0
    claims = pure_claims(goal, columns) if kind == "threshold" else [None]
    if None not in claims:
        return _one_threshold(goal, columns, claims, margin)
    plain = choose(goal, columns, kind, by, head, seed)
    if not plain.feasible:
        return plain, 0.0
    z = AMONG_ALL if margin is None else margin
    for share in _SHARES if kind != "offsets" else _SHARES[:1]:
        wanted = tightened_goal(goal, plain, columns, _ONE_ERROR, columns.size, z * share)
        rule = None if wanted is None else choose(wanted, columns, kind, by, head, seed)
        if rule is not None and rule.feasible:
            return _judged_by(goal, rule, columns, plain), share
    return plain, 0.0


def _one_threshold(
    goal: Goal, columns: Columns, claims: list, margin: float | None
) -> tuple[DecisionRule, float]:
    problem, sweep = Problem.meet(goal, columns), Sweep(columns)
    places = np.arange(sweep.size)
    counts = [
        (*counts_along(r, sweep, places), op, float(r.share(asked)))
        for parts in claims
        for r, op, asked in parts
    ]
    feasible = problem.scan(sweep).feasible()
    for share in _SHARES:
        allowed = np.ones(sweep.size, bool)
        for k, n, op, floor in counts:
            z = share * (_usual(n) if margin is None else margin)
            allowed &= holds_with_margin(k, n, op, floor, z)
        if (allowed & feasible).any():
            return tune_threshold(problem, sweep, allowed), share
    return tune_threshold(problem, sweep), 0.0


def _usual(n: np.ndarray) -> float:
    """½ where the number of rows with a say moves with the threshold, else 1."""
    return AMONG_ALL if n[0] == n[-1] else AMONG_DECIDED


def holds_with_margin(k: np.ndarray, n: np.ndarray, op: str, floor: float, z: float) -> np.ndarray:
    """Whether k of n is on the right side of a bound by the Wilson margin of z standard errors.

    >>> holds_with_margin(np.array([90, 95]), np.array([100, 100]), ">=", 0.9, 1.0)
    array([False,  True])
    """
    if op == "<=":
        k, floor = n - k, 1 - floor
    some = n > 0
    n = np.where(some, n, 1.0)
    p = np.clip(k / n, 0, 1)
    lowest = (p + z * z / (2 * n) - z * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)) / (
        1 + z * z / n
    )
    return some & (lowest >= floor - 1e-12)


def _judged_by(
    goal: Goal, rule: DecisionRule, columns: Columns, plain: DecisionRule
) -> DecisionRule:
    """A rule chosen for a tightened goal, with what the goal itself reads there."""
    decided = with_decisions(rule, columns)
    problem = Problem.ground(goal, decided)
    point = problem.judge(decided)
    unknown = [None] * len(goal.constraints)
    binding = [h.binding for h in plain.held]
    held = problem.held(point, unknown, [True] * len(unknown), binding)
    return replace(
        rule,
        goal=goal,
        feasible=point.feasible,
        value=point.value,
        held=held,
        frontier=plain.frontier,
    )
