"""The target of a fit: a column of labels as the classifier takes it, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.cli.words import count
from setpoint.datasets import column, labelled
from setpoint.datasets.columns.column_names import quoted
from setpoint.datasets.labels import are_measurements, plain_positive, shown, too_many_values
from setpoint.goals import Goal, Task, check, symmetric

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("binary", "multiclass", "multilabel")
_MOST_SHOWN = 6  #: values of a column named in a sentence
_LEAST_ROWS = 5  #: of a class in the mean; with fewer the column names rows, not classes


@dataclass(frozen=True, eq=False)
class Target:
    """Labels as :class:`setpoint.GoalClassifier` takes them.

    Attributes
    ----------
    name : str
        The column, or several between commas.
    y : numpy.ndarray or pandas.DataFrame
    task : str
        binary, multiclass or multilabel.
    positive : label or None
        Of a binary task, where it has to be said.
    counts : dict
        Rows of each class, or rows with each label.
    """

    name: str
    y: Any
    task: str
    positive: Any
    counts: dict[Any, int]

    def line(self) -> str:
        """What is positive and how often, or the rows of each class."""
        rows = len(self.y)
        if self.task == "binary":
            value = self.shown_positive
            many = self.counts[value]
            return f"{self.name} = {value} is positive ({many:,} rows, {100 * many / rows:.3g}%)"
        several = (f"{name} {many:,}" for name, many in self.counts.items())
        return f"{self.name}: {listing(several, most=_MOST_SHOWN)}"

    @property
    def shown_positive(self) -> Any:
        """The positive class of a binary task, said or plain from 0 and 1."""
        if self.positive is None:
            return plain_positive(list(self.counts), signs=True)
        return self.positive

    def record(self) -> dict[str, Any]:
        """Plain data."""
        about = {"target": self.name, "task": self.task, "classes": _named(self.counts)}
        if self.task != "binary":
            return about
        many = self.counts[self.shown_positive]
        share = many / len(self.y)
        return {**about, "positive": self.shown_positive, "positives": many, "share": share}


def read_target(
    table: pd.DataFrame, names: Sequence[str], goal: Goal, task: str | None, positive: str | None
) -> Target:
    """Take the columns of labels; no cell of them is missing."""
    if task is not None and task not in TASKS:
        hint = did_you_mean(task, TASKS, f"choose from {listing(TASKS)}.")
        raise KindError(f'unknown task "{task}": {hint}')
    if task == "multilabel" or (task is None and len(names) > 1):
        return _several(table, names, goal, positive)
    if len(names) > 1:
        raise KindError(f"a {task} task has one --target; {len(names)} are given.")
    (name,) = names
    values = _values(table, name)
    counts = dict(sorted(Counter(values.tolist()).items()))
    if len(counts) == 1:
        only = next(iter(counts))
        raise DataError(
            f'column "{name}" (target) holds only {shown(only)}, in all {len(values):,} rows; '
            "there is nothing to tell apart."
        )
    if positive is not None and task == "multiclass":
        raise KindError("--positive belongs to a binary task; leave --task multiclass out.")
    if task == "multiclass" or (task is None and len(counts) > 2 and positive is None):
        return _classes(goal, name, values, counts, stated=task is not None)
    return _two(table, goal, name, values, counts, positive)


def without_label(table: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Which rows have no label; raises where a column is not there."""
    missing = np.zeros(len(table), dtype=bool)
    for name in names:
        missing |= column(table, name, "target").isna().to_numpy(dtype=bool)
    return missing


