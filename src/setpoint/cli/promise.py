"""Whether the promise of a run still holds on other rows, with labels."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint._core.errors import DataError
from setpoint.cli.output import Screen, command, print_json
from setpoint.cli.proof import show_certificate, told_short
from setpoint.cli.results import data_line, decided_facts, show_kept
from setpoint.cli.rows import Rows
from setpoint.cli.ruled import labels_for
from setpoint.cli.run import Run
from setpoint.cli.scored import Columns, scored_rows
from setpoint.cli.story import STYLES
from setpoint.decisions import Certificate, Evaluation, certify
from setpoint.decisions import evaluate as judge
from setpoint.decisions.certificate import PROVEN, REFUTED

_SEEN = "these rows were part of the fit: what stands here are figures that flatter, and no proof"


def judge_run(folder: Path, file: Path, columns: Columns, as_json: bool) -> bool:
    """Score, judge, test anew, print; whether every constraint holds here."""
    run = Run.open(folder)
    rows = scored_rows(folder, file, columns, run=run)
    y = labels_for(run.rule.task, rows)
    found = judge(run.rule, y, rows.scores, **rows.more)
    proof, why = _tested(run, rows, y)
    if as_json:
        print_json(_record(run, rows, found, proof, why, file))
    else:
        _show(Screen.open(), run, rows, found, proof, why, file)
    return found.holds


def _tested(run: Run, rows: Rows, y: Any) -> tuple[Certificate | None, str]:
    """A certificate of these rows, or why there is none."""
    rule = run.rule
    if not rule.goal.constraints or rule.kind == "top-k":
        return None, ""
    confidence = float(run.about["settings"]["confidence"])
    more = {name: values for name, values in rows.more.items() if name != "query"}
    seen = [] if run.certificate is None else [run.certificate]
    try:
        return certify(rule.goal, rule, y, rows.scores, confidence, seen=seen, **more), ""
    except DataError as error:
        if "already used" not in str(error):
            raise
        return None, _SEEN


def promise_words(run: Run, found: Evaluation, proof: Certificate | None, why: str) -> str:
    """Whether the promise still holds, in one sentence."""
    if not found.kept:
        return f"{run.goal} promises nothing; a figure is all there is"
    if why:
        return why
    if proof is None:
        return "holds here" if found.holds else "broken here"
    if proof.verdict == PROVEN:
        return f"holds: proven on these rows, at {100 * proof.confidence:g}% confidence"
    if proof.verdict == REFUTED:
        return f"broken, beyond chance ({100 * proof.confidence:g}% confidence)"
    if found.holds:
        return "holds on these rows; they do not prove it"
    return "broken on these rows, though chance alone might do that"


def _record(
    run: Run,
    rows: Rows,
    found: Evaluation,
    proof: Certificate | None,
    why: str,
    file: Path,
) -> dict[str, Any]:
    before = run.certificate
    return {
        "goal": str(run.rule.goal),
        "run": str(run.folder),
        "data": {"file": str(file), **rows.about},
        "operating_point": run.rule.operating_point(),
        "holds": found.holds,
        "value": found.value,
        "constraints": [asdict(kept) for kept in found.kept],
        "decided": rows.decided(run.rule),
        "certificate": None if before is None else before.verdict,
        "verdict": None if proof is None else proof.verdict,
        "tested": None if proof is None else proof.to_json(),
        "promise": promise_words(run, found, proof, why),
        "sentence": str(found),
    }


def _show(
    screen: Screen,
    run: Run,
    rows: Rows,
    found: Evaluation,
    proof: Certificate | None,
    why: str,
    file: Path,
) -> None:
    before = run.certificate
    screen.line()
    screen.facts(
        [
            ("Goal", str(run.rule.goal)),
            ("Run", f"{run.folder}: {'no certificate' if before is None else told_short(before)}"),
            ("Data", data_line(rows.about, str(file))),
            ("Operating point", run.rule.operating_point()),
        ]
    )
    decided = decided_facts(rows.decided(run.rule), chosen_here=False)
    if proof is None:
        show_kept(screen, found)
        screen.facts(decided)
    else:
        show_certificate(screen, proof, decided)
    style = STYLES["PROVEN" if found.holds else "REFUTED"] if found.kept else ""
    folder = shlex.quote(str(run.folder))
    screen.line()
    screen.facts(
        [
            ("Here" if found.holds else "BROKEN", str(found)),
            ("Promise", Text(promise_words(run, found, proof, why), style)),
            ("Watch it", f"{command()} monitor {folder} new.csv --state monitor.json"),
        ]
    )
