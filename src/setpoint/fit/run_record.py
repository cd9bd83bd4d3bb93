"""What a fit gives: one frozen record for estimator, storage, report and command line."""

from __future__ import annotations

import io
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import Any, Self

import numpy as np

from setpoint._core.errors import SetpointError
from setpoint._core.notes import Note, NoteCode, texts
from setpoint.datasets import Parts
from setpoint.datasets.class_labels import ClassLabels
from setpoint.decisions import Certificate, Comparison, DecisionRule, Diagnosis, Plan
from setpoint.decisions.outcome import Outcome
from setpoint.fit.conclusion.stack import MemberOutcome, Stack
from setpoint.fit.fold_models import Model
from setpoint.fit.plan import FitPlan
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal
from setpoint.reports import Check, Report, RunFacts, ScoredRows, make_report

PACKAGES = ("setpoint", "numpy", "scipy", "scikit-learn", "torch", "lightgbm", "pandas")
USAGE = (
    "import setpoint as sp",
    'clf = sp.load("run/")',
    "decisions = clf.predict(X_new)",
)


@dataclass(frozen=True, kw_only=True)
class RunOrigin:
    """What a run was asked for and on which table.

    Attributes
    ----------
    settings : dict
        Parameters of the estimator by name, the seed as ``random_state``.
    n_features : int
    feature_names : tuple of str, optional
    source : str, optional
        The name of the file.
    target : str
        The name of the label's column.
    usage : tuple of str
        Three lines: how to use the model.
    """

    settings: Mapping[str, Any]
    n_features: int
    feature_names: tuple[str, ...] | None = None
    source: str | None = None
    target: str = "y"
    usage: tuple[str, ...] = USAGE


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRun:
    """A fit that came to an end, or was stopped with something to show.

    Attributes
    ----------
    goal : Goal
        As it was asked.
    origin : RunOrigin
        Settings, and the names of the table, its features and its label.
    encoder : Encoder
    models : dict
        By member that decides, a fitted model of each fold.
    notes : tuple of Note
    history : list of dict
        One row per epoch of every network.
    finished : bool
        False where it was stopped before its plan was done.
    """

    goal: Goal
    origin: RunOrigin
    encoder: Encoder
    models: Mapping[str, list[Model]]
    notes: tuple[Note, ...]
    history: list[dict[str, Any]]
    finished: bool

    @property
    def all_models(self) -> list[Model]:
        """The fitted models of all members and folds."""
        return [model for several in self.models.values() for model in several]

    def noted(self, *notes: Note) -> Self:
        """The same run with more to know."""
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierRun(FittedRun):
    """A fit on classes, whose rule decides and is proven.

    Attributes
    ----------
    labels : ClassLabels
    plan : FitPlan
    members : tuple of MemberOutcome
        Every member of the plan and what became of it.
    stack : Stack
    rule : DecisionRule
    certificate : Certificate or None
    comparison : Comparison or None
    outcome : Outcome
        Whether the goal is met, and with proof.
    fingerprint : str
        Of cells and labels.
    seconds : float
    versions : dict
        Of Python and the packages.
    rows : int
    parts : Parts or None
        None, as the attributes below, of a run that was read from a folder.
    counts : dict
        Rows of each part, and positives of a binary task.
    scored : tuple of ScoredRows
        Certify rows, where there are any, then out-of-fold rows.
    diagnosis : Diagnosis or None
        Why the goal cannot be met, and what its limits cost.
    label_plan : Plan or None
        What more labels would prove.
    checks : tuple of Check
        Of the table and its parts.
    """

    labels: ClassLabels
    plan: FitPlan
    members: tuple[MemberOutcome, ...]
    stack: Stack
    rule: DecisionRule
    certificate: Certificate | None
    comparison: Comparison | None
    outcome: Outcome
    fingerprint: str
    seconds: float
    versions: dict[str, str]
    rows: int = 0
    parts: Parts | None = None
    counts: Mapping[str, tuple[int, int | None]] | None = None
    scored: tuple[ScoredRows, ...] = ()
    diagnosis: Diagnosis | None = None
    label_plan: Plan | None = None
    checks: tuple[Check, ...] = ()
    saved_report: Report | None = None  #: of a run that was read from a folder

    def named(self, *, source: str, target: str, usage: tuple[str, ...]) -> Self:
        """The same run with the names of its file and label, and three lines on how to use it."""
        return replace(self, origin=replace(self.origin, source=source, target=target, usage=usage))

    @cached_property
    def report(self) -> Report:
        """The report: text, JSON, HTML and a model card."""
        if self.saved_report is not None:
            return self.saved_report
        if not self.scored:
            raise SetpointError(
                "this classifier was saved without its report; fit it again for one"
            )
        return make_report(
            goal=self.rule.goal.lowered,
            rule=self.rule,
            scored=self.scored,
            facts=self._facts(),
            certificate=self.certificate,
            comparison=self.comparison,
            diagnosis=self.diagnosis,
            plan=self.label_plan,
            checks=self.checks,
        )

    def _facts(self) -> RunFacts:
        schema = self.encoder.schema
        binary = self.labels.task.kind == "binary"
        return RunFacts(
            source=self.origin.source or f"a table of {self.rows:,} rows",
            target=self.origin.target,
            positive=str(self.labels.pair[1]) if binary else None,
            rows=self.rows,
            columns={} if schema is None else schema.counts(),
            fingerprint=self.fingerprint,
            parts=dict(self.counts or {}),
            plan=tuple(self.plan.lines()),
            notes=texts(self.notes),
            settings={name: _shown(x) for name, x in self.origin.settings.items()},
            versions=self.versions,
            usage=self.origin.usage,
            seconds=self.seconds,
            finished=self.finished,
        )

    def splits(self) -> str | None:
        """The part and fold of each row, as CSV; None of a run that was read from a folder."""
        if self.parts is None:
            return None
        part = np.full(self.rows, "train", dtype="<U7")
        fold = self.parts.fold_of(self.rows)
        if len(self.parts.folds) == 1 and not self.parts.shared:
            part[self.parts.held] = "tune"
        part[self.parts.certify] = "certify"
        text = io.StringIO()
        text.write("row,part,fold\n")
        text.writelines(
            f"{i},{p},{f if f >= 0 else ''}\n"
            for i, (p, f) in enumerate(zip(part, fold.tolist(), strict=True))
        )
        return text.getvalue()


def versions() -> dict[str, str]:
    """Of Python and the packages that a run depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def as_notes(notes: Iterable[Note | str]) -> tuple[Note, ...]:
    """Notes, and bare sentences as notes without a code."""
    return tuple(n if isinstance(n, Note) else Note(NoteCode.OTHER, n) for n in notes)


def _shown(x: Any) -> Any:
    return x if isinstance(x, bool | int | float | str | None) else str(x)
