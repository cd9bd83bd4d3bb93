"""One threshold for all rows: exact over every distinct score, in one sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.decisions.frontier import Frontier, spread_over
from setpoint.decisions.problem import Point, Problem
from setpoint.decisions.rule import DecisionRule
from setpoint.expressions import Scan, Sweep
from setpoint.expressions.constraint import SLACK


def best_threshold(problem: Problem) -> tuple[Point, float]:
    """What is read at the best threshold, and that threshold."""
    sweep = Sweep(problem.columns)
    index, _ = problem.scan(sweep).choose()
    return _point(problem, sweep, index), float(sweep.thresholds[index])


def tune_threshold(problem: Problem) -> DecisionRule:
    """The best threshold, exactly: every candidate is looked at."""
    sweep = Sweep(problem.columns)
    readings = problem.scan(sweep)
    index, feasible = readings.choose()
    point = _point(problem, sweep, index)
    undefined = readings.merit == -np.inf
    nearest = [int(np.argmin(np.where(undefined, np.inf, e))) for e in readings.excess]
    reachable = [_point(problem, sweep, i).sides[j] for j, i in enumerate(nearest)]
    pairs = zip(readings.excess, nearest, strict=True)
    alone = [bool(e[i] <= SLACK and not undefined[i]) for e, i in pairs]
    binding = [feasible and _improves_without(readings, j, index) for j in range(len(nearest))]
    plain = [not c.right.needs() for c in problem.constraints]
    reachable = [value if ok else None for value, ok in zip(reachable, plain, strict=True)]
    return DecisionRule(
        goal=problem.goal,
        task=problem.columns.task,
        kind="threshold",
        feasible=feasible,
        value=point.value,
        rows=problem.columns.size,
        held=problem.held(point, reachable, alone, binding),
        threshold=float(sweep.thresholds[index]),
        frontier=_frontier(problem, sweep, readings, [index, *nearest]),
    )


def _point(problem: Problem, sweep: Sweep, index: int) -> Point:
    env = {}
    for leaf in problem.leaves():
        state = sweep.state(leaf, index, index + 1)
        env[leaf] = float(np.ravel(state)[0])
    return problem.at(env)


def _improves_without(readings: Scan, j: int, index: int) -> bool:
    """Whether the objective would be better if constraint j were dropped."""
    best = readings.best(readings.feasible(leaving_out=j))
    return best is not None and bool(readings.merit[best] > readings.merit[index] + SLACK)


def _frontier(problem: Problem, sweep: Sweep, readings: Scan, also: list[int]) -> Frontier:
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
