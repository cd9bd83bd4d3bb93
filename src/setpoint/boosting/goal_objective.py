"""A goal as an objective of boosted trees: what is the same for every library.

A library calls its objective once per tree with the scores of all training rows. One objective may
serve several runs, also turn by turn as in cross-validation: each set of rows has its own prices,
and a run whose scores are all alike has only begun. No library multiplies by the weights of rows.
With costs that are all one each objective gives the trees of the library's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint.boosting.cost_gradients import Threshold, TreeCosts, TreeEntropy
from setpoint.boosting.soft_set_gradients import TreeSoftSet
from setpoint.boosting.stopping_metrics import columns_of
from setpoint.boosting.tree_rows import TreeGradients, TreeRows, start_score, tree_rows
from setpoint.expressions import take_groups
from setpoint.goals import Goal, Task
from setpoint.methods.method import Method
from setpoint.methods.table import method
from setpoint.methods.training_hints import TreeGradient
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import best_threshold


def library(name: str) -> Any:
    """A boosting library, loaded when it is first used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise KindError(f'{name} is not installed: pip install "setpoint[{name}]"') from error


class TreeObjective:
    """A goal as an objective of boosted trees.

    Parameters
    ----------
    goal : Goal, str or Expression
    method : {"costs", "soft-set", "cross-entropy"} or Method
        "costs": log loss with the goal's prices as costs, renewed by every tree. "soft-set": the
        goal's formula on soft decisions, mixed with log loss. "cross-entropy": the log loss of the
        library itself.
    task : Task or str, optional
        Binary by default; of several classes ``Task.multiclass(range(K))``. Labels are codes.
    group : array-like or mapping of array-likes, optional
        The columns that the goal speaks of, for the training rows.
    **options
        Options of the method, where it is a name.

    Attributes
    ----------
    width : int
        Number of classes.
    """

    def __init__(
        self,
        goal: Any,
        method: str | Method = "costs",
        *,
        task: Task | str | None = None,
        group: Any = None,
        **options: Any,
    ) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.method = _method(method, **options)
        self._groups = take_groups(group, len(_first(group)))
        self._table: np.ndarray | None = None
        values: dict[str, Any] = {}
        for name in self.goal.columns:
            if name in self._groups:
                distinct, codes = np.unique(self._groups[name], return_inverse=True)
                values[name] = distinct.tolist()
                self._table = codes if self._table is None else self._table * len(distinct) + codes
        self.task = replace(self.task, groups=tuple(values.items()))
        self._runs: WeakKeyDictionary[Any, TreeGradients] = WeakKeyDictionary()
        self.width = self.gradients().width  # what cannot be trained on is refused here

    @property
    def factor(self) -> float:
        """What the library multiplies the hessian of its own log loss by."""
        return 1.0

    def cut(self, rows: TreeRows) -> float:
        """The best threshold of rows of two classes, exactly; inf where nothing is decided."""
        columns = columns_of(self.task, rows, self._groups)
        return best_threshold(GoalOnRows.meet(self.goal, columns))[1]

    def gradients(self) -> TreeGradients:
        """Gradients for a run that begins."""
        return tree_gradients(self.goal, self.task, self.method, self.cut, self.factor)

    def derivatives(
        self, data: Any, scores: Any, label: Any, weight: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give g and h of all training rows of a run, after its prices are renewed.

        Parameters
        ----------
        data : object
            Whose rows they are; runs are told apart by it.
        """
        rows = tree_rows(self.width, scores, label, weight, self._table)
        if self._table is not None and len(self._table) != len(rows.codes):
            raise DataError(
                f"group has {len(self._table)} rows and the training data {len(rows.codes)}"
            )
        if data not in self._runs or rows.constant:
            self._runs[data] = self.gradients()
        run = self._runs[data]
        run.renew(rows)
        return run.of(rows)

    def start(self, y: Any, weight: Any = None) -> np.ndarray:
        """The scores before the first tree, (1,) or (K,): weighted log odds, or log shares.

        A library adds them for its own log loss and not for an objective of one's own; give them
        to the training rows, to the rows that stop training early, and add them to what is
        predicted.
        """
        y = np.asarray(y)
        shape = (len(y),) if self.width == 2 else (len(y), self.width)
        narrow = None if weight is None else np.float32(weight)  # as every library keeps weights
        rows = tree_rows(self.width, np.zeros(shape), y, narrow)
        return start_score(rows.codes, rows.weight, self.width)

    def __getstate__(self) -> dict[str, Any]:
        """A copy begins anew."""
        return {**self.__dict__, "_runs": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_runs": WeakKeyDictionary()}.items():
            setattr(self, name, value)


def tree_gradients(
    goal: Goal, task: Task, way: Method, cut: Threshold, factor: float = 1.0
) -> TreeGradients:
    """The gradients of a goal by a method, for a run that begins; raises where there are none."""
    if task.kind not in ("binary", "multiclass"):
        raise KindError(f"boosted trees take a binary or multiclass task, not {task.kind}")
    if task.kind == "multiclass" and len(task.classes or ()) < 3:
        raise KindError(
            "a multiclass task of boosted trees says its three or more classes: "
            "Task.multiclass(range(3)); two classes are Task.binary()"
        )
    kind = way.hints.tree_gradient
    if kind is None:
        raise KindError(
            f'method="{way.name}" has no gradient for trees; take "costs", "soft-set" or '
            '"cross-entropy"'
        )
    return TREE_GRADIENTS[kind].for_goal(goal, task, way, cut, factor)


TREE_GRADIENTS: dict[TreeGradient, Any] = {
    TreeGradient.LOG_LOSS: TreeEntropy,
    TreeGradient.COSTS: TreeCosts,
    TreeGradient.SOFT_SET: TreeSoftSet,
}


def _first(group: Any) -> Any:
    """One of the group columns; no rows where there is none."""
    if isinstance(group, Mapping):
        return next(iter(group.values()), ())
    return () if group is None else group


_method = method
