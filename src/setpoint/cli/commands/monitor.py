"""``setpoint monitor``: whether a proven promise still holds, as labels of new rows arrive."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.files import write_bytes
from setpoint.cli.display.certificate_view import told_short
from setpoint.cli.display.rule_view import data_line
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.errors import spelled
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.files.output_paths import (
    as_bytes,
    refuse_ending,
    refuse_existing,
    refuse_unwritable,
)
from setpoint.cli.files.rule_files import load_certificate
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.scored_table import ScoredTable, labels_for, read_for, roles_of
from setpoint.cli.inputs.shared_options import (
    ENDINGS,
    Debug,
    Group,
    Label,
    Positive,
    Score,
    Scores,
    Weight,
)
from setpoint.cli.jobs.run_scores import OutputColumns, scored_rows
from setpoint.cli.words import command, count, number
from setpoint.decisions import Certificate, Monitor, MonitorReport, Watched, plot_monitor
from setpoint.decisions.monitor import AGAIN, BROKEN, HOLDS, NOT_MONITORABLE

HELP = "Watch whether the promise of a certificate still holds on new rows, as labels arrive."
EPILOG = """
Examples

  setpoint monitor run may.csv --state monitor.json

  setpoint monitor rule.certificate.json may.csv --label fraud --score p \\
    --state monitor.json

  setpoint monitor rule.json may.csv --label fraud --score p \\
    --labels flagged --plot evidence.svg

Feed each row once, in the order of arrival, whatever was decided about it.
With --state the evidence of earlier calls is carried on: look as often as you
like, the error stays what the certificate says. Where only the rows decided
positive get their labels, say --labels flagged.

Exit codes

  0  nothing speaks against the promise, or the new rows prove it again
  1  an unexpected error
  2  a mistake in the options or a file; nothing that could be monitored
  3  the promise is broken
"""
_STYLES = {HOLDS: "green", AGAIN: "green", BROKEN: "bold red", NOT_MONITORABLE: "yellow"}


def monitor(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERT",
            help="A certificate, or a rule that was chosen with --prove (JSON); or the folder of "
            "a run.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="ROWS", help=f"Rows that came later, in their order, with labels: {ENDINGS}."
        ),
    ],
    label: Label = None,
    score: Score = None,
    scores: Scores = None,
    positive: Positive = None,
    weight: Weight = None,
    group: Group = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Carry on from this file, or begin it; it is updated."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Whose labels arrive: all, or flagged (rows decided positive). Default: all.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the evidence: .svg, .png or .pdf."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load, read, feed, keep, print; see :class:`setpoint.Monitor`."""
    refuse_ending(plot)
    refuse_existing([plot], force, rows=[file], read=[certificate, state])
    refuse_existing([state], force=True, rows=[file], read=[certificate])
    watching = _begun(load_certificate(certificate), certificate, state, labels)
    _refuse_nothing(watching.report())
    proof, before = watching.certificate, watching.rows
    point = proof.point
    if certificate.is_dir():
        columns = OutputColumns(label, score, scores, positive, weight, group)
        rows = _fresh_rows(SavedRun.open(certificate), file, columns)
    else:
        roles = roles_of(point, proof.goal, label, score, scores, positive, weight, group)
        rows = read_for(point.task, file, replace(roles, one_sided=True))
    report = watching.update(labels_for(point.task, rows), rows.scores, **rows.more)
    drawn = None if plot is None else as_bytes(plot_monitor(watching), plot)
    if state is not None:
        watching.save(state.resolve())  # a link stays a link
    if plot is not None and drawn is not None:
        write_bytes(plot, drawn)
    view = MonitorView(
        watching=watching,
        report=report,
        before=before,
        rows=rows,
        file=file,
        state=state,
        plot=plot,
    )
    if as_json:
        print_json(view.record(certificate))
    else:
        view.show(Screen.open())
    if report.status == BROKEN:
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _fresh_rows(run: SavedRun, file: Path, columns: OutputColumns) -> ScoredTable:
    """Rows with the scores of a run, unless they are those of the fit."""
    scored = scored_rows(run, file, columns, one_sided=True)
    if scored.fitted_on:
        raise DataError(f'"{file}" is the table of the fit; feed rows that came later.')
    return scored.rows


