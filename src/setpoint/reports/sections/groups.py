"""Who is affected: the rule's shares in each group, with intervals, small groups marked."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.expressions import Columns
from setpoint.reports.sections.confusion import with_interval
from setpoint.reports.sections.key_figures import members

MOST = 30  #: groups of a column that are shown, the largest first
FEW = 30  #: rows below which a share says little


def affected(columns: Columns) -> list[dict[str, Any]]:
    """One table for each group column, as plain data."""
    kept = np.ones(columns.size, bool) if columns.abstained is None else ~columns.abstained
    shares = _shares(columns)
    tables = []
    for name in columns.groups:
        values = columns.groups[name]
        levels, counts = np.unique(values, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST]
        groups = [
            _group(values == levels[i], levels[i : i + 1], kept, shares, columns) for i in order
        ]
        tables.append(
            {
                "column": name,
                "shares": list(shares),
                "groups": groups,
                "left_out": len(levels) - len(order),
                "few": FEW,
            }
        )
    return tables


def _shares(columns: Columns) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What is told of each group: name, who counts, and among whom."""
    if columns.task.kind == "binary":
        told = (("flagged", "positive_rate"), *((n, n) for n in ("precision", "recall", "fpr")))
        return {name: members(metric, columns) for name, metric in told}
    actual, decided = np.asarray(columns.actual), np.asarray(columns.decided)
    right = actual == decided
    if right.ndim == 2:
        return {"all labels right": (right.all(1), np.ones(columns.size, bool))}
    return {"right": (right, np.ones(columns.size, bool))}


def _group(
    own: np.ndarray,
    value: np.ndarray,
    kept: np.ndarray,
    shares: dict[str, tuple[np.ndarray, np.ndarray]],
    columns: Columns,
) -> dict[str, Any]:
    told = {
        name: with_interval(inside, among & own & kept, columns.weight)
        for name, (inside, among) in shares.items()
    }
    binary = columns.task.kind == "binary"
    return {
        "value": str(value.tolist()[0]),
        "rows": int(own.sum()),
        "positives": int((own & np.asarray(columns.actual)).sum()) if binary else None,
        "shares": told,
        "small": any(share["rows"] < FEW for share in told.values()),
    }
