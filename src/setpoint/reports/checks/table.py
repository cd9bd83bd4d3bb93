"""The checks by their codes: on which rows each is made, and when.

A new check is a function in a file of its own, with its :class:`CheckName`, and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.decisions import DecisionRule
from setpoint.reports.checks.check_record import Check, CheckName
from setpoint.reports.checks.drift import SP103, drift
from setpoint.reports.checks.duplicates import SP102, duplicates
from setpoint.reports.checks.leakage import SP101, leakage
from setpoint.reports.checks.stability import SP104, SP105, few_positives, unstable_threshold
from setpoint.reports.report_inputs import ScoredRows


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckInputs:
    """The rows of a run as the checks take them.

    Attributes
    ----------
    table : pandas.DataFrame or numpy.ndarray or None
        Every column; None where no model was fitted on columns.
    features : pandas.DataFrame or numpy.ndarray or None
        The columns that the model uses: an ignored column cannot leak.
    target : numpy.ndarray
    train, certify : numpy.ndarray of int
        Rows of either part; certify is empty where none are held out.
    counts : mapping of str to (rows, positives)
    out_of_fold : ScoredRows
    rule : DecisionRule
    """

    table: Any | None
    features: Any | None
    target: np.ndarray
    train: np.ndarray
    certify: np.ndarray
    counts: Mapping[str, tuple[int, int | None]]
    out_of_fold: ScoredRows
    rule: DecisionRule


@dataclass(frozen=True)
class CheckRow:
    """One row of the table.

    Attributes
    ----------
    name : CheckName
        Its code and title.
    make : callable
        Makes the check of the inputs.
    needs_table : bool
        Left out of the report where no model was fitted on columns.
    """

    name: CheckName
    make: Callable[[CheckInputs], Check]
    needs_table: bool


CHECKS: tuple[CheckRow, ...] = (
    CheckRow(SP101, lambda rows: leakage(rows.features, rows.target), needs_table=True),
    CheckRow(
        SP102,
        lambda rows: duplicates(rows.table, {"train": rows.train, "certify": rows.certify}),
        needs_table=True,
    ),
    CheckRow(SP103, lambda rows: drift(rows.table, rows.train, rows.certify), needs_table=True),
    CheckRow(SP104, lambda rows: few_positives(rows.counts), needs_table=False),
    CheckRow(
        SP105, lambda rows: unstable_threshold(rows.out_of_fold, rows.rule), needs_table=False
    ),
)


def make_checks(inputs: CheckInputs) -> tuple[Check, ...]:
    """Every check that applies, in the order of the table."""
    with_table = inputs.table is not None
    return tuple(row.make(inputs) for row in CHECKS if with_table or not row.needs_table)