def _values(table: pd.DataFrame, name: str) -> np.ndarray:
    """Labels of one type: truth values, whole numbers, numbers or texts."""
    cells = column(table, name, "target").tolist()
    if not all(isinstance(cell, Hashable) for cell in cells):
        raise DataError(f'column "{name}" (target) holds lists; a label is one value a row.')
    kinds = {type(cell) for cell in cells}
    if kinds <= {bool}:
        return np.array(cells, dtype=bool)
    if kinds <= {bool, int, float}:
        numbers = np.array(cells, dtype=np.float64)
        if np.isinf(numbers).any():
            raise DataError(f'column "{name}" (target) holds infinite numbers.')
        whole = (numbers == np.floor(numbers)).all()
        return numbers.astype(np.int64) if whole else numbers
    if kinds <= {str}:
        return np.array(cells)
    if str in kinds:
        row = next(i for i, cell in enumerate(cells) if not isinstance(cell, str))
        raise DataError(
            f'column "{name}" (target) mixes texts and numbers: {cells[row]} stands in data row '
            f"{row + 1}, and texts elsewhere; write all labels alike."
        )
    return np.array([str(cell) for cell in cells])


def _two(
    table: pd.DataFrame,
    goal: Goal,
    name: str,
    values: np.ndarray,
    counts: dict[Any, int],
    positive: str | None,
) -> Target:
    """One class against another, or against all others."""
    classes = list(counts)
    if positive is None and plain_positive(classes, signs=True) is not None:
        check(goal, Task.binary())
        return Target(name, values, "binary", None, counts)
    if positive is None and len(classes) == 2 and symmetric(goal):
        return Target(name, values, "binary", classes[1], counts)
    if positive is None and len(classes) > 2:
        raise _needs_two(goal, name, counts)
    stated = labelled(table, name, positive).positive
    stated = values.dtype.type(stated).item() if values.dtype.kind != "U" else str(stated)
    check(goal, Task.binary())
    if stated is False:  # a task whose positive is False cannot be written; the words can
        values = values.astype(str)
        stated = "False"
        counts = {str(value): many for value, many in counts.items()}
    if len(classes) > 2:
        counts = {f"not {stated}": len(values) - counts[stated], stated: counts[stated]}
    return Target(name, values, "binary", stated, counts)


def _classes(
    goal: Goal, name: str, values: np.ndarray, counts: dict[Any, int], stated: bool
) -> Target:
    try:
        check(goal, Task.multiclass(list(counts)))
    except GoalError:
        if stated or not _fits_two(goal):
            raise
        raise _needs_two(goal, name, counts) from None
    if len(values) < _LEAST_ROWS * len(counts):
        raise DataError(
            f'column "{name}" (target) has {len(counts):,} values in {len(values):,} rows, too few '
            "of each to learn from. Is it the right column? --positive LABEL sets one against the "
            "rest."
        )
    return Target(name, values, "multiclass", None, counts)


def _fits_two(goal: Goal) -> bool:
    try:
        check(goal, Task.binary())
    except GoalError:
        return False
    return True


def _needs_two(goal: Goal, name: str, counts: dict[Any, int]) -> DataError:
    """Three classes for a goal on two."""
    metric = goal.constraints[0].left if goal.constraints else goal.objective
    if are_measurements(counts):
        return DataError(
            f'column "{name}" (target) holds {len(counts):,} different numbers; a goal on {metric} '
            "needs two classes. Is it the right column?"
        )
    return too_many_values(name, counts, f"a goal on {metric}")


def _several(table: pd.DataFrame, names: Sequence[str], goal: Goal, positive: str | None) -> Target:
    if positive is not None:
        raise KindError("--positive belongs to a binary task; the labels of several are 0 and 1.")
    import pandas as pd

    columns = {name: labelled(table, name).y.astype(np.int64) for name in names}
    check(goal, Task.multilabel(list(names)))
    y = pd.DataFrame(columns)
    counts = {name: int(values.sum()) for name, values in columns.items()}
    return Target(",".join(names), y, "multilabel", None, counts)


def _named(counts: dict[Any, int]) -> dict[str, int]:
    return {str(name): many for name, many in counts.items()}


def unlabelled(missing: np.ndarray, names: Sequence[str]) -> DataError:
    """Rows without a label, and the way out."""
    many, first = int(missing.sum()), int(missing.argmax()) + 1
    which = quoted(names, most=_MOST_SHOWN)
    have = "has no label" if many == 1 else "have no label"
    return DataError(
        f"{count(many, 'row')} of {len(missing):,} {have} in {which} (target), the first is data "
        f"row {first}; say --drop-unlabelled to leave them out."
    )
