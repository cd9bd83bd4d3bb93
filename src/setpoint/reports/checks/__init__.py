"""The checks of a table and its splits, by their codes.

SP101  leakage              a column that knows the label, ids
SP102  duplicates           the same rows on both sides of a split
SP103  drift                columns spread otherwise in certify than in train
SP104  few_positives        too few rows of the rarer class
SP105  unstable_threshold   a threshold that moves with the rows
"""

from setpoint.reports.checks.check_record import LOOK, NOT_APPLICABLE, PASSED, Check
from setpoint.reports.checks.drift import drift
from setpoint.reports.checks.duplicates import duplicates
from setpoint.reports.checks.leakage import leakage
from setpoint.reports.checks.stability import few_positives, unstable_threshold

__all__ = [
    "LOOK",
    "NOT_APPLICABLE",
    "PASSED",
    "Check",
    "drift",
    "duplicates",
    "few_positives",
    "leakage",
    "unstable_threshold",
]
