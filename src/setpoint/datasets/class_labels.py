"""Labels of a classifier: which classes there are, which is positive, and their codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, column_or_1d

from setpoint._core.errors import Argument, DataError, GoalError, SetpointError
from setpoint._core.words import listing
from setpoint.datasets.labels import plain_positive, shown, unstated_positive
from setpoint.goals import Goal, Task, check, symmetric


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """The classes of a task as scikit-learn lists them, sorted, and as the task knows them.

    Codes are 0 and 1 (positive) of a binary task, places in ``classes`` of a multiclass one, a 0/1
    matrix of a multilabel one.
    """

    task: Task
    classes: np.ndarray

    @property
    def pair(self) -> np.ndarray:
        """The negative and the positive class."""
        if self.task.positive is None:
            return self.classes
        same = self.classes == self.task.positive
        return self.classes[[int(np.argmin(same)), int(np.argmax(same))]]

    def named(self, codes: np.ndarray) -> np.ndarray:
        """Codes as the labels that the task knows."""
        if self.task.kind == "multiclass":
            return self.classes[codes]
        if self.task.positive is None or isinstance(self.task.positive, bool):
            return codes.astype(bool)
        positive = self.task.positive
        rest = self.pair.tolist()[0]
        if type(rest) is not type(positive):  # one class against several: any other label will do
            rest = f"not {positive}" if isinstance(positive, str) else positive + 1
        return np.where(codes == 1, positive, rest)

    def codes(self, y: Any) -> np.ndarray:
        """Codes of labels seen before."""
        if self.task.kind == "multilabel":
            return np.asarray(y).astype(np.int64)
        labels = column_or_1d(y)
        if self.task.kind == "binary" and self.classes.dtype == object:
            return (labels == self.pair[1]).astype(np.int64)  # one class against several
        unknown = ~np.isin(labels, self.classes)
        if unknown.any():
            classes = listing(self.classes.tolist())
            raise DataError(
                f"y holds {labels[unknown].tolist()[0]!r}, which was no class when fitting; there "
                f"were {classes}"
            )
        if self.task.kind == "binary":
            return (labels == self.pair[1]).astype(np.int64)
        return np.searchsorted(self.classes, labels)


def read_labels(
    goal: Goal, y: Any, rows: int, task: Task | str | None, positive: Any
) -> tuple[ClassLabels, np.ndarray]:
    """The labels of a task that is declared or plain from ``y``, and the codes of the rows."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None")
    declared = None if task is None else Task.make(task)
    kind = None if declared is None else declared.kind
    if kind in ("ranking", "regression"):
        raise GoalError(f"a {kind} task has no classes; GoalClassifier decides among classes")
    _complete(y)
    if kind == "multilabel" or (kind is None and type_of_target(y).startswith("multilabel")):
        return _several_labels(y, rows, declared)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(y) != rows:
        raise DataError(f"X has {rows} rows and y has {len(y)}; they must agree")
    classes, codes = np.unique(y, return_inverse=True)
    if positive is None and declared is not None:
        positive = declared.positive
    if positive is not None and positive not in classes.tolist():
        raise DataError(
            "{argument} is no class of y; there are {classes}",
            argument=Argument("positive", positive),
            classes=listing(classes.tolist()),
        )
    if positive is False:
        raise DataError(
            "{argument} turns the labels round; pass ~y and leave positive out",
            argument=Argument("positive", False),
        )
    if kind != "multiclass" and len(classes) <= 2:
        return _two_classes(goal, classes, codes, positive)
    if positive is not None:
        classes = np.array([f"not {positive}", positive], dtype=object)
        return ClassLabels(Task.binary(positive), classes), (y == positive).astype(np.int64)
    if kind == "binary":
        raise unstated_positive(  # in the words scikit-learn looks for
            "Only binary classification is supported by a binary task, and y holds "
            f"{len(classes)} classes",
            _counts(classes, codes),
        )
    _refuse_several_classes(goal)
    return ClassLabels(Task.multiclass(classes.tolist()), classes), codes


def allows_several_classes(goal: Any, task: Task | str | None) -> bool:
    """Whether a goal, with the task that is declared for it, can be asked of more than two classes.

    >>> [allows_several_classes(goal, None) for goal in ("maximize macro(f1)", "maximize f1")]
    [True, False]
    """
    try:
        if task is not None and Task.make(task).kind != "multiclass":
            return False
        check(Goal.of(goal), "multiclass")
    except SetpointError:
        return False
    return True


def _refuse_several_classes(goal: Goal) -> None:
    """Refuse a goal of two classes where there are more, in the words scikit-learn looks for."""
    try:
        check(goal, "multiclass")
    except GoalError as error:
        check(goal, "binary")  # a goal that fits no classes at all has an error of its own
        raise GoalError(f"Only binary classification is supported by this goal: {error}") from error


def needs_two(codes: np.ndarray, weight: np.ndarray | None) -> None:
    """Refuse rows (with weight) of a single class."""
    seen = codes if weight is None else codes[weight > 0]
    if codes.ndim == 1 and len(np.unique(seen)) < 2:
        raise DataError(
            "Classifier can't train when only one class is present: y holds rows (with weight) of "
            "a single class"
        )


def _complete(y: Any) -> None:
    """Refuse missing labels, with the row."""
    plain = np.asarray(y) if hasattr(y, "dtype") else None
    if isinstance(y, list) or (plain is not None and plain.dtype.kind == "O"):
        missing = np.flatnonzero(np.asarray(pd.isna(y)).reshape(-1))
        if len(missing):
            raise DataError(f"Input y contains NaN: no label in row {missing[0]}; drop such rows")
    if plain is not None and plain.dtype.kind == "f":
        assert_all_finite(plain, input_name="y")


def _two_classes(
    goal: Goal, classes: np.ndarray, codes: np.ndarray, positive: Any
) -> tuple[ClassLabels, np.ndarray]:
    values = classes.tolist()
    unstated = positive is None
    pair = len(values) == 2
    plain = plain_positive(values, signs=True) is not None
    if unstated and pair and not plain and not symmetric(goal):
        words = listing(shown(value) for value in values)
        raise unstated_positive(
            f'y holds {words}, and "{goal}" tells the classes apart', _counts(classes, codes)
        )
    zero_one = unstated and pair and plain_positive(values) is not None
    positive = values[-1] if unstated else positive
    task = Task.binary(None if zero_one else positive)
    return ClassLabels(task, classes), (codes == values.index(positive)).astype(np.int64)


def _counts(classes: np.ndarray, codes: np.ndarray) -> dict[Any, int]:
    """Rows of each class."""
    return dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True))


def _several_labels(y: Any, rows: int, declared: Task | None) -> tuple[ClassLabels, np.ndarray]:
    names = getattr(y, "columns", None)
    matrix = np.asarray(y)
    if matrix.ndim != 2 or len(matrix) != rows:
        raise DataError(f"a multilabel y is a matrix of 0 and 1 with {rows} rows")
    if not np.isin(matrix, (0, 1)).all():
        raise DataError("a multilabel y holds 0 and 1 only")
    labels = None if declared is None else declared.classes
    labels = labels or (range(matrix.shape[1]) if names is None else names)
    task = Task.multilabel(list(labels))
    return ClassLabels(task, np.array(task.classes)), matrix.astype(np.int64)
