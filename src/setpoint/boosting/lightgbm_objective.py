"""LightGBM: a goal as its objective, the data it wants and the scores it gives back.

LightGBM calls ``objective(scores, Dataset)`` once per tree. The hessian of its own log loss is
K/(K − 1) · p (1 − p) of K classes; its start is log p_k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.boosting.goal_objective import TreeObjective, library
from setpoint.boosting.tree_rows import spread


class LightGBMObjective(TreeObjective):
    """A goal for LightGBM: ``lgb.train({"objective": LightGBMObjective(goal), "metric": "None"})``.

    Several classes also need ``"num_class": K``. Parameters are those of ``TreeObjective``: the
    goal, ``method="costs"``, ``task=``, ``group=`` and the method's own options.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np
    >>> X = np.arange(200.0)[:, None]
    >>> y = (X[:, 0] % 50 > 30).astype(int)
    >>> objective = LightGBMObjective("maximize f1")
    >>> start = objective.start(y)
    >>> params = {"objective": objective, "metric": "None", "verbosity": -1}
    >>> booster = lgb.train(params, objective.data(X, y, start=start), num_boost_round=20)
    >>> objective.scores(booster, X[:3], start).shape
    (3,)
    """

    def __call__(self, scores: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, (n,) or (n, K)."""
        return self.derivatives(data, scores, data.get_label(), data.get_weight())

    @property
    def factor(self) -> float:
        k = len(self.task.classes or ())
        return k / (k - 1) if self.task.kind == "multiclass" and k > 1 else 1.0

    @staticmethod
    def data(X: Any, y: Any = None, weight: Any = None, *, start: Any, **options: Any) -> Any:
        """A ``Dataset`` whose rows start at the start score; options are LightGBM's."""
        scores = spread(start, len(X))
        return library("lightgbm").Dataset(X, y, weight=weight, init_score=scores, **options)

    @staticmethod
    def scores(booster: Any, X: Any, start: Any) -> np.ndarray:
        """Raw scores of rows, the start score among them: (n,) or (n, K)."""
        return booster.predict(X, raw_score=True) + spread(start, len(X))
