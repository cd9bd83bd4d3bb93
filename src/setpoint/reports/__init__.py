"""Reports: what was reached and what is proven, as one page, as text, as a model card."""

from setpoint.reports.checks import (
    Check,
    drift,
    duplicates,
    few_positives,
    leakage,
    unstable_threshold,
)
from setpoint.reports.make_report import make_report
from setpoint.reports.report import Report
from setpoint.reports.report_inputs import RunFacts, ScoredRows

__all__ = [
    "Check",
    "RunFacts",
    "Report",
    "ScoredRows",
    "drift",
    "duplicates",
    "few_positives",
    "leakage",
    "make_report",
    "unstable_threshold",
]