def _begun(proof: Certificate, source: Path, state: Path | None, labels: str | None) -> Monitor:
    """A monitor of the certificate: the one of the state file, where there is one."""
    if state is None or not state.exists():
        return Monitor(proof, labels=labels or "all")
    refuse_unwritable(state, "which has to be updated")
    monitor = Monitor.load(state)
    if monitor.certificate.to_json() != proof.to_json():
        raise FileError(
            f'"{state}" watches another certificate than "{source}"; name a new file as --state.'
        )
    if labels not in (None, monitor.labels):
        raise KindError(
            f'"{state}" was begun with --labels {monitor.labels}, and goes on with it; name a new '
            "file as --state to begin again."
        )
    return monitor


def _refuse_nothing(report: MonitorReport) -> None:
    """Raise where no constraint can be monitored, before rows are read."""
    if report.status == NOT_MONITORABLE:
        reasons = "; ".join(f"{w.constraint}: {w.why}" for w in report.watched)
        raise KindError(f"there is nothing that could be monitored. {reasons}.")


@dataclass(frozen=True, eq=False)
class MonitorView:
    """A monitor that was fed, and what it says."""

    watching: Monitor
    report: MonitorReport
    before: int
    rows: ScoredTable
    file: Path
    state: Path | None
    plot: Path | None

    def record(self, certificate: Path) -> dict[str, Any]:
        """Plain data."""
        proof = self.watching.certificate
        report = self.report
        written = {"state": self.state, "plot": self.plot}
        return {
            "goal": str(proof.goal),
            "certificate": {
                "file": str(certificate),
                "verdict": proof.verdict,
                "confidence": proof.confidence,
            },
            "data": {"file": str(self.file), **self.rows.about},
            "operating_point": proof.point.describe(),
            "labels": self.watching.labels,
            "status": report.status,
            "rows": report.rows,
            "alarm": report.alarm,
            "broken_at": self.watching.broken_at,
            "constraints": [asdict(w) for w in report.watched],
            "sentence": str(report),
            "written": {name: str(path) for name, path in written.items() if path is not None},
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        proof = self.watching.certificate
        unproven = "" if proof.proven else "; nothing was promised, the goal itself is watched"
        screen.line()
        screen.facts(
            [
                ("Goal", str(proof.goal)),
                ("Certificate", f"{told_short(proof)}{unproven}"),
                ("Data", data_line(self.rows.about, str(self.file))),
                ("Operating point", proof.point.describe()),
            ]
        )
        limit = number(round(self.watching.broken_at, 6))
        screen.table(
            ("", "rows with a say", "evidence against", ""),
            [_row(w) for w in self.report.watched],
            numeric=(1, 2),
            solid=(3,),
            legend=f"evidence against: 1 at the start, the most so far; broken from {limit} on",
        )
        screen.facts([*self._outcome(), *self._kept()])

    def _outcome(self) -> list[tuple[str, str]]:
        report = self.report
        after = f"after {count(report.rows, 'row')}"
        facts = []
        if report.status == BROKEN and report.alarm is not None:
            here = report.alarm - self.before
            place = f" (data row {here:,} of {self.file})" if here > 0 else ""
            error = f"{1 - report.confidence:.3g}"
            way = f"{command()} tune fresh.csv --prove {report.confidence:g} --reference FILE"
            facts += [
                ("BROKEN", f"since row {report.alarm:,} of {report.rows:,}{place}"),
                ("", f"said of a promise that holds with probability {error} at most, for ever"),
                ("Begin again", f"{way}, on fresh rows"),
            ]
        elif report.status == AGAIN:
            proven = "they have proven every constraint anew; no break is found since"
            facts.append(("RE-CERTIFIED", f"{after}: {proven}"))
        else:
            facts.append(("HOLDS", f"{after}: nothing speaks against the promise so far"))
        if report.caution is not None:
            facts.append(("Caution", spelled(report.caution)))
        unwatched = (w for w in report.watched if w.status == NOT_MONITORABLE)
        return [*facts, *(("Not watched", f"{w.constraint}: {w.why}") for w in unwatched)]

    def _kept(self) -> list[tuple[str, str]]:
        facts = []
        if self.state is not None:
            facts.append(("Written", f"{self.state}: {count(self.report.rows, 'row')} so far"))
        else:
            facts.append(("Carry on", "--state monitor.json keeps the evidence for the next rows"))
        if self.plot is not None:
            facts.append(("" if self.state is not None else "Written", str(self.plot)))
        return facts


def _row(watched: Watched) -> tuple[str | Text, ...]:
    status = Text(watched.status.upper() if watched.status == BROKEN else watched.status)
    status.stylize(_STYLES[watched.status])
    if watched.status == NOT_MONITORABLE:
        return watched.constraint, "–", "–", status
    return watched.constraint, f"{watched.rows:,}", number(watched.evidence), status
