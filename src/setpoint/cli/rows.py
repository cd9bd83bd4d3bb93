"""From a file and the options of ``setpoint tune`` to the rows that the library takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.cli.output import count
from setpoint.datasets import column, labelled, numbers, read_table
from setpoint.datasets.columns import refuse_missing
from setpoint.decisions import DecisionRule
from setpoint.goals import Task

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("binary", "multiclass", "multilabel", "ranking")


@dataclass(frozen=True)
class Roles:
    """Which column is what, as the options say it.

    Parameters
    ----------
    labels, scores, groups : tuple of str
    task, score_kind : str
    positive, weight, query : str, optional
    classes : tuple of str, optional
        Names of the classes, in the order of ``scores``; the names of the columns without it.
    """

    labels: tuple[str, ...]
    scores: tuple[str, ...]
    task: str = "binary"
    score_kind: str = "raw"
    positive: str | None = None
    classes: tuple[str, ...] | None = None
    weight: str | None = None
    groups: tuple[str, ...] = ()
    query: str | None = None

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            hint = did_you_mean(self.task, TASKS, f"choose from {listing(TASKS)}.")
            raise KindError(f'unknown task "{self.task}": {hint}')
        labels, scores = len(self.labels), len(self.scores)
        if self.task != "multilabel" and labels > 1:
            raise KindError(f"a {self.task} task has one --label; {labels} are given.")
        if self.task in ("binary", "ranking") and scores > 1:
            raise KindError(
                f"a {self.task} task has one --score; {scores} are given. With one column per "
                "class say --task multiclass, with one per label --task multilabel."
            )
        if self.task == "multiclass" and scores < 2:
            raise KindError("a multiclass task has one score per class: --scores a,b,c.")
        if self.task == "multilabel" and labels != scores:
            raise KindError(
                f"a multilabel task has one --score per --label; {count(labels, 'label')} and "
                f"{count(scores, 'score')} are given."
            )
        if self.positive is not None and self.task not in ("binary", "multilabel"):
            raise KindError(f"--positive belongs to a binary task, and this one is {self.task}.")
        if self.classes is not None and self.task != "multiclass":
            raise KindError(f"--classes belongs to a multiclass task, and this one is {self.task}.")
        if self.classes is not None and len(self.classes) != scores:
            raise KindError(
                f"--classes names {count(len(self.classes), 'class', 'classes')} for {scores} "
                "columns of scores; name one per column, in that order."
            )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the form ``setpoint.tune`` takes.

    Parameters
    ----------
    y : numpy.ndarray
    scores : numpy.ndarray
        (n,), or (n, K) for multiclass and multilabel.
    task : Task
    about : mapping
        What can be said of the labels: rows, positives, classes.
    more : mapping
        ``sample_weight``, ``group`` and ``query``, where they were given.
    positive : label
        The positive value of a binary label, as it stands in the file.
    """

    y: np.ndarray
    scores: np.ndarray
    task: Task
    about: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)
    positive: Any = None

    def sign(self, rule: DecisionRule) -> DecisionRule:
        """The rule, knowing which label it was told to take as positive."""
        if not isinstance(self.positive, str | int | float) or self.positive == 1:
            return rule
        return replace(rule, task=replace(rule.task, positive=self.positive))


def read_rows(path: Path, roles: Roles) -> Rows:
    """Read the file and take each column for its role."""
    table = read_table(path)
    read = {"multiclass": _multiclass, "multilabel": _multilabel, "ranking": _ranking}
    rows = read.get(roles.task, _binary)(table, roles)
    more: dict[str, Any] = {}
    if roles.weight is not None:
        more["sample_weight"] = numbers(table, roles.weight, "weight")
    if roles.groups:
        more["group"] = {name: _names(table, name, "group") for name in roles.groups}
    if roles.query is not None:
        more["query"] = _names(table, roles.query, "query")
    return replace(rows, more=more)


def _names(table: pd.DataFrame, name: str, role: str) -> np.ndarray:
    series = column(table, name, role)
    refuse_missing(series.isna().to_numpy(dtype=bool), f'column "{name}" ({role})')
    return np.array(series.tolist())


def _binary(table: pd.DataFrame, roles: Roles) -> Rows:
    (label,), (score,) = roles.labels, roles.scores
    found = labelled(table, label, roles.positive)
    about = {"rows": len(found.y), **_share(label, found.y), "positive": found.positive}
    return Rows(
        y=found.y,
        scores=numbers(table, score, "score"),
        task=Task.binary(score=roles.score_kind),
        about=about,
        positive=found.positive,
    )


def _ranking(table: pd.DataFrame, roles: Roles) -> Rows:
    (label,), (score,) = roles.labels, roles.scores
    y = numbers(table, label, "label")
    return Rows(y, numbers(table, score, "score"), Task.ranking(), {"rows": len(y)})


def _multiclass(table: pd.DataFrame, roles: Roles) -> Rows:
    (label,) = roles.labels
    values = _names(table, label, "label")
    names = roles.classes or roles.scores
    spelled = {str(value): value for value in np.unique(values).tolist()}
    if all(name in spelled for name in names):
        classes: Sequence[Any] = [spelled[name] for name in names]
    else:  # a class without rows: all are taken as text
        classes, values = names, values.astype(str)
    rows_of = {str(c): int(np.count_nonzero(values == c)) for c in classes}
    return Rows(
        y=values,
        scores=_matrix(table, roles.scores),
        task=Task.multiclass(classes, score=roles.score_kind),
        about={"rows": len(values), "label": label, "classes": rows_of},
    )


def _multilabel(table: pd.DataFrame, roles: Roles) -> Rows:
    found = [labelled(table, name, roles.positive).y for name in roles.labels]
    pairs = zip(roles.labels, found, strict=True)
    return Rows(
        y=np.stack(found, axis=1),
        scores=_matrix(table, roles.scores),
        task=Task.multilabel(roles.labels, score=roles.score_kind),
        about={"rows": len(table), "labels": [_share(name, y) for name, y in pairs]},
    )


def _matrix(table: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    return np.stack([numbers(table, name, "score") for name in names], axis=1)


def _share(label: str, y: np.ndarray) -> dict[str, Any]:
    return {"label": label, "positives": int(y.sum()), "share": float(y.mean())}
