"""CatBoost: a goal as its objective, the data it wants and the scores it gives back.

CatBoost asks for some rows at a time, of K classes for one, so that prices have to come from
elsewhere: its metric sees all training rows after every tree, and hands them to ``seen``. The
hessian of its own log loss is diag(p) − p pᵀ of K classes; it has no start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint.boosting.goal_objective import TreeObjective, library
from setpoint.boosting.stopping_metrics import CatBoostMetric
from setpoint.boosting.tree_rows import coupled, spread, tree_rows
from setpoint.goals import Goal
from setpoint.methods.method import Method


class CatBoostObjective(TreeObjective):
    """A goal for CatBoost: ``{"loss_function": objective, "eval_metric": objective.metric}``.

    Say ``"boosting_type": "Plain"`` too. There are no groups, and several classes are slow, since
    CatBoost asks about one row at a time.

    CatBoost copies objective and metric together before it starts, so every run begins anew.
    """

    def __init__(self, goal: Any, method: str | Method = "costs", **options: Any) -> None:
        if options.get("group") is not None or Goal.of(goal).columns:
            raise KindError(
                "CatBoost does not tell an objective which rows it asks about, so it knows no "
                "groups; take LightGBM or XGBoost"
            )
        super().__init__(goal, method, **options)
        self._run = self.gradients()
        self._asked = True
        self.metric = CatBoostMetric(self.goal, task=self.task)
        self.metric.objective = self
        if self.width == 2:  # CatBoost looks which of the two there is
            self.calc_ders_range = self._some
        else:
            self.calc_ders_multi = self._one

    def _some(self, approxes: Any, targets: Any, weights: Any) -> np.ndarray:
        """(n, 2) of two classes; CatBoost climbs, so both derivatives are negated."""
        self._asked = True
        rows = tree_rows(2, np.array(approxes), np.array(targets), weights)
        return -np.stack(self._run.of(rows), 1)

    def _one(self, approxes: Any, target: Any, weight: Any) -> tuple[Any, Any]:
        """The gradient and the whole hessian of one row."""
        self._asked = True
        rows = tree_rows(self.width, np.array(approxes)[None], [target], [weight])
        g, h = self._run.of(rows)
        return (-g[0]).tolist(), (-coupled(rows, h)).tolist()

    def seen(self, scores: np.ndarray, label: Any, weight: Any) -> None:
        """Renew prices from all training rows, which are the first to be judged after a tree."""
        if self._asked:
            self._run.renew(tree_rows(self.width, scores, np.array(label), weight))
        self._asked = False

    @staticmethod
    def data(X: Any, y: Any = None, weight: Any = None, *, start: Any, **options: Any) -> Any:
        """A ``Pool`` whose rows start at the start score; options are CatBoost's."""
        scores = spread(start, len(X))
        return library("catboost").Pool(X, y, weight=weight, baseline=scores, **options)

    @staticmethod
    def scores(booster: Any, X: Any, start: Any) -> np.ndarray:
        """Raw scores of rows, the start score among them: (n,) or (n, K)."""
        scores = booster.predict(X, prediction_type="RawFormulaVal")
        return np.asarray(scores) + spread(start, len(X))
