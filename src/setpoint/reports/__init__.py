"""Reports: what was reached and what is proven, as one page, as text, as a model card."""

from setpoint.reports.checks import Check, CheckInputs, make_checks
from setpoint.reports.make_report import make_report
from setpoint.reports.report import Report
from setpoint.reports.report_inputs import RunFacts, ScoredRows

__all__ = [
    "Check",
    "CheckInputs",
    "RunFacts",
    "Report",
    "ScoredRows",
    "make_checks",
    "make_report",
]
