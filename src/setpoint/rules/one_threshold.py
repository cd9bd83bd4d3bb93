"""One threshold for all rows: exact over every distinct score, in one sort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from setpoint._core.arrays import Array
from setpoint._core.json_codec import number_from, number_to
from setpoint.expressions import Columns, Scan, Sweep, Task, measure
from setpoint.expressions.candidate_scan import Candidates
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.rule import (
    BestRule,
    ConstraintStanding,
    Rule,
    RuleSearch,
    beyond,
    is_cut,
    score_at_least,
)
from setpoint.rules.tradeoff_curve import Frontier, spread_over


@final
@dataclass(frozen=True, kw_only=True)
class OneThreshold(Rule):
    """Decide positive where score >= threshold; +inf decides nothing."""

    threshold: float

    kind: ClassVar[str] = "threshold"
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    along_scores: ClassVar[bool] = True

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The best threshold, exactly."""
        del options
        return tune_threshold(GoalOnRows.meet(goal, columns))

    def is_sound(self) -> bool:
        """Whether the threshold is a number."""
        return is_cut(self.threshold)

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """True where decided positive."""
        del group, query
        return s >= self.threshold

    def describe(self) -> str:
        """The rule in words."""
        return score_at_least(self.threshold)

    def plain(self) -> OneThreshold:
        """½, where scores are probabilities, and 0."""
        return replace(self, threshold=0.5 if self.task.score == "probability" else 0.0)

    def cuts(self) -> tuple[float, ...]:
        """The threshold."""
        return (self.threshold,)

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """How far each score lies beyond the threshold."""
        return beyond(scores, self.threshold, np.asarray(self.decide(scores, group=group)))

    def numbers(self) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": number_to(self.threshold)}

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> OneThreshold:
        """Read what :meth:`numbers` wrote."""
        return cls(task=task, threshold=number_from(data["threshold"]))


def best_threshold(problem: GoalOnRows) -> tuple[Point, float]:
    """What is read at the best threshold, and that threshold."""
    sweep = Sweep(problem.columns)
    index, _ = problem.scan(sweep).choose()
    return _point(problem, sweep, index), float(sweep.thresholds[index])


def tune_threshold(
    problem: GoalOnRows, sweep: Sweep | None = None, index: int | None = None
) -> BestRule:
    """The best threshold, exactly: every candidate is looked at; or the one at an index."""
    sweep = Sweep(problem.columns) if sweep is None else sweep
    best = judged(problem, sweep, index)
    rule = OneThreshold(task=problem.columns.task, threshold=float(sweep.thresholds[best.index]))
    frontier = _frontier(problem, sweep, best.readings, [best.index, *best.nearest])
    return problem.best(rule, best.point, best.held, frontier=frontier)


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
    standings = problem.standings(point, reachable, alone, binding)
    return QuickValue(index, feasible, point, standings, nearest, readings)


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

    At the best threshold of a binary task, by argmax of a multiclass one, at ½ of a multilabel one
    (0 of logits); a goal on scores alone as it is.

    Parameters
    ----------
    goal : Goal
    columns : Columns
        With scores, on the host; of a multilabel task probabilities or logits.
    """
    goal = goal.lowered
    if goal.objective.needs() <= {"scores"} and not goal.constraints:
        return Point(float(measure(goal.objective, columns).value()), (), ())
    problem = GoalOnRows.meet(goal, columns)
    if columns.task.kind == "binary":
        return best_threshold(problem)[0]
    scores = np.asarray(columns.scores)
    middle = 0.0 if columns.task.score == "logit" else 0.5
    decided = scores.argmax(1) if columns.task.kind == "multiclass" else scores >= middle
    return problem.judge(replace(columns, decided=decided))
