"""A cautious rule: the best objective, less what the rows leave possible that constraints lack.

A threshold chosen where a constraint just holds breaks it on new rows about half of the time. How
far a pure rate may fall short of its bound f, after k of n rows, is

    E[(f − X)⁺] = f I_f(a, b) − a/(a+b) I_f(a+1, b)          X ~ Beta(a, b), a = k + f, b = n − k + 1 − f

(the posterior after one row's worth of the bound itself; I is the regularised incomplete beta), and
the rule maximises

    ± objective − caution · Σ price · E[shortfall]          price as the referee's: max(5, 1/room)

over thresholds at which every constraint holds, if there are any. Any other constraint, and any
other kind of rule, is tightened by 1.5 times the distance of its one-sided bound at Φ(−1), less
where no rule has that. Caution is a habit, not a proof.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core import special
from setpoint.decisions.applied import with_decisions
from setpoint.decisions.breaking import price_of
from setpoint.decisions.choose import choose
from setpoint.decisions.order import counts_along, pure_claims
from setpoint.decisions.path import tightened_goal
from setpoint.decisions.problem import Problem
from setpoint.decisions.rule import DecisionRule
from setpoint.decisions.threshold import tune_threshold
from setpoint.expressions import Columns, Sweep
from setpoint.goals import Goal, lower

CAUTION = 16.0  #: see the decision on defaults for what others gave
_ERRORS = (1.5, 0.75)  #: standard errors, tried in turn where rules are not one threshold
_ONE_ERROR = 0.15865525393145707  #: Φ(−1)


def cautious(
    goal: Goal,
    columns: Columns,
    kind: str,
    *,
    by: str | None = None,
    head: Any = None,
    seed: int = 0,
    caution: float = CAUTION,
) -> DecisionRule:
    """The best rule on these rows, with caution.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, on the host.
    kind, by, head, seed
        As for :func:`setpoint.decisions.choose.choose`.
    caution : float
        How many times the price of a shortfall is counted; 0 is none: what ``tune`` chooses.
    """
    goal = lower(goal)
    if caution == 0 or not goal.constraints:
        return choose(goal, columns, kind, by, head, seed)
    claims = pure_claims(goal, columns) if kind == "threshold" else [None]
    if None not in claims:
        return _one_threshold(goal, columns, claims, caution)
    plain = choose(goal, columns, kind, by, head, seed)
    if not plain.feasible:
        return plain
    for errors in _ERRORS if kind != "offsets" else _ERRORS[:1]:
        wanted = tightened_goal(goal, plain, columns, _ONE_ERROR, columns.size, errors)
        rule = None if wanted is None else choose(wanted, columns, kind, by, head, seed)
        if rule is not None and rule.feasible:
            return _judged_by(goal, rule, columns, plain)
    return plain


def _one_threshold(goal: Goal, columns: Columns, claims: list, caution: float) -> DecisionRule:
    problem, sweep = Problem.meet(goal, columns), Sweep(columns)
    scan = problem.scan(sweep)
    places, lacking = np.arange(sweep.size), np.zeros(sweep.size)
    for constraint, parts in zip(goal.constraints, claims, strict=True):
        for r, op, asked in parts:
            k, n = counts_along(r, sweep, places)
            lacking += price_of(constraint) * shortfall(k, n, op, float(r.share(asked)))
    low, high = goal.objective.interval()
    merit, feasible = scan.merit, scan.feasible()
    defined = merit > -np.inf
    scale = (
        1.0
        if math.isfinite(high - low)
        else max(1e-12, float(np.abs(merit[defined]).max(initial=0)))
    )
    among = feasible if feasible.any() else defined
    if not among.any():
        return tune_threshold(problem, sweep)
    worth = np.where(among, merit, 0.0) / scale - caution * lacking
    return tune_threshold(problem, sweep, int(np.argmax(np.where(among, worth, -np.inf))))


def shortfall(k: np.ndarray, n: np.ndarray, op: str, bound: float) -> np.ndarray:
    """How far a rate may fall short of its bound after k of n rows, on average.

    >>> shortfall(np.array([9.0, 90.0, 99.0]), np.array([10.0, 100.0, 100.0]), ">=", 0.9).round(4)
    array([0.0319, 0.0114, 0.    ])
    """
    if op == "<=":
        k, bound = n - k, 1 - bound
    bound = min(max(bound, 1e-9), 1 - 1e-9)
    a, b = np.maximum(k, 0) + bound, np.maximum(n - k, 0) + 1 - bound
    below = bound * special.betainc(a, b, bound) - a / (a + b) * special.betainc(a + 1, b, bound)
    return np.maximum(below, 0.0)


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
