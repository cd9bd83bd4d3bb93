"""The exact goal as a metric of each library: what early stopping compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.boosting.tree_rows import TreeRows, tree_rows
from setpoint.expressions import Columns, take_groups, take_in
from setpoint.goals import Goal, Task, check
from setpoint.rules.goal_on_rows import Point
from setpoint.rules.one_threshold import quick_point

if TYPE_CHECKING:
    from setpoint.boosting.catboost_objective import CatBoostObjective

UNBOUNDED = -1e12  #: less than any feasible model's merit, where the objective has no bound
WORST = 1e3  #: excess of a constraint that is not even defined


def columns_of(task: Task, rows: TreeRows, groups: dict[str, np.ndarray]) -> Columns:
    """Rows as the language reads them."""
    plain = task.kind == "binary"
    return take_in(
        Task.binary(groups=task.groups) if plain else task,
        rows.codes.astype(bool) if plain else np.array(task.classes)[rows.codes],
        scores=rows.scores,
        sample_weight=rows.weight,
        group=groups or None,
    )


def merit(goal: Goal, point: Point) -> float:
    """One number to stop early by, greater is better: feasible models rank above all others.

    A feasible one has its objective (negative where it is minimized). One that breaks a constraint
    has less than the worst objective there can be: by 1, and by its largest excess.
    """
    if point.feasible and point.value is not None:
        return goal.sign * point.value
    low, high = goal.objective.interval()
    worst = max(low if goal.sign > 0 else -high, UNBOUNDED)
    excess = max(point.excess, default=WORST) if point.value is not None else WORST
    return worst - 1.0 - min(excess, WORST)


class GoalMetric:
    """The exact goal on rows, at the best threshold (argmax of several classes), as one number.

    Parameters
    ----------
    goal : Goal, str or Expression
    task : Task or str, optional
        Binary by default; of several classes ``Task.multiclass(range(K))``. Labels are codes.
    group : array-like or mapping of array-likes, optional
        The columns that the goal speaks of, for the rows that are judged.
    """

    def __init__(self, goal: Any, *, task: Task | str | None = None, group: Any = None) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.group = group
        check(self.goal, self.task)
        self.width = 2 if self.task.kind == "binary" else len(self.task.classes or ())

    def value(self, scores: Any, label: Any, weight: Any = None) -> float:
        """What early stopping compares; see :func:`merit`."""
        rows = tree_rows(self.width, scores, label, weight)
        columns = columns_of(self.task, rows, take_groups(self.group, len(rows.codes)))
        return merit(self.goal, quick_point(self.goal, columns))


class LightGBMMetric(GoalMetric):
    """The goal for LightGBM's ``feval=``; with ``"metric": "None"`` nothing else stops training."""

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[str, float, bool]:
        """Name, value, and that greater is better."""
        return "goal", self.value(scores, data.get_label(), data.get_weight()), True


class XGBoostMetric(GoalMetric):
    """The goal for XGBoost's ``custom_metric=``; say ``maximize=True`` beside it."""

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[str, float]:
        """Name and value."""
        return "goal", self.value(scores, data.get_label(), data.get_weight())


class CatBoostMetric(GoalMetric):
    """The goal for CatBoost's ``eval_metric``; that of an objective also renews its prices."""

    objective: CatBoostObjective | None = None

    def is_max_optimal(self) -> bool:
        """Greater is better."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """The value as it is."""
        del weight
        return error

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """The value, and 1."""
        scores = np.array(approxes, dtype=np.float64)
        scores = scores[0] if self.width == 2 else scores.T
        if self.objective is not None:
            self.objective.seen(scores, target, weight)
        return self.value(scores, np.array(target), weight), 1.0
