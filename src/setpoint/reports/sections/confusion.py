"""What the rule does to rows: the confusion table in counts, and in people."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.expressions import Columns
from setpoint.reports.sections.key_figures import members, weighted_share
from setpoint.statistics.confidence_intervals import share_interval

CLASSES = 30  #: classes that are shown; the rarest are gathered beyond
REST = "all others"


def confusion(columns: Columns) -> dict[str, Any]:
    """The confusion table as plain data, by kind of task."""
    if columns.task.kind == "binary":
        return _binary(columns)
    if columns.task.kind == "multilabel":
        return {"kind": "multilabel", "classes": _per_label(columns), "rows": columns.size}
    return _multiclass(columns)


def _kept(columns: Columns) -> np.ndarray:
    if columns.abstained is None:
        return np.ones(columns.size, bool)
    return ~np.asarray(columns.abstained)


def _binary(columns: Columns) -> dict[str, Any]:
    actual, decided = np.asarray(columns.actual), np.asarray(columns.decided).astype(bool)
    kept = _kept(columns)
    cells = {
        "tp": int((actual & decided & kept).sum()),
        "fp": int((~actual & decided & kept).sum()),
        "fn": int((actual & ~decided & kept).sum()),
        "tn": int((~actual & ~decided & kept).sum()),
    }
    part = columns if columns.abstained is None else columns.take(kept)
    return {
        "kind": "binary",
        **cells,
        "undecided": [int((actual & ~kept).sum()), int((~actual & ~kept).sum())],
        "abstains": columns.abstained is not None,
        "weighted": columns.weight is not None,
        "people": [
            {"of": of, "name": name, **_share(name, part)}
            for of, name in (("flagged", "precision"), ("positive", "recall"), ("other", "fpr"))
        ],
    }


def _share(name: str, columns: Columns) -> dict[str, Any]:
    inside, among = members(name, columns)
    return with_interval(inside, among, columns.weight)


def with_interval(
    inside: np.ndarray, among: np.ndarray, weight: np.ndarray | None
) -> dict[str, Any]:
    """A share with its interval and the rows it is taken of."""
    share, size = weighted_share(inside, among, weight)
    rows = int(among.sum())
    if share is None:
        return {"value": None, "low": None, "high": None, "rows": rows}
    low, high = share_interval(share * size, size)
    return {"value": share, "low": float(low), "high": float(high), "rows": rows}


def _multiclass(columns: Columns) -> dict[str, Any]:
    names = [str(c) for c in columns.classes]
    actual, decided, kept = np.asarray(columns.actual), np.asarray(columns.decided), _kept(columns)
    count = len(names)
    known = actual >= 0
    often = np.bincount(actual[known], minlength=count)
    shown = np.sort(np.argsort(-often, kind="stable")[:CLASSES])
    place = np.full(count + 1, len(shown))  # the last place: classes that are not shown, and none
    place[shown] = np.arange(len(shown))
    table = np.zeros((len(shown) + 1, len(shown) + 1), np.int64)
    np.add.at(table, (place[np.where(known, actual, count)[kept]], place[decided[kept]]), 1)
    rest = count > len(shown) or bool(table[-1].any())
    size = len(shown) + 1 if rest else len(shown)
    labels = [names[i] for i in shown] + ([REST] if rest else [])
    return {
        "kind": "multiclass",
        "labels": labels,
        "table": table[:size, :size],
        "undecided": int((~kept).sum()),
        "left_out": count - len(shown),
        "classes": [_of_class(names[i], actual == i, decided == i, kept, columns) for i in shown],
    }


def _of_class(
    name: str, actual: np.ndarray, decided: np.ndarray, kept: np.ndarray, columns: Columns
) -> dict[str, Any]:
    weight = columns.weight
    return {
        "name": name,
        "rows": int((actual & kept).sum()),
        "decided": int((decided & kept).sum()),
        "recall": with_interval(decided, actual & kept, weight),
        "precision": with_interval(actual, decided & kept, weight),
    }


def _per_label(columns: Columns) -> list[dict[str, Any]]:
    actual, decided = np.asarray(columns.actual), np.asarray(columns.decided).astype(bool)
    every = np.ones(columns.size, bool)
    names = [str(c) for c in columns.classes]
    often = np.argsort(-actual.sum(0), kind="stable")[:CLASSES]
    return [
        _of_class(names[j], actual[:, j], decided[:, j], every, columns)
        for j in np.sort(often).tolist()
    ]
