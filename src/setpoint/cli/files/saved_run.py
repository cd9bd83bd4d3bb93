"""A run folder as plain data: what was asked, found, proven and compared. No model is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import FileError
from setpoint._core.notes import Note
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.diagnose import Diagnosis
from setpoint.decisions.outcome import Outcome
from setpoint.fit.conclusion.stack import MemberOutcome, read_outcomes

if TYPE_CHECKING:
    from setpoint.fit.run_record import ClassifierRun


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run that was read from its folder, whose files are those of its manifest.

    Attributes
    ----------
    folder : Path
    about : dict
        ``classifier.json``.
    rule : DecisionRule
    certificate : Certificate or None
    comparison : Comparison or None
    report : dict
        The record of the report.
    """

    folder: Path
    about: Mapping[str, Any]
    rule: DecisionRule
    certificate: Certificate | None
    comparison: Comparison | None
    report: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> SavedRun:
        """Read a run folder; nothing in it is executed."""
        from setpoint.fit.run_files import CLASSIFIER, SealedRun

        run = SealedRun.open(folder)
        report = run.report()
        if report is None:
            raise FileError(f'"{folder}" was saved without its report; fit again for one.')
        return cls(
            folder=folder,
            about=run.json(CLASSIFIER),
            rule=run.rule(),
            certificate=run.certificate(),
            comparison=run.comparison(),
            report=report.to_json(),
        )

    @classmethod
    def of(cls, folder: Path, run: ClassifierRun) -> SavedRun:
        """A run that was just written to a folder, without reading it back."""
        from setpoint.fit.storage import about

        return cls(
            folder=folder,
            about=about(run),
            rule=run.rule,
            certificate=run.certificate,
            comparison=run.comparison,
            report=run.report.to_json(),
        )

    @property
    def status(self) -> Outcome:
        """Whether the goal is met, and with proof."""
        return Outcome(self.report["verdict"]["status"])

    @property
    def met(self) -> bool:
        """Whether the goal is met: proven, where there is something to prove."""
        return self.status.met

    @property
    def goal(self) -> str:
        """As it was asked."""
        return str(self.report["goal"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """What was fitted on what."""
        return self.report["facts"]

    @property
    def target(self) -> tuple[str, ...]:
        """The columns of the labels."""
        name = str(self.facts["target"])
        return tuple(name.split(",")) if self.rule.task.kind == "multilabel" else (name,)

    @property
    def figures(self) -> list[Mapping[str, Any]]:
        """The objective, the limits and what one usually asks, on the rows the report is about."""
        found = self.report["figures"]
        return next((f["items"] for f in found if f["on"] == self.report["main"]), [])

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why the goal cannot be met, and what its limits cost."""
        diagnosis = self.report["diagnosis"]
        return None if diagnosis is None else Diagnosis.from_json(diagnosis["details"])

    @property
    def tuned_on_fitted_rows(self) -> bool:
        """Whether the rule was chosen on the rows that models were fitted on, for want of rows."""
        plan = self.about["plan"]
        return plan["folds"] == 1 and "tune" not in plan["rows"]

    @property
    def members(self) -> tuple[MemberOutcome, ...]:
        """Every member of the plan and what became of it."""
        return read_outcomes(self.about)

    @property
    def coded_notes(self) -> tuple[Note, ...]:
        """What was chosen and why, and what a reader should know."""
        return tuple(map(Note.from_json, self.about["notes"]))

    @property
    def notes(self) -> list[str]:
        """The sentences of the notes."""
        return [note.text for note in self.coded_notes]

    @property
    def checks(self) -> list[Mapping[str, Any]]:
        """Checks of the data, of which something was found."""
        return [check for check in self.report["checks"] if check["status"] == "look"]

    @property
    def flagged(self) -> tuple[float, int] | None:
        """The share of rows decided positive where it was last known, and how many rows."""
        found = next((f for f in self.figures if f["name"] == "positive_rate"), None)
        rows = next((r["rows"] for r in self.report["rows"] if r["name"] == self.report["main"]), 0)
        if found is None or found["value"] is None:
            return None
        return float(found["value"]), int(rows)
