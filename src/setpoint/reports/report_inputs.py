"""Inputs of a report: scored rows in their role, and facts about the run as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.json_codec import Record
from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns
from setpoint.rules.decision_rule import applied

CERTIFY, OUT_OF_FOLD = "certify", "out-of-fold"
TASKS = ("binary", "multiclass", "multilabel")


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with labels and scores, in one role.

    Attributes
    ----------
    name : str
        "certify" (rows that nothing has seen) or "out-of-fold".
    y : numpy.ndarray
        Labels as :func:`setpoint.tune` takes them.
    scores : numpy.ndarray
        (n,), or (n, K) for multiclass and multilabel.
    group : dict of str to numpy.ndarray, optional
    weight : numpy.ndarray, optional
    fold : numpy.ndarray, optional
        Which fold held the row, for out-of-fold rows.
    """

    name: str
    y: np.ndarray
    scores: np.ndarray
    group: dict[str, np.ndarray] | None = None
    weight: np.ndarray | None = None
    fold: np.ndarray | None = None

    def decided_by(self, rule: DecisionRule) -> Columns:
        """The rows with the rule's decisions, checked and on the host."""
        if rule.task.kind not in TASKS:
            raise KindError(f"a report is made of decisions among classes, not {rule.task.kind}")
        return applied(
            rule,
            self.y,
            self.scores,
            sample_weight=self.weight,
            group=self.group,
            positives=False,
        )


@dataclass(frozen=True)
class RunFacts(Record):
    """What was fitted on what.

    Attributes
    ----------
    source : str
        The name of the file, or "a table of 48,842 rows".
    target : str
    positive : str or None
    rows : int
    columns : dict of str to int
        How many of each kind: {"numeric": 6, "category": 8, "date": 1, "ignored": 2}.
    fingerprint : str
        Of the data.
    parts : dict of str to (rows, positives)
        The splits; positives are None where the task is not binary.
    plan, notes : tuple of str
        The lines of the plan; what was decided on the way, and why.
    settings, versions : dict
    usage : tuple of str
        Three lines: how to use the model.
    seconds : float
    finished : bool
        False where the run was stopped before its plan was done.
    """

    source: str
    target: str
    positive: str | None
    rows: int
    columns: dict[str, int]
    fingerprint: str
    parts: dict[str, tuple[int, int | None]]
    plan: tuple[str, ...]
    notes: tuple[str, ...]
    settings: dict[str, Any]
    versions: dict[str, str]
    usage: tuple[str, ...]
    seconds: float
    finished: bool


class Diagnosed(Protocol):
    """Why a goal cannot be met, and what each limit costs, as lines of text."""

    def lines(self) -> list[str]:
        """Sentences."""
        ...

    def to_json(self) -> Mapping[str, Any]:
        """Plain data."""
        ...
