"""A rule met with rows: columns that hold its decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import KindError
from setpoint.decisions.operating import OperatingPoint
from setpoint.expressions import Columns, take_in, take_scores


def applied(
    point: OperatingPoint,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
) -> Columns:
    """Labels, scores and the decisions of a rule, checked and on the host."""
    if not isinstance(point, OperatingPoint):
        raise KindError(
            f"a DecisionRule is needed, from sp.tune or DecisionRule.load; got {point!r}"
        )
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    more = {"scores": scores, "sample_weight": sample_weight, "group": group, "query": query}
    if point.kind == "abstain":
        columns = take_in(point.task, y_true, **more).on_host()
        decided, abstained = point.split(take_scores(point.task, scores))
        return replace(columns, decided=to_numpy(decided), abstained=to_numpy(abstained))
    needs_group = group if point.kind == "per-group" else None
    decided = point.decide(scores, group=needs_group, query=query if point.by == "query" else None)
    return take_in(point.task, y_true, decisions=decided, **more).on_host()
