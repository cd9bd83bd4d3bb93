"""Shares of the rule in each group, with intervals, small groups marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint._core.json_codec import Record
from setpoint.expressions import Columns
from setpoint.reports.sections.confusion import ShareOfRows, decided_rows, with_interval
from setpoint.reports.sections.key_figures import members

MOST = 30  #: groups of a column that are shown, the largest first: what a page holds
FEW = 30  #: rows below which a share says little: its 95% interval is up to 0.37 wide there


@dataclass(frozen=True)
class GroupShares(Record):
    """One group: its rows, its positives where the task is binary, and its shares by name."""

    value: str
    rows: int
    positives: int | None
    shares: dict[str, ShareOfRows]
    small: bool


@dataclass(frozen=True)
class GroupTable(Record):
    """The groups of a column, the largest first; ``few`` is what makes one small."""

    column: str
    shares: tuple[str, ...]
    groups: tuple[GroupShares, ...]
    left_out: int
    few: int


def affected(columns: Columns) -> tuple[GroupTable, ...]:
    """One table for each group column."""
    decided = decided_rows(columns)
    shares = _shares(columns)
    tables = []
    for name in columns.groups:
        values = columns.groups[name]
        levels, counts = np.unique(values, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST]
        groups = (
            _group(values == levels[i], levels[i : i + 1], decided, shares, columns) for i in order
        )
        tables.append(
            GroupTable(
                column=name,
                shares=tuple(shares),
                groups=tuple(groups),
                left_out=len(levels) - len(order),
                few=FEW,
            )
        )
    return tuple(tables)


def _shares(columns: Columns) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The shares of each group: name, who counts, and among whom."""
    if columns.task.kind == "binary":
        metrics = (("flagged", "positive_rate"), *((n, n) for n in ("precision", "recall", "fpr")))
        return {name: members(metric, columns) for name, metric in metrics}
    right = np.asarray(columns.actual) == np.asarray(columns.decided)
    if right.ndim == 2:
        return {"all labels right": (right.all(1), np.ones(columns.size, bool))}
    return {"right": (right, np.ones(columns.size, bool))}


def _group(
    own: np.ndarray,
    value: np.ndarray,
    decided: np.ndarray,
    members_of: dict[str, tuple[np.ndarray, np.ndarray]],
    columns: Columns,
) -> GroupShares:
    shares = {
        name: with_interval(inside, among & own & decided, columns.weight)
        for name, (inside, among) in members_of.items()
    }
    binary = columns.task.kind == "binary"
    return GroupShares(
        value=str(value.tolist()[0]),
        rows=int(own.sum()),
        positives=int((own & np.asarray(columns.actual)).sum()) if binary else None,
        shares=shares,
        small=any(share.rows < FEW for share in shares.values()),
    )
