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
from setpoint.reports.report_inputs import Facts, Scored

__all__ = [
    "Check",
    "Facts",
    "Report",
    "Scored",
    "drift",
    "duplicates",
    "few_positives",
    "leakage",
    "make_report",
    "unstable_threshold",
]
