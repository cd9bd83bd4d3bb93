"""``setpoint compare``: two runs side by side, and on the same rows if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from setpoint._core.errors import KindError
from setpoint.cli.display.run_view import STYLES, span
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.scored_table import ScoredTable, labels_for
from setpoint.cli.inputs.shared_options import ENDINGS, Debug, Several
from setpoint.cli.jobs.run_scores import OutputColumns, Scorer, take_rows
from setpoint.cli.words import count, in_words, number
from setpoint.datasets import read_table
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.referee import Bout, Entrant
from setpoint.expressions.rows.row_fingerprint import Fingerprint
from setpoint.goals import Goal
from setpoint.rules.decision_rule import applied

HELP = "Set two runs side by side; with labelled rows, both decide the same ones."
EPILOG = """
Examples

  setpoint compare run1 run2

  setpoint compare run1 run2 labelled.csv

  setpoint compare run1 run2 labelled.csv --goal "maximize f1"

With rows, the difference has a paired interval: rows are drawn anew, the same
ones for both. Rows that neither run has seen are the fair judge. Without
--goal the goal of the first run is read.

Exit codes

  0  done
  1  an unexpected error
  2  a mistake in the options, a run or the file
"""


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN1", help="A folder that fit wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN2", help="Another.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="DATA", help=f"Labelled rows: {ENDINGS}.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Of the rows. Default: as fitted."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option("--goal", "-g", metavar="TEXT", help="Judge by another goal than RUN1's."),
    ] = None,
    group: Annotated[
        Several, typer.Option(metavar="COL", help="Column of a group; may be repeated.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the weight of each row.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Open, score, print; see :class:`setpoint.decisions.referee.Bout`."""
    runs = SavedRun.open(first), SavedRun.open(second)
    found = None
    if file is not None:
        wanted = runs[0].rule.goal if goal is None else Goal.parse(goal)
        label = None if target is None else [target]
        found = _same_rows(runs, file, wanted, OutputColumns(label, weight=weight, group=group))
    elif goal is not None or target is not None or group or weight is not None:
        raise KindError("--goal, --target, --group and --weight belong to DATA; name the file.")
    if as_json:
        print_json(_record(runs, found, file))
    else:
        _show(Screen.open(), runs, found, file)


# --- side by side -----------------------------------------------------------------------------


def comparable(runs: Sequence[SavedRun]) -> tuple[bool, str]:
    """Whether the figures of two runs can be held against each other, and why."""
    one, two = runs
    if one.about["fingerprint"] != two.about["fingerprint"]:
        return False, (
            "the tables differ, in rows or columns, and so may the rows that the figures are of. "
            "Name labelled rows that neither run has seen, and both decide the same ones."
        )
    if _proof_rows(one) != _proof_rows(two):
        return False, "the same table, but the figures are of different rows of it."
    if one.report["lowered"] != two.report["lowered"]:
        return True, "the same rows; the goals differ, and each was chosen for its own."
    return True, "the same rows and the same goal; the figures can be held against each other."


def _proof_rows(run: SavedRun) -> tuple[Any, ...]:
    rows = next((r for r in run.report["rows"] if r["name"] == run.report["main"]), {})
    return run.report["main"], rows.get("rows"), rows.get("positives"), run.about["plan"]["how"]


def _column(run: SavedRun) -> dict[str, str]:
    """What is said of one run, by row of the table."""
    facts = run.facts
    said = {
        "goal": run.goal,
        "data": f"{facts['source']}, {count(facts['rows'], 'row')}",
        "fingerprint": str(facts["fingerprint"])[:12],
        "model": _model(run),
        "verdict": run.status + ("" if run.about["finished"] else " (stopped early)"),
        "operating point": run.rule.operating_point(),
    }
    for figure in run.figures:
        if figure["role"] == "objective":
            said[figure["name"]] = f"{number(figure['value'])}{span(figure)}"
    for figure in run.figures:
        if figure["role"] == "limit":
            name = f"{figure['name']} {figure['op']} {figure['asked']:g}"
            said[name] = f"{number(figure['value'])}{span(figure)}"
    proof = run.certificate
    if proof is not None and proof.findings:
        said["certificate"] = (
            f"{proof.verdict} at {100 * proof.confidence:g}%, {count(proof.rows, 'row')}"
        )
    if run.comparison is not None:
        said["referee"] = run.comparison.sentence
    return {**said, "time": in_words(float(run.about["seconds"]))}


def _model(run: SavedRun) -> str:
    stack = run.about["stack"]
    pairs = zip(stack["names"], stack["weights"], strict=True)
    used = [(name, weight) for name, weight in pairs if weight > 0]
    if len(used) == 1:
        return str(used[0][0])
    return " + ".join(f"{weight:.2f} {name}" for name, weight in used)


