"""Reports: what was reached and what is proven, as one page, as text, as a model card."""

from setpoint.reports.checks import (
    Check,
    drift,
    duplicates,
    few_positives,
    leakage,
    unstable_threshold,
)
from setpoint.reports.facts import Facts, Scored
from setpoint.reports.make import make_report
from setpoint.reports.report import Report

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
