"""XGBoost: a goal as its objective, the data it wants and the scores it gives back.

XGBoost calls ``objective(scores, DMatrix)`` once per tree. The hessian of its own log loss is
2 · p (1 − p) of K classes; its start is log p_k less their mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.boosting.goal_objective import TreeObjective, library
from setpoint.boosting.tree_rows import spread


class XGBoostObjective(TreeObjective):
    """A goal for XGBoost: ``xgb.train(…, obj=XGBoostObjective(goal))``.

    Say ``"disable_default_eval_metric": True``, and ``"num_class": K`` of several classes.
    """

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, (n,) or (n, K)."""
        return self.derivatives(data, scores, data.get_label(), data.get_weight())

    @property
    def factor(self) -> float:
        return 2.0 if self.task.kind == "multiclass" else 1.0

    def start(self, y: Any, weight: Any = None) -> np.ndarray:
        scores = super().start(y, weight)
        return scores if self.width == 2 else scores - scores.mean()

    @staticmethod
    def data(X: Any, y: Any = None, weight: Any = None, *, start: Any, **options: Any) -> Any:
        """A ``DMatrix`` whose rows start at the start score; options are XGBoost's."""
        margin = spread(start, len(X))
        return library("xgboost").DMatrix(X, y, weight=weight, base_margin=margin, **options)

    @staticmethod
    def scores(booster: Any, X: Any, start: Any) -> np.ndarray:
        """Raw scores of rows, the start score among them: (n,) or (n, K)."""
        scores = booster.predict(XGBoostObjective.data(X, start=start), output_margin=True)
        return np.asarray(scores, dtype=np.float64)
