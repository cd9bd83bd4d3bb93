"""The checks of a table and its splits, listed in :data:`~setpoint.reports.checks.table.CHECKS`."""

from setpoint.reports.checks.check_record import LOOK, NOT_APPLICABLE, PASSED, Check, CheckName
from setpoint.reports.checks.table import CHECKS, CheckInputs, CheckRow, make_checks

__all__ = [
    "CHECKS",
    "LOOK",
    "NOT_APPLICABLE",
    "PASSED",
    "Check",
    "CheckInputs",
    "CheckName",
    "CheckRow",
    "make_checks",
]
