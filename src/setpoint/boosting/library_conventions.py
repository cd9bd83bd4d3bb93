"""Conventions of each library: how it asks an objective, and what its own log loss does.

                hessian of K classes     start of K classes        asks for
    LightGBM    K/(K − 1) · p (1 − p)    log p_k                   all rows
    XGBoost     2 · p (1 − p)            log p_k less their mean   all rows
    CatBoost    diag(p) − p pᵀ           none                      some rows; of K classes one

None of them multiplies by the weights of rows. With costs that are all one each objective gives the
trees of the library's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint.boosting.goal_objective import TreeObjective
from setpoint.boosting.tree_rows import coupled, tree_rows
from setpoint.goals import Goal
from setpoint.methods.method import Method


class LightGBMTrees(TreeObjective):
    """LightGBM calls ``objective(scores, Dataset)`` once per tree."""

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, (n,) or (n, K)."""
        return self.derivatives(data, scores, data.get_label(), data.get_weight())

    @property
    def factor(self) -> float:
        k = len(self.task.classes or ())
        return k / (k - 1) if self.task.kind == "multiclass" and k > 1 else 1.0


class XGBoostTrees(TreeObjective):
    """XGBoost calls ``objective(scores, DMatrix)`` once per tree."""

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, (n,) or (n, K)."""
        return self.derivatives(data, scores, data.get_label(), data.get_weight())

    @property
    def factor(self) -> float:
        return 2.0 if self.task.kind == "multiclass" else 1.0

    def start(self, y: Any, weight: Any = None) -> np.ndarray:
        scores = super().start(y, weight)
        return scores if self.width == 2 else scores - scores.mean()


class CatBoostTrees(TreeObjective):
    """CatBoost asks for some rows at a time, so that prices have to come from elsewhere.

    Its metric sees all training rows after every tree, and hands them to ``seen``. CatBoost copies
    objective and metric together before it starts, so every run begins anew.
    """

    def __init__(self, goal: Any, method: str | Method = "costs", **options: Any) -> None:
        if options.get("group") is not None or Goal.of(goal).columns:
            raise KindError(
                "CatBoost does not tell an objective which rows it asks about, so it knows no "
                "groups; take LightGBM or XGBoost"
            )
        super().__init__(goal, method, **options)
        self._run, self._asked = self.gradients(), True
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
