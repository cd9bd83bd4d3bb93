"""One threshold for all rows: exact over every distinct score, in one sort."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from setpoint.expressions import Columns, Scan, Sweep, measure
from setpoint.expressions.candidate_scan import Candidates
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.decision_rule import ConstraintStanding, DecisionRule
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.tradeoff_curve import Frontier, spread_over


def best_threshold(problem: GoalOnRows) -> tuple[Point, float]:
    """What is read at the best threshold, and that threshold."""
    sweep = Sweep(problem.columns)
    index, _ = problem.scan(sweep).choose()
    return _point(problem, sweep, index), float(sweep.thresholds[index])


def tune_threshold(
    problem: GoalOnRows, sweep: Sweep | None = None, index: int | None = None
) -> DecisionRule:
    """The best threshold, exactly: every candidate is looked at; or the one at an index."""
    sweep = Sweep(problem.columns) if sweep is None else sweep
    found = judged(problem, sweep, index)
    threshold = float(sweep.thresholds[found.index])
    frontier = _frontier(problem, sweep, found.readings, [found.index, *found.nearest])
    parts = {"threshold": threshold, "frontier": frontier}
    return problem.rule("threshold", found.point, found.held, **parts)


def threshold_rule(problem: GoalOnRows, sweep: Sweep, index: int) -> DecisionRule:
    """The rule of one candidate, as it fares on these rows."""
    point = _point(problem, sweep, index)
    unknown = [None] * len(problem.constraints)
    held = problem.held(point, unknown, unknown, [False] * len(unknown))
    return problem.rule("threshold", point, held, threshold=float(sweep.thresholds[index]))


class QuickValue(NamedTuple):
    """The best of many candidates, and how each constraint fares among them.

    ``nearest`` is the candidate that comes nearest to each constraint.
    """

    index: int
    feasible: bool
    point: Point
    held: tuple[ConstraintStanding, ...]
    nearest: list[int]
    readings: Scan


def judged(problem: GoalOnRows, candidates: Candidates, index: int | None = None) -> QuickValue:
    """Look at every candidate; choose the best; say what is reachable and what binds.

    With ``index`` that one is taken.
    """
    readings = problem.scan(candidates)
    best, feasible = readings.choose()
    if index is None:
        index = best
    else:
        feasible = bool(readings.feasible()[index])
    point = _point(problem, candidates, index)
    undefined = readings.merit == -np.inf
    nearest = [int(np.argmin(np.where(undefined, np.inf, e))) for e in readings.excess]
    reachable = [_point(problem, candidates, i).sides[j] for j, i in enumerate(nearest)]
    pairs = zip(readings.excess, nearest, strict=True)
    alone = [bool(e[i] <= SLACK and not undefined[i]) for e, i in pairs]
    binding = [feasible and _improves_without(readings, j, index) for j in range(len(nearest))]
    numbers = [c.number for c in problem.constraints]
    reachable = [None if b is None else v for v, b in zip(reachable, numbers, strict=True)]
    held = problem.held(point, reachable, alone, binding)
    return QuickValue(index, feasible, point, held, nearest, readings)


def _point(problem: GoalOnRows, candidates: Candidates, index: int) -> Point:
    env = {}
    for leaf in problem.leaves():
        state = candidates.state(leaf, index, index + 1)
        env[leaf] = float(np.ravel(state)[0])
    return problem.at(env)


def _improves_without(readings: Scan, j: int, index: int) -> bool:
    """Whether the objective would be better if constraint j were dropped."""
    best = readings.best(readings.feasible(leaving_out=j))
    return best is not None and bool(readings.merit[best] > readings.merit[index] + SLACK)


def _frontier(problem: GoalOnRows, sweep: Sweep, readings: Scan, also: list[int]) -> Frontier:
    """The trade-off at some hundred candidates, the chosen one among them."""
    indices = np.union1d(spread_over(sweep.size), np.array(also, np.int64))
    env = {leaf: sweep.at(leaf, indices) for leaf in problem.leaves()}
    judged = [constraint.judge(env) for constraint in problem.constraints]
    return Frontier(
        objective=str(problem.goal.objective),
        constraints=tuple(map(str, problem.goal.constraints)),
        thresholds=tuple(sweep.thresholds[indices].astype(float).tolist()),
        values=_column(*problem.objective.read(env), indices.size),
        sides=tuple(_column(j.value, j.defined, indices.size) for j in judged),
        feasible=tuple(readings.feasible()[indices].tolist()),
    )


def _column(values: Any, defined: Any, size: int) -> tuple[float | None, ...]:
    """Values as a column, None where they are not defined."""
    pairs = zip(
        np.broadcast_to(values, size).tolist(), np.broadcast_to(defined, size).tolist(), strict=True
    )
    return tuple(float(value) if ok else None for value, ok in pairs)


# The goal at its best operating point, read quickly: what a model under training is judged by.


def quick_point(goal: Goal, columns: Columns) -> Point:
    """What the goal reads on scores.

    At the best threshold of a binary task, by argmax of a multiclass one, at ½ of a multilabel one;
    a goal on scores alone as it is.

    Parameters
    ----------
    goal : Goal
    columns : Columns
        With scores, on the host; of a multilabel task probabilities.
    """
    goal = goal.lowered
    if goal.objective.needs() <= {"scores"} and not goal.constraints:
        return Point(float(measure(goal.objective, columns).value()), (), ())
    problem = GoalOnRows.meet(goal, columns)
    if columns.task.kind == "binary":
        return best_threshold(problem)[0]
    scores = np.asarray(columns.scores)
    decided = scores.argmax(1) if columns.task.kind == "multiclass" else scores >= 0.5
    return problem.judge(replace(columns, decided=decided))