def _show(
    screen: Screen,
    runs: Sequence[SavedRun],
    found: tuple[Comparison, ScoredTable, str] | None,
    file: Path | None,
) -> None:
    one, two = (_column(run) for run in runs)
    names = list(dict.fromkeys([*one, *two]))
    last = [name for name in names if name in ("certificate", "referee", "time")]
    rows: list[tuple[str | Text, ...]] = []
    for name in [*(n for n in names if n not in last), *last]:
        cells = [side.get(name, "–") for side in (one, two)]
        rows.append((name, *(Text(screen.say(c), _style(name, c)) for c in cells)))
    screen.table(("", *_names(runs)), rows)
    screen.facts([("Comparable", comparable(runs)[1])])
    if found is None:
        return
    compared, read, caution = found
    screen.line()
    screen.facts(_same_facts(compared, read, caution, str(file)))


def _style(name: str, cell: str) -> str:
    return next((s for v, s in STYLES.items() if name == "verdict" and cell.startswith(v)), "")


def _same_facts(
    compared: Comparison, rows: ScoredTable, caution: str, file: str
) -> list[tuple[str, str | Text]]:
    facts: list[tuple[str, str | Text]] = [
        ("Same rows", f"{file}: {count(compared.rows, 'row')}; judged by {compared.goal}"),
    ]
    name = compared.goal.objective
    facts += [(c.name, f"{name} {c.shown()}") for c in compared.contenders]
    facts.append(("Difference", Text(compared.sentence, "bold")))
    return [*facts, ("CAUTION", caution)] if caution else facts


def _record(
    runs: Sequence[SavedRun], found: tuple[Comparison, ScoredTable, str] | None, file: Path | None
) -> dict[str, Any]:
    fine, why = comparable(runs)
    same = None
    if found is not None:
        compared, rows, caution = found
        same = {
            "data": {"file": str(file), **rows.about},
            "comparison": compared.to_json(),
            "sentence": compared.sentence,
            "caution": caution,
        }
    return {
        "runs": [{"run": str(run.folder), "status": run.status, **_column(run)} for run in runs],
        "comparable": fine,
        "why": why,
        "same_rows": same,
    }


# --- on the same rows -------------------------------------------------------------------------


def _same_rows(
    runs: Sequence[SavedRun], file: Path, goal: Goal, columns: OutputColumns
) -> tuple[Comparison, ScoredTable, str]:
    """Both runs decide the rows of a file; who won, by how much."""
    one, two = (run.rule.task for run in runs)
    if (one.kind, one.positive, one.classes) != (two.kind, two.positive, two.classes):
        raise KindError(
            "the runs tell different classes apart, and cannot decide the same rows: "
            f"{_classes(runs[0])} and {_classes(runs[1])}."
        )
    table = read_table(file)
    names = _names(runs)
    entrants, read, cautions = [], [], []
    for run, name in zip(runs, names, strict=True):
        judged = replace(run, rule=replace(run.rule, goal=goal))
        scored = take_rows(judged, table, Scorer.open(run.folder), columns)
        rows = scored.rows
        held = applied(run.rule, labels_for(run.rule.task, rows), rows.scores, **rows.more)
        entrants.append(Entrant(name, held, run.rule.operating_point()))
        read.append(rows)
        known = any(Fingerprint.of(held).shares_rows(seen) for seen in run.rule.seen)
        if known or scored.fitted_on:
            cautions.append(f"{name} has used some of these rows")
    bout = Bout.of(goal, entrants, np.zeros(len(table), np.intp))
    compared = bout.comparison(names[0])
    sentence = _sentence(compared)
    return replace(compared, sentence=sentence), read[0], "; ".join(cautions)


def _sentence(found: Comparison) -> str:
    """Who is better on these rows, and by how much."""
    (gap,) = found.differences
    one, two = found.contenders
    name = str(found.goal.objective)
    span = f"difference {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
    said = f"{name} {one.shown()} against {two.shown()}, {span}"
    if gap.separated:
        better = one if gap.separated > 0 else two
        return f"{better.name} is better on these rows: {said}."
    return f"Not separable on these rows: {said}."


def _names(runs: Sequence[SavedRun]) -> list[str]:
    """What the runs are called: their folders, by the last name where that tells them apart."""
    last, whole = [run.folder.name for run in runs], [str(run.folder) for run in runs]
    if len(set(last)) == 2:
        return last
    return whole if len(set(whole)) == 2 else [f"{whole[0]} (1)", f"{whole[1]} (2)"]


def _classes(run: SavedRun) -> str:
    facts = run.facts
    if facts["positive"] is not None:
        return f"{facts['target']} = {facts['positive']}"
    return f"{facts['target']}: {', '.join(map(str, run.rule.task.classes or ()))}"
