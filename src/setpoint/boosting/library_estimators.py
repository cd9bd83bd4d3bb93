"""The estimators, one for each library, and the table of what there is."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from setpoint.boosting.booster import GoalBooster
from setpoint.boosting.catboost_objective import CatBoostObjective
from setpoint.boosting.goal_objective import TreeObjective, library
from setpoint.boosting.lightgbm_objective import LightGBMObjective
from setpoint.boosting.stopping_metrics import (
    CatBoostMetric,
    GoalMetric,
    LightGBMMetric,
    XGBoostMetric,
)
from setpoint.boosting.xgboost_objective import XGBoostObjective


class GoalLGBMClassifier(GoalBooster):
    """LightGBM's trees, boosted on a goal.

    Parameters
    ----------
    goal : str, Goal or Expression
    method : {"costs", "soft-set", "cross-entropy"} or Method
    n_estimators : int
        Rounds of boosting, at most.
    learning_rate : float
    early_stopping : int, optional
        Stop after so many rounds without a better goal on rows kept apart.
    validation_fraction : float
        Share of the rows kept apart for that.
    params : dict, optional
        LightGBM's own parameters by their names: ``{"num_leaves": 15}``.
    task : str or Task, optional
        Inferred from ``y`` otherwise.
    positive : label, optional
        The positive class of two, where the goal tells them apart.
    n_jobs : int, optional
        Threads; LightGBM's default otherwise.
    random_state : int, RandomState or None

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees, up to the best round.
    start_ : numpy.ndarray
        The score that the trees add to.
    history_ : list of float
        With early stopping, the goal on the rows kept apart after each round (see ``merit``).
    n_iter_ : int
        Rounds kept.
    classes_, task_, notes_, n_features_in_

    Examples
    --------
    >>> import setpoint as sp
    >>> data = sp.datasets.load("breast-cancer")
    >>> clf = GoalLGBMClassifier("maximize recall subject to precision >= 0.95", early_stopping=20)
    >>> clf = clf.fit(data.X[::2], data.y[::2])
    >>> sp.tune(clf.goal, data.y[1::2], clf.predict_proba(data.X[1::2])[:, 1]).feasible
    True
    """

    name = "lightgbm"
    objective, metric = LightGBMObjective, LightGBMMetric
    taken = ("objective", "metric", "num_class", "learning_rate", "num_iterations")

    def _options(self, train: Any) -> dict[str, Any]:
        return {"params": {"verbosity": -1, **(self.params or {})}, "reference": train}

    def _train(
        self, objective: Any, train: Any, valid: Any, metric: Any, seed: int
    ) -> tuple[Any, list[float]]:
        lgb = library("lightgbm")
        params = {
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise": True,
            "seed": seed,
            "num_threads": self.n_jobs or 0,
            **(self.params or {}),
            "objective": objective,
            "metric": "None",
            "learning_rate": self.learning_rate,
            "num_class": self._several or 1,
        }
        record: dict[str, Any] = {}
        more: dict[str, Any] = {}
        if valid is not None:
            calls = [lgb.early_stopping(self.early_stopping, verbose=False)]
            calls.append(lgb.record_evaluation(record))
            more = {"valid_sets": [valid], "valid_names": ["held"], "callbacks": calls}
        train.construct()  # puts the columns into bins
        if not any(train.feature_num_bin(i) for i in range(train.num_feature())):
            self.notes_ += ("no column can be split with so few rows: there are no trees",)
            return lgb.Booster({**params, "objective": "none"}, train), []
        booster = lgb.train(params, train, self.n_estimators, feval=metric, **more)
        return booster, [float(x) for x in record.get("held", {}).get("goal", ())]

    @staticmethod
    def _write(booster: Any) -> str:
        return booster.model_to_string(num_iteration=booster.best_iteration)

    @staticmethod
    def _read(text: str) -> Any:
        return library("lightgbm").Booster(model_str=text)

    @staticmethod
    def _rounds(booster: Any) -> int:
        return int(booster.current_iteration())


class GoalXGBClassifier(GoalBooster):
    """XGBoost's trees, boosted on a goal; as :class:`GoalLGBMClassifier`, ``params`` XGBoost's."""

    name = "xgboost"
    objective, metric = XGBoostObjective, XGBoostMetric
    taken = ("objective", "eval_metric", "num_class", "base_score", "eta", "learning_rate")

    def _train(
        self, objective: Any, train: Any, valid: Any, metric: Any, seed: int
    ) -> tuple[Any, list[float]]:
        xgb = library("xgboost")
        params = {
            "verbosity": 0,
            "seed": seed,
            "nthread": self.n_jobs or 0,
            **(self.params or {}),
            "eta": self.learning_rate,
            "disable_default_eval_metric": True,
            **({} if self._several is None else {"num_class": self._several}),
        }
        record: dict[str, Any] = {}
        more: dict[str, Any] = {}
        if valid is not None:
            stop = xgb.callback.EarlyStopping(
                rounds=self.early_stopping, metric_name="goal", maximize=True, save_best=True
            )
            more = {"evals": [(valid, "held")], "custom_metric": metric, "evals_result": record}
            more |= {"callbacks": [stop], "verbose_eval": False}
        booster = xgb.train(params, train, self.n_estimators, obj=objective, **more)
        return booster, [float(x) for x in record.get("held", {}).get("goal", ())]

    @staticmethod
    def _write(booster: Any) -> str:
        return booster.save_raw("json").decode("utf-8")

    @staticmethod
    def _read(text: str) -> Any:
        booster = library("xgboost").Booster()
        booster.load_model(bytearray(text, "utf-8"))
        return booster

    @staticmethod
    def _rounds(booster: Any) -> int:
        return int(booster.num_boosted_rounds())


class GoalCatBoostClassifier(GoalBooster):
    """CatBoost's trees, boosted on a goal; as :class:`GoalLGBMClassifier`, ``params`` CatBoost's.

    Goals on groups are refused, and several classes are slow.
    """

    name = "catboost"
    objective, metric = CatBoostObjective, CatBoostMetric
    taken = ("loss_function", "eval_metric", "classes_count", "iterations", "learning_rate")

    def _judge(self, objective: Any, group: Any) -> Any:
        del group
        return objective.metric  # which also shows the objective all training rows

    def _train(
        self, objective: Any, train: Any, valid: Any, metric: Any, seed: int
    ) -> tuple[Any, list[float]]:
        params = {
            "logging_level": "Silent",
            "allow_writing_files": False,
            "boosting_type": "Plain",
            "leaf_estimation_iterations": 1,
            "random_seed": seed,
            "thread_count": self.n_jobs or -1,
            **(self.params or {}),
            "loss_function": objective,
            "eval_metric": metric,
            "iterations": self.n_estimators,
            "learning_rate": self.learning_rate,
            **({} if self._several is None else {"classes_count": self._several}),
        }
        booster = library("catboost").CatBoost(params)
        more: dict[str, Any] = {}
        if valid is not None:
            more = {"early_stopping_rounds": self.early_stopping, "use_best_model": True}
        with warnings.catch_warnings():  # it would compile an objective, if it could
            warnings.filterwarnings("ignore", message=".*numba")
            booster.fit(train, eval_set=valid, **more)
        history = booster.get_evals_result().get("validation", {})
        return booster, [float(x) for x in history.get("CatBoostMetric", ())]

    @staticmethod
    def _write(booster: Any) -> str:
        with tempfile.TemporaryDirectory() as folder:  # it writes to files only
            path = Path(folder, "model.json")
            booster.save_model(str(path), format="json")
            return path.read_text(encoding="utf-8")

    @staticmethod
    def _read(text: str) -> Any:
        json.loads(text)  # half a text would be read as a model without trees
        booster = library("catboost").CatBoost()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            path.write_text(text, encoding="utf-8")
            booster.load_model(str(path), format="json")
        return booster

    @staticmethod
    def _rounds(booster: Any) -> int:
        return int(booster.tree_count_)


class Booster(NamedTuple):
    """What there is for one library."""

    objective: type[TreeObjective]
    metric: type[GoalMetric]
    estimator: type[GoalBooster]


#: the libraries by name
BOOSTERS: dict[str, Booster] = {
    kind.name: Booster(kind.objective, kind.metric, kind)
    for kind in (GoalLGBMClassifier, GoalXGBClassifier, GoalCatBoostClassifier)
}
