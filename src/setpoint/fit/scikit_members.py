"""Classifiers of scikit-learn under a goal: the goal's own costs as sample weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from setpoint._core.errors import KindError
from setpoint.datasets import Split
from setpoint.datasets.class_labels import ClassLabels
from setpoint.expressions import take_in
from setpoint.goals import Goal, Task
from setpoint.methods import Method
from setpoint.methods.method import LabelledOutputs
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import best_threshold, quick_point

FOLDS = 5


class Classifier(Protocol):
    """A fitted classifier of scikit-learn; one of the two kinds of scores is enough."""

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes."""


def fit_classifier(
    goal: Goal,
    labels: ClassLabels,
    model: BaseEstimator,
    method: Method,
    rows: Callable[[np.ndarray], Any],
    codes: np.ndarray,
    weight: np.ndarray | None,
    parts: Split,
    seed: int,
) -> tuple[Classifier, tuple[str, ...]]:
    """A classifier fitted on the train rows, with the goal's costs if they help on the tune rows.

    Parameters
    ----------
    rows : callable
        ``rows(indices)`` gives some rows of X.
    """
    _refuse(goal, labels.task, model, method, weight)
    train = parts.train
    w = None if weight is None else weight[train]

    def fitted(some: np.ndarray, w: np.ndarray | None) -> Any:
        new: Any = clone(model)
        return new.fit(rows(some), codes[some], **({} if w is None else {"sample_weight": w}))

    def out_of_fold(fold: np.ndarray, held: np.ndarray) -> np.ndarray:
        one = fitted(train[fold], None if w is None else w[fold])
        return classifier_scores(one, rows(train[held]), labels.task)

    def rank(one: Classifier) -> tuple[float, ...]:
        columns = take_in(
            labels.task,
            labels.named(codes[parts.tune]),
            scores=classifier_scores(one, rows(parts.tune), labels.task),
            sample_weight=None if weight is None else weight[parts.tune],
        )
        return quick_point(goal, columns).rank(goal.sign)

    plain = fitted(train, w)
    if not method.hints.class_costs:
        return plain, ()
    costs, note = reweighted(out_of_fold, goal, labels, method, codes[train], w, seed)
    costly = fitted(train, costs)
    if rank(costly) > rank(plain):
        return costly, (note,)
    return plain, (f"{note}; the plain fit was as good on the tune rows and is kept",)


def classifier_scores(model: Classifier, X: Any, task: Task) -> np.ndarray:
    """Probabilities where a classifier has them, else its decision function."""
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        return p[:, 1] if task.kind == "binary" else _placed(p, model.classes_, task, 0.0)
    z = np.asarray(model.decision_function(X), dtype=np.float64)
    if task.kind == "binary":
        return z
    if z.ndim == 1:  # two classes of several in these rows
        z = np.stack([-z, z], 1)
    return _placed(z, model.classes_, task, float(z.min()) - 1.0)


def _placed(scores: np.ndarray, classes: np.ndarray, task: Task, absent: float) -> np.ndarray:
    """Columns of the classes that a model knows (codes) among those of the task."""
    width = len(task.classes or ())
    if scores.shape[1] == width:
        return scores
    placed = np.full((len(scores), width), absent)
    placed[:, np.asarray(classes, dtype=np.int64)] = scores
    return placed


def _refuse(
    goal: Goal, task: Task, model: BaseEstimator, method: Method, weight: np.ndarray | None
) -> None:
    name, takes = type(model).__name__, has_fit_parameter(model, "sample_weight")
    if task.kind == "multilabel":
        raise KindError("a classifier of scikit-learn is taken for one label per row here")
    if weight is not None and not takes:
        raise KindError(f"{name}.fit takes no sample_weight; leave it out")
    why = method.classifier_objection(goal, name)
    if why is not None:
        raise KindError(why)
    if method.hints.class_costs and not takes:
        raise KindError(f"{name}.fit takes no sample_weight, which costs need")


def reweighted(
    fit: Callable[[np.ndarray, np.ndarray], np.ndarray],
    goal: Goal,
    labels: ClassLabels,
    method: Method,
    codes: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
) -> tuple[np.ndarray, str]:
    """Sample weights with the goal's costs, from decisions on rows that a model has not seen.

    Scores are taken out of fold at the best threshold (binary) or by argmax; the goal's prices at
    those decisions weigh the rows of each class.

    Parameters
    ----------
    fit : callable
        ``fit(train, held) -> scores`` on indices of rows: trains on the first, scores the second.
    codes : numpy.ndarray
        (n,) codes of the classes.

    Returns
    -------
    numpy.ndarray, str
        (n,) weights, and a sentence on what the costs are.
    """
    task = labels.task
    scores = None
    folds = min(FOLDS, int(np.bincount(codes).min()))
    if folds < 2:
        unit = np.ones(len(codes))
        return unit if weight is None else weight, "too few rows of a class for costs"
    for train, held in StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes):
        part = fit(train, held)
        scores = np.zeros((len(codes), *part.shape[1:])) if scores is None else scores
        scores[held] = part
    outputs, threshold = _outputs(goal, labels, scores, codes, weight)
    w = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    rows = LabelledOutputs(outputs, torch.as_tensor(codes), w)
    costs = method.class_costs(goal, task, rows, threshold)
    assert costs is not None  # as the method's hints promise
    names = ("rest", "positive") if task.kind == "binary" else task.classes or ()
    by_class = ", ".join(f"{name} {c:.3g}" for name, c in zip(names, costs, strict=True))
    note = f"costs of a mistake, by class: {by_class}"
    return costs[codes] * (1.0 if weight is None else weight), note


def _outputs(
    goal: Goal, labels: ClassLabels, scores: Any, codes: np.ndarray, weight: np.ndarray | None
) -> tuple[torch.Tensor, float | None]:
    """Outputs whose sign or argmax decides; the threshold where scores are probabilities."""
    if labels.task.kind == "multiclass":
        return torch.as_tensor(scores, dtype=torch.float32), None
    columns = take_in(
        labels.task, labels.named(codes), scores=scores, sample_weight=weight
    ).on_host()
    _, threshold = best_threshold(GoalOnRows.meet(goal, columns))
    decided = np.where(scores >= threshold, 1.0, -1.0)
    inside = 0 < threshold < 1 and bool(((scores >= 0) & (scores <= 1)).all())
    return torch.as_tensor(decided, dtype=torch.float32), threshold if inside else None
