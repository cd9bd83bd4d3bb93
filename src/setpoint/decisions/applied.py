"""A rule met with rows: columns that hold its decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint.expressions import Columns, take_in
from setpoint.rules.rule import OperatingPoint


def applied(
    point: OperatingPoint,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
    positives: bool = True,
) -> Columns:
    """Labels, scores and the decisions of a rule, checked and on the host.

    Without ``positives`` rows that hold none are nothing strange, whatever their labels look like.
    """
    if not isinstance(point, OperatingPoint):
        raise KindError(
            f"a DecisionRule is needed, from sp.tune or DecisionRule.load; got {point!r}"
        )
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        point.task,
        y_true,
        scores=scores,
        sample_weight=sample_weight,
        group=group,
        query=query,
        positives=positives,
    )
    return with_decisions(point, columns.on_host())


def with_decisions(point: OperatingPoint, columns: Columns) -> Columns:
    """The same rows, decided by a rule; columns on the host."""
    scores = np.asarray(columns.scores)
    if point.kind == "offsets":
        return replace(columns, decided=point.class_index(scores))
    if point.kind == "abstain":
        decided, abstained = point.split(scores)
        return replace(columns, decided=decided, abstained=abstained)
    group = (columns.groups or None) if point.kind == "per-group" else None
    query = columns.query if point.by == "query" else None
    return replace(columns, decided=point.decide(scores, group=group, query=query))
