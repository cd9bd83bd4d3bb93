"""Metrics of decisions that may abstain; pass ``abstained=``, True where nothing was decided."""

from __future__ import annotations

from setpoint.expressions import Ratio, Total, rate
from setpoint.expressions.rows.row_events import incorrect, kept
from setpoint.metrics.definition import LOWER, MetricDefinition, metric

coverage = metric("coverage", rate(kept))
selective_risk = metric("selective_risk", Ratio(Total(incorrect & kept), Total(kept)), LOWER)

_ABSTAINED = "[1, 0, 1, 0], [1, 1, 0, 0], abstained=[False, False, True, False]"
ROWS = (
    MetricDefinition(
        "coverage",
        coverage,
        "kept / rows",
        "brute force",
        "share of rows decided at all",
        call=_ABSTAINED,
        value="0.75",
    ),
    MetricDefinition(
        "selective_risk",
        selective_risk,
        "wrong and kept / kept",
        "brute force",
        "share of the decided rows that are decided wrongly",
        call=_ABSTAINED,
        value="0.3333333333333333",
    ),
)
