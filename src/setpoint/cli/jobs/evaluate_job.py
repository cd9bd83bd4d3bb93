"""A run on other rows with labels: scored, judged and tested anew."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint._core.errors import DataError, ErrorCode
from setpoint.cli.display.certificate_view import show_certificate, told_short
from setpoint.cli.display.rule_view import data_line, decided_facts, show_kept
from setpoint.cli.display.run_view import STYLES
from setpoint.cli.display.terminal import Screen
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.scored_table import ScoredTable, labels_for
from setpoint.cli.jobs.run_scores import OutputColumns, scored_rows
from setpoint.cli.words import command
from setpoint.decisions import Certificate, Evaluation, certify
from setpoint.decisions import evaluate as judge
from setpoint.rules.certificate import PROVEN, REFUTED

_SEEN = "these rows were part of the fit: what stands here are figures that flatter, and no proof"


@dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """A run on other rows.

    Attributes
    ----------
    run : SavedRun
    file : Path
    rows : ScoredTable
    evaluation : Evaluation
    proof : Certificate or None
        Of these rows; None where the goal has no constraint, or where they were seen before.
    why : str
        Why there is none.
    """

    run: SavedRun
    file: Path
    rows: ScoredTable
    evaluation: Evaluation
    proof: Certificate | None
    why: str

    @classmethod
    def of(cls, folder: Path, file: Path, columns: OutputColumns) -> EvaluatedRun:
        """Score, judge, test anew."""
        run = SavedRun.open(folder)
        scored = scored_rows(run, file, columns)
        rows = scored.rows
        y = labels_for(run.rule.task, rows)
        evaluation = judge(run.rule, y, rows.scores, **rows.more)
        tested = (None, _SEEN) if scored.fitted_on else _tested(run, rows, y)
        return cls(run, file, rows, evaluation, *tested)

    def promise(self) -> str:
        """Whether the promise still holds, in one sentence."""
        evaluation = self.evaluation
        proof = self.proof
        if not evaluation.kept:
            return f"{self.run.goal} promises nothing; a figure is all there is"
        if self.why:
            return self.why
        if proof is None:
            return "holds here" if evaluation.holds else "broken here"
        if proof.verdict == PROVEN:
            return f"holds: proven on these rows, at {100 * proof.confidence:g}% confidence"
        if proof.verdict == REFUTED:
            return f"broken, beyond chance ({100 * proof.confidence:g}% confidence)"
        if evaluation.holds:
            return "holds on these rows; they do not prove it"
        return "broken on these rows, though chance alone might do that"

    def record(self) -> dict[str, Any]:
        """Plain data."""
        run = self.run
        evaluation = self.evaluation
        proof = self.proof
        before = self.run.certificate
        return {
            "goal": str(run.rule.goal),
            "run": str(run.folder),
            "data": {"file": str(self.file), **self.rows.about},
            "operating_point": run.rule.operating_point(),
            "holds": evaluation.holds,
            "value": evaluation.value,
            "constraints": [asdict(kept) for kept in evaluation.kept],
            "decided": self.rows.decided(run.rule),
            "certificate": None if before is None else before.verdict,
            "verdict": None if proof is None else proof.verdict,
            "tested": None if proof is None else proof.to_json(),
            "promise": self.promise(),
            "sentence": str(evaluation),
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        run, rows, before = self.run, self.rows, self.run.certificate
        kept = "no certificate" if before is None else told_short(before)
        screen.line()
        screen.facts(
            [
                ("Goal", str(run.rule.goal)),
                ("Run", f"{run.folder}: {kept}"),
                ("Data", data_line(rows.about, str(self.file))),
                ("Operating point", run.rule.operating_point()),
            ]
        )
        decided = decided_facts(rows.decided(run.rule), chosen_here=False)
        if self.proof is None:
            show_kept(screen, self.evaluation)
            screen.facts(decided)
        else:
            show_certificate(screen, self.proof, decided)
        screen.line()
        folder = shlex.quote(str(run.folder))
        watch = f"{command()} monitor {folder} labelled.csv --state monitor.json"
        screen.facts([*self.outcome(), *([("Watch it", watch)] if self.evaluation.kept else [])])

    def outcome(self) -> list[tuple[str, str | Text]]:
        """The figures in a line, and the promise."""
        evaluation = self.evaluation
        style = STYLES["PROVEN" if evaluation.holds else "REFUTED"] if evaluation.kept else ""
        return [
            ("Here" if evaluation.holds else "BROKEN", str(evaluation)),
            ("Promise", Text(self.promise(), style)),
        ]


def _tested(run: SavedRun, rows: ScoredTable, y: Any) -> tuple[Certificate | None, str]:
    """A certificate of these rows, or why there is none."""
    rule = run.rule
    if not rule.goal.constraints or rule.point.no_proof:
        return None, ""
    confidence = float(run.about["settings"]["confidence"])
    more = {name: values for name, values in rows.more.items() if name != "query"}
    seen = [] if run.certificate is None else [run.certificate]
    try:
        return certify(rule.goal, rule, y, rows.scores, confidence, seen=seen, **more), ""
    except DataError as error:
        if error.code is not ErrorCode.ROWS_USED:
            raise
        return None, _SEEN
