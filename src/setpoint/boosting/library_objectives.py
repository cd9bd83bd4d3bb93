"""A goal as the objective of each library, with the data it wants and the scores it gives back."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint.boosting.goal_objective import TreeObjective
from setpoint.boosting.library_conventions import CatBoostTrees, LightGBMTrees, XGBoostTrees
from setpoint.boosting.stopping_metrics import CatBoostMetric, columns_of
from setpoint.boosting.tree_rows import TreeRows, spread
from setpoint.methods import Method
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import best_threshold


def library(name: str) -> Any:
    """A boosting library, loaded when it is first used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise KindError(f'{name} is not installed: pip install "setpoint[{name}]"') from error


class _ExactThreshold(TreeObjective):
    """Thresholds by the exact search."""

    def cut(self, rows: TreeRows) -> float:
        columns = columns_of(self.task, rows, self._groups)
        return best_threshold(GoalOnRows.meet(self.goal, columns))[1]


class LightGBMObjective(_ExactThreshold, LightGBMTrees):
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

    @staticmethod
    def data(X: Any, y: Any = None, weight: Any = None, *, start: Any, **options: Any) -> Any:
        """A ``Dataset`` whose rows start at the start score; options are LightGBM's."""
        scores = spread(start, len(X))
        return library("lightgbm").Dataset(X, y, weight=weight, init_score=scores, **options)

    @staticmethod
    def scores(booster: Any, X: Any, start: Any) -> np.ndarray:
        """Raw scores of rows, the start score among them: (n,) or (n, K)."""
        return booster.predict(X, raw_score=True) + spread(start, len(X))


class XGBoostObjective(_ExactThreshold, XGBoostTrees):
    """A goal for XGBoost: ``xgb.train(…, obj=XGBoostObjective(goal))``.

    Say ``"disable_default_eval_metric": True``, and ``"num_class": K`` of several classes.
    """

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


class CatBoostObjective(_ExactThreshold, CatBoostTrees):
    """A goal for CatBoost: ``{"loss_function": objective, "eval_metric": objective.metric}``.

    Say ``"boosting_type": "Plain"`` too. There are no groups, and several classes are slow, since
    CatBoost asks about one row at a time.
    """

    def __init__(self, goal: Any, method: str | Method = "costs", **options: Any) -> None:
        super().__init__(goal, method, **options)
        self.metric = CatBoostMetric(self.goal, task=self.task)
        self.metric.objective = self

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
