"""Base of the estimators of all libraries: rows in, raw scores out, texts."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from setpoint._core.errors import FileError, KindError, SetpointError
from setpoint._core.options import number, whole
from setpoint._core.words import listing
from setpoint.datasets import split
from setpoint.datasets.class_labels import (
    ClassLabels,
    allows_several_classes,
    needs_two,
    read_labels,
)
from setpoint.expressions import Expression, take_groups
from setpoint.expressions.rows.row_events import Label
from setpoint.goals import Goal, Task
from setpoint.methods import Method

FORMAT = "setpoint boosted classifier 1"


class GoalBooster(ClassifierMixin, BaseEstimator):
    """Base of the three estimators: rows in, raw scores out, texts."""

    name: ClassVar[str]
    objective: ClassVar[Any]
    metric: ClassVar[Any]
    taken: ClassVar[tuple[str, ...]]  #: parameters of the library that are not the user's to give
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        goal: Goal | Expression | str = "maximize balanced_accuracy",
        method: str | Method = "costs",
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        early_stopping: int | None = None,
        validation_fraction: float = 0.2,
        params: dict[str, Any] | None = None,
        task: Task | str | None = None,
        positive: Label = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.goal = goal
        self.method = method
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.params = params
        self.task = task
        self.positive = positive
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Missing values are taken, and several classes where the goal allows them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = allows_several_classes(self.goal, self.task)
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        group: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """Boost trees on the goal.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Numbers; missing values are NaN.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        group : array-like or mapping of array-likes, optional
            The columns that the goal speaks of.
        """
        goal, seed = Goal.of(self.goal), self._checked()
        X = cast(
            np.ndarray,
            validate_data(self, cast("Any", X), dtype=np.float64, ensure_all_finite="allow-nan"),
        )
        labels, codes = read_labels(goal, y, len(X), self.task, self.positive)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        needs_two(codes, weight)
        self.task_ = labels.task
        self.classes_ = labels.classes
        self.notes_ = ()
        groups = take_groups(group, len(X))
        rows, validation = np.arange(len(X)), None
        if self.early_stopping is not None:
            rows, validation, shared = split(codes, self.validation_fraction, seed)
            if shared:
                validation = None
                self.notes_ = ("too few rows of a class to keep some apart: no early stopping",)

        def some(rows: np.ndarray) -> dict[str, np.ndarray] | None:
            return {name: values[rows] for name, values in groups.items()} or None

        def data(rows: np.ndarray, train: Any = None) -> Any:
            w, more = None if weight is None else weight[rows], self._options(train)
            return objective.data(X[rows], codes[rows], w, start=self.start_, **more)

        objective = self.objective(goal, self.method, task=self._codes_task(), group=some(rows))
        self.start_ = objective.start(codes[rows], None if weight is None else weight[rows])
        train = data(rows)
        valid = None if validation is None else data(validation, train)
        metric = self._judge(objective, None if validation is None else some(validation))
        booster, self.history_ = self._train(objective, train, valid, metric, seed)
        self.booster_ = self._read(self._write(booster))
        self.n_iter_ = self._rounds(self.booster_)
        return self

    def _checked(self) -> int:
        """Refuse settings that nothing can be done with; the seed."""
        whole("n_estimators", self.n_estimators, 1, error=KindError)
        if self.early_stopping is not None:
            whole("early_stopping", self.early_stopping, 1, error=KindError)
        number("learning_rate", self.learning_rate, 0, open_low=True, error=KindError)
        if self.params is not None and not isinstance(self.params, dict):
            raise KindError(f"params={self.params!r}: a dict of {self.name}'s own parameters")
        reserved = [name for name in self.params or () if name in self.taken]
        if reserved:
            raise KindError(
                f"params holds {listing(reserved)}, which the goal or an argument of its own "
                "decides"
            )
        state = self.random_state
        if state is None or isinstance(state, np.random.RandomState):
            return int((state or np.random.RandomState()).randint(2**31 - 1))
        if isinstance(state, int | np.integer) and 0 <= state < 2**31:
            return int(state)
        raise KindError(f"random_state={state!r}: a whole number, 0 or more, or None")

    def _codes_task(self) -> Task:
        """The task over codes 0 and 1, or places of the classes."""
        return Task.binary() if self.task_.kind == "binary" else self.task_

    @property
    def _several(self) -> int | None:
        return None if self.task_.kind == "binary" else len(self.classes_)

    # --- predicting ------------------------------------------------------------------------------

    def _scores(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self, "booster_")
        X = validate_data(
            self, cast("Any", X), reset=False, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        return self.objective.scores(self.booster_, X, self.start_)

    @property
    def _turned(self) -> bool:
        """Whether the positive class is the first of the classes."""
        pair = ClassLabels(self.task_, self.classes_).pair
        return self._several is None and pair[0] != self.classes_[0]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Raw scores: (n,) of the second class, or (n, K)."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return scores
        scores = np.where(scores == 0, np.finfo(np.float64).tiny, scores)  # ½ is decided positive
        return -scores if self._turned else scores

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the classes, (n, K); by a goal's costs they rank, uncalibrated."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return softmax(scores, 1)
        return np.stack([expit(-scores), expit(scores)], 1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class that is more likely than not; ``sp.tune`` finds the threshold of the goal."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return self.classes_[scores.argmax(1)]
        return ClassLabels(self.task_, self.classes_).pair[(scores >= 0).astype(np.intp)]

    # --- texts -----------------------------------------------------------------------------------

    def to_text(self) -> str:
        """The fitted classifier as JSON, the trees in the library's own text; no pickle."""
        check_is_fitted(self, "booster_")
        way = self.method if isinstance(self.method, str) else self.method.name
        about = {
            "format": FORMAT,
            "library": self.name,
            "goal": str(Goal.of(self.goal)),
            "method": way,
            "task": self.task_.to_json(),
            "classes": self.classes_.tolist(),
            "start": self.start_.tolist(),
            "features": self.n_features_in_,
            "names": getattr(self, "feature_names_in_", np.array([])).tolist() or None,
            "history": self.history_,
            "rounds": self.n_iter_,
            "model": self._write(self.booster_),
        }
        return json.dumps(about, allow_nan=False)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what :meth:`to_text` wrote; settings that only fitting needs are the defaults."""
        try:
            about = json.loads(text)
            if about["format"] != FORMAT or about["library"] != cls.name:
                raise FileError(f'this is no classifier of {cls.name} in the format "{FORMAT}"')
            self = cls(about["goal"], about["method"])
            self.task_ = Task.from_json(about["task"])
            mixed = len({type(c) for c in about["classes"]}) > 1
            self.classes_ = np.array(about["classes"], dtype=object if mixed else None)
            self.start_ = np.array(about["start"], dtype=np.float64)
            self.n_features_in_ = int(about["features"])
            if about["names"] is not None:
                self.feature_names_in_ = np.array(about["names"], dtype=object)
            self.history_ = list(about["history"])
            self.notes_ = ()
            self.booster_ = self._read(about["model"])
            self.n_iter_ = self._rounds(self.booster_)
            if self.n_iter_ != about["rounds"]:
                raise FileError(
                    f"{about['rounds']} rounds were written and {self.n_iter_} are there"
                )
        except SetpointError:
            raise
        except Exception as error:  # each library has errors of its own
            raise FileError(f"the text of a boosted classifier is damaged: {error}") from error
        return self

    def _judge(self, objective: Any, group: Any) -> Any:
        """The metric that stops training."""
        return self.metric(objective.goal, task=self._codes_task(), group=group)

    def _options(self, train: Any) -> dict[str, Any]:
        """Options of the data, of the training rows or of rows beside them."""
        del train
        return {}

    @abstractmethod
    def _train(
        self, objective: Any, train: Any, valid: Any, metric: Any, seed: int
    ) -> tuple[Any, list[float]]:
        """The library's booster, its best trees only, and the goal on the held rows by tree."""

    @staticmethod
    @abstractmethod
    def _write(booster: Any) -> str:
        """A booster as text."""

    @staticmethod
    @abstractmethod
    def _read(text: str) -> Any:
        """A booster from its text; nothing in it is executed."""

    @staticmethod
    @abstractmethod
    def _rounds(booster: Any) -> int:
        """How many rounds of trees it holds."""
