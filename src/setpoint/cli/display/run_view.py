"""A run on the screen: where it stands, what holds on new rows, what is proven, what it bought."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint._core.notes import Note, NoteCode
from setpoint.cli.display.terminal import Screen
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.words import command, count, number
from setpoint.decisions import Certificate, Finding
from setpoint.decisions.outcome import Outcome
from setpoint.rules.certificate import PROVEN, REFUTED

Fact = tuple[str, str | Text]
STYLES: Mapping[str, str] = {
    Outcome.PROVEN: "bold green",
    Outcome.NO_CONSTRAINT: "bold",
    Outcome.NOT_PROVEN: "bold yellow",
    Outcome.REFUTED: "bold red",
    Outcome.NOT_FEASIBLE: "bold red",
}
_USUAL = "a limit that just holds where it was chosen breaks on new rows about half of the time"


def show_outcome(screen: Screen, run: SavedRun) -> None:
    """What came of a fit."""
    screen.line()
    screen.facts([*point_facts(run), *figure_facts(run)])
    if run.status is Outcome.NOT_FEASIBLE and run.diagnosis is not None:
        screen.line()
        screen.facts(infeasible_facts(run))
    screen.line()
    screen.facts([*certificate_facts(run), *referee_facts(run), *price_facts(run)])
    worth = [*note_facts(run), *check_facts(run)]
    if worth:
        screen.line()
        screen.facts(worth)


def verdict_text(run: SavedRun) -> Text:
    """The status in words and colour."""
    return Text(run.status, STYLES[run.status])


def point_facts(run: SavedRun) -> list[Fact]:
    """How scores become decisions, and with what margin."""
    facts: list[Fact] = [("Operating point", run.rule.operating_point())]
    words = margin_words(run)
    return [*facts, ("", words)] if words else facts


def _margin_note(run: SavedRun) -> Note | None:
    """The note on a rule with less than its margin, where the rule was chosen by its margin."""
    if not run.rule.goal.constraints or not run.rule.feasible or run.rule.certificate is not None:
        return None
    return next((note for note in run.coded_notes if note.code is NoteCode.SMALL_MARGIN), None)


def margin_words(run: SavedRun) -> str:
    """How the rule was chosen among those that keep the limits."""
    rule, margin = run.rule, run.about["settings"]["margin"]
    if not rule.goal.constraints or not rule.feasible:
        return ""
    if rule.certificate is not None:
        return "the best rule that rows nothing had seen could prove"
    note = _margin_note(run)
    if note is not None:
        return note.text
    if margin == 0 or run.about["model"] == "baseline":
        return f"without a margin: {_USUAL}"
    return f"with a margin of {margin:g} standard errors: {_USUAL}"


def figure_facts(run: SavedRun) -> list[Fact]:
    """The objective and the limits, with intervals, and on which rows."""
    shown = [f for f in run.figures if f["role"] != "also"]
    if not shown:
        return []
    wide = max(len(f["name"]) for f in shown)
    lines = [_figure(f, wide) for f in shown]
    return [("" if i else "Figures", line) for i, line in enumerate([*lines, rows_words(run)])]


def _figure(figure: Mapping[str, Any], wide: int) -> str:
    asked = "" if figure["asked"] is None else f"   asked {figure['op']} {figure['asked']:g}"
    name = f"{figure['name']:<{wide}}" if wide <= 40 else figure["name"]
    return f"{name}  {number(figure['value'])}{span(figure)}{asked}"


def span(figure: Mapping[str, Any]) -> str:
    """The interval of a figure, where it has one."""
    low, high = figure["low"], figure["high"]
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"


def rows_words(run: SavedRun) -> str:
    """Which rows the figures are of."""
    rows = next((r for r in run.report["rows"] if r["name"] == run.report["main"]), None)
    if rows is None:
        return ""
    many = count(rows["rows"], "row")
    if run.report["fresh"]:
        return f"on {many} never used before; 95% intervals"
    if run.tuned_on_fitted_rows:
        return f"on {many} that the model was fitted on, which flatters it; 95% intervals"
    return f"on {many} that also chose the rule, scored out-of-fold; 95% intervals"


def infeasible_facts(run: SavedRun) -> list[Fact]:
    """Why the goal cannot be met, and what can."""
    found = run.diagnosis
    assert found is not None
    (verdict, reason), *rest = found.facts()
    facts: list[Fact] = [(verdict, Text(reason, "bold red"))]
    before = None
    for label, words in rest:
        facts.append(("" if label == before else label, words))
        before = label
    return facts


# --- proof ------------------------------------------------------------------------------------


def certificate_facts(run: SavedRun) -> list[Fact]:
    """What is proven, by which rows, and what would prove the rest."""
    proof = run.certificate
    if not run.rule.goal.constraints:
        return [("Certificate", "none: the goal sets no limit that could be proven")]
    if proof is None:
        return [("Certificate", "none: no rows were kept apart to prove it on")]
    facts: list[Fact] = [("Certificate", _head(proof))]
    several = len(proof.findings) > 1
    facts += [
        ("", f"{f.constraint}: {_found(f)}" if several else _found(f)) for f in proof.findings
    ]
    if proof.proven:
        return [*facts, ("", f"for rows like these, not under drift: {command()} monitor")]
    return [*facts, *_way_to_proof(run)]


def _way_to_proof(run: SavedRun) -> list[Fact]:
    """What could be proven, and how many labels it takes."""
    found = run.diagnosis
    if found is None or run.status is Outcome.NOT_FEASIBLE:
        return []
    return [("", f"{label}: {words}") for label, words in found.proof_facts()]


def _head(proof: Certificate) -> Text:
    style = STYLES[proof.verdict]
    promise = ", ".join(f.constraint for f in proof.findings)
    return Text.assemble((proof.verdict, style), f" at {100 * proof.confidence:g}%: {promise}")


def _found(finding: Finding) -> str:
    """What was seen, the rows behind it, the bound, and what would settle it."""
    seen = "empty here" if finding.value is None else f"{number(finding.value)} here"
    rows = f", {finding.evidence[0]}" if len(finding.evidence) == 1 else ""
    limit = f", {finding.limit()} by {finding.how}" if finding.bounded else ""
    way = "" if finding.verdict in (PROVEN, REFUTED) else f"; {finding.way_out()}"
    return f"{seen}{rows}{limit}{way}"


# --- what it bought ---------------------------------------------------------------------------


def referee_facts(run: SavedRun) -> list[Fact]:
    """The baselines on the same rows, and the sentence of the referee."""
    found = run.comparison
    if found is None:
        return []
    apart = {d.name: d for d in found.differences}
    lines = [found.sentence]
    for c in found.contenders:
        if c.name in apart:
            d = apart[c.name]
            words = f"{c.name}: {found.goal.objective} {c.shown()}"
            words += f" (difference {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}])"
            lines.append(words + (f"; {c.verdict} on the certify rows" if c.verdict else ""))
    return [("" if i else "Referee", line) for i, line in enumerate(lines)]


def price_facts(run: SavedRun) -> list[Fact]:
    """What each limit costs the objective."""
    found = run.diagnosis
    if found is None or run.status is Outcome.NOT_FEASIBLE:
        return []
    said = [price.sentence() for price in found.prices]
    return [("" if i else "Price", line) for i, line in enumerate(said)]


# --- what to know -----------------------------------------------------------------------------


def note_facts(run: SavedRun) -> list[Fact]:
    """What was chosen and why, and what a reader should know."""
    shown = _margin_note(run)
    notes = [note.text for note in run.coded_notes if note != shown]
    return [("" if i else "Notes", f"{text.rstrip('.')}.") for i, text in enumerate(notes)]


def check_facts(run: SavedRun) -> list[Fact]:
    """Checks that found something to look at."""
    lines = [f"{c['title']}: {c['sentence']} ({c['code']})" for c in run.checks]
    return [("" if i else "Look at", line) for i, line in enumerate(lines)]


@dataclass(frozen=True)
class RunUsage:
    """The lines that use a run folder, as one types them."""

    predict: str
    evaluate: str
    explain: str
    python: str

    @classmethod
    def of(cls, folder: Path, program: str) -> RunUsage:
        """Of a folder, by the name that the program goes by."""
        quoted = shlex.quote(str(folder))
        name = json.dumps(folder.as_posix(), ensure_ascii=False)
        return cls(
            predict=f"{program} predict {quoted} new.csv --out decisions.csv",
            evaluate=f"{program} evaluate {quoted} labelled.csv",
            explain=f"{program} explain {quoted}",
            python=f"sp.load({name}).predict(table)",
        )


def next_facts(run: SavedRun, time: str) -> list[Fact]:
    """Where the report lies and what to do with the run."""
    usage = RunUsage.of(run.folder, command())
    return [
        ("Report", f"{run.folder / 'report.html'} ({time})"),
        ("Use it", usage.predict),
        ("Check it", usage.evaluate),
        ("Why", usage.explain),
    ]


def record(run: SavedRun) -> dict[str, Any]:
    """A run as plain data."""
    proof, found = run.certificate, run.diagnosis
    return {
        "goal": run.goal,
        "status": run.status,
        "sentence": run.report["verdict"]["headline"],
        "detail": run.report["verdict"]["detail"],
        "finished": bool(run.about["finished"]),
        "operating_point": run.rule.operating_point(),
        "chosen": margin_words(run),
        "figures": [f for f in run.figures if f["role"] != "also"],
        "figures_on": rows_words(run),
        "certificate": None if proof is None else run.report["certificate"],
        "comparison": None if run.comparison is None else run.comparison.to_json(),
        "prices": [] if found is None else [price.sentence() for price in found.prices],
        "diagnosis": None if found is None else [list(pair) for pair in found.facts()],
        "notes": run.notes,
        "checks": [dict(check) for check in run.checks],
        "seconds": run.about["seconds"],
    }
