"""Confusion table of the rule in counts, and its shares in people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from setpoint._core.json_codec import Record
from setpoint.expressions import Columns
from setpoint.reports.sections.key_figures import members, weighted_share
from setpoint.statistics.confidence_intervals import share_interval

CLASSES = 30  #: classes that are shown, what a page holds; the rarest are gathered beyond
REST = "all others"


@dataclass(frozen=True)
class ShareOfRows(Record):
    """A share with its 95% interval, and the rows it is taken of; None where there are none."""

    value: float | None
    low: float | None
    high: float | None
    rows: int


@dataclass(frozen=True)
class ShareInPeople(Record):
    """The same share with the metric it is, and whom it is of: flagged, positive or other."""

    of: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    rows: int


@dataclass(frozen=True)
class BinaryConfusion(Record):
    """The four counts, and of positives and others how many are undecided."""

    kind: Literal["binary"]
    tp: int
    fp: int
    fn: int
    tn: int
    undecided: tuple[int, int]
    abstains: bool
    weighted: bool
    people: tuple[ShareInPeople, ...]


@dataclass(frozen=True)
class ClassShares(Record):
    """One class or label: its rows, how many are decided so, recall and precision."""

    name: str
    rows: int
    decided: int
    recall: ShareOfRows
    precision: ShareOfRows


@dataclass(frozen=True)
class MultilabelConfusion(Record):
    """Recall and precision of each label."""

    kind: Literal["multilabel"]
    classes: tuple[ClassShares, ...]
    rows: int


@dataclass(frozen=True)
class MulticlassConfusion(Record):
    """Counts by true class (row) and decided class (column), and each class by itself."""

    kind: Literal["multiclass"]
    labels: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    undecided: int
    left_out: int
    classes: tuple[ClassShares, ...]


Confusion = BinaryConfusion | MultilabelConfusion | MulticlassConfusion


def confusion(columns: Columns) -> Confusion:
    """The confusion table by kind of task."""
    if columns.task.kind == "binary":
        return _binary(columns)
    if columns.task.kind == "multilabel":
        return MultilabelConfusion("multilabel", _per_label(columns), columns.size)
    return _multiclass(columns)


def decided_rows(columns: Columns) -> np.ndarray:
    """The rows that the rule does not abstain from, as a mask."""
    if columns.abstained is None:
        return np.ones(columns.size, bool)
    return ~np.asarray(columns.abstained)


def _binary(columns: Columns) -> BinaryConfusion:
    actual = np.asarray(columns.actual)
    flagged = np.asarray(columns.decided).astype(bool)
    decided = decided_rows(columns)
    part = columns if columns.abstained is None else columns.take(decided)
    return BinaryConfusion(
        kind="binary",
        tp=int((actual & flagged & decided).sum()),
        fp=int((~actual & flagged & decided).sum()),
        fn=int((actual & ~flagged & decided).sum()),
        tn=int((~actual & ~flagged & decided).sum()),
        undecided=(int((actual & ~decided).sum()), int((~actual & ~decided).sum())),
        abstains=columns.abstained is not None,
        weighted=columns.weight is not None,
        people=tuple(
            _in_people(of, name, part)
            for of, name in (("flagged", "precision"), ("positive", "recall"), ("other", "fpr"))
        ),
    )


def _in_people(of: str, name: str, columns: Columns) -> ShareInPeople:
    share = with_interval(*members(name, columns), columns.weight)
    return ShareInPeople(of, name, share.value, share.low, share.high, share.rows)


def with_interval(inside: np.ndarray, among: np.ndarray, weight: np.ndarray | None) -> ShareOfRows:
    """A share with its interval and the rows it is taken of."""
    share, size = weighted_share(inside, among, weight)
    rows = int(among.sum())
    if share is None:
        return ShareOfRows(None, None, None, rows)
    low, high = share_interval(share * size, size)
    return ShareOfRows(share, float(low), float(high), rows)


def _multiclass(columns: Columns) -> MulticlassConfusion:
    names = [str(c) for c in columns.classes]
    actual = np.asarray(columns.actual)
    chosen = np.asarray(columns.decided)
    decided = decided_rows(columns)
    count = len(names)
    labelled = actual >= 0
    frequencies = np.bincount(actual[labelled], minlength=count)
    shown = np.sort(np.argsort(-frequencies, kind="stable")[:CLASSES])
    place = np.full(count + 1, len(shown))  # the last place: classes that are not shown, and none
    place[shown] = np.arange(len(shown))
    table = np.zeros((len(shown) + 1, len(shown) + 1), np.int64)
    truth = np.where(labelled, actual, count)
    np.add.at(table, (place[truth[decided]], place[chosen[decided]]), 1)
    rest = count > len(shown) or bool(table[-1].any())
    size = len(shown) + 1 if rest else len(shown)
    labels = [names[i] for i in shown] + ([REST] if rest else [])
    return MulticlassConfusion(
        kind="multiclass",
        labels=tuple(labels),
        table=tuple(map(tuple, table[:size, :size].tolist())),
        undecided=int((~decided).sum()),
        left_out=count - len(shown),
        classes=tuple(
            _of_class(names[i], actual == i, chosen == i, decided, columns) for i in shown
        ),
    )


def _of_class(
    name: str, actual: np.ndarray, chosen: np.ndarray, decided: np.ndarray, columns: Columns
) -> ClassShares:
    weight = columns.weight
    return ClassShares(
        name=name,
        rows=int((actual & decided).sum()),
        decided=int((chosen & decided).sum()),
        recall=with_interval(chosen, actual & decided, weight),
        precision=with_interval(actual, chosen & decided, weight),
    )


def _per_label(columns: Columns) -> tuple[ClassShares, ...]:
    actual = np.asarray(columns.actual)
    chosen = np.asarray(columns.decided).astype(bool)
    every = np.ones(columns.size, bool)
    names = [str(c) for c in columns.classes]
    commonest = np.argsort(-actual.sum(0), kind="stable")[:CLASSES]
    return tuple(
        _of_class(names[j], actual[:, j], chosen[:, j], every, columns)
        for j in np.sort(commonest).tolist()
    )
