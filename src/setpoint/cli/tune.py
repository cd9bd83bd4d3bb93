"""``setpoint tune``: the operating point for a file of scores, from whatever model they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.files import write_bytes
from setpoint.cli import tradeoff
from setpoint.cli.debugging import Debug
from setpoint.cli.output import Code, Json, Screen, print_json
from setpoint.cli.results import data_line, show_rule
from setpoint.cli.rows import Roles, Rows, read_rows
from setpoint.cli.saving import refuse_existing
from setpoint.decisions import DecisionRule
from setpoint.decisions import tune as choose
from setpoint.goals import Goal

HELP = "Choose the operating point that best meets a goal, on the scores of any model."
EPILOG = """
Examples

  setpoint tune scores.csv --label fraud --score p --out rule.json \\
    --goal "maximize recall subject to precision >= 0.9"

  setpoint tune scores.parquet --label sick --positive yes --score risk \\
    --goal "minimize cost(fp=1, fn=20)" --plot cost.svg

  setpoint tune scores.csv --label hired --group sex --kind per-group \\
    --goal 'maximize recall subject to gap(recall, by="sex") <= 0.05'

  setpoint tune scores.csv --task multiclass --label animal \\
    --scores cat,dog,owl --goal "maximize macro(f1)"

Exit codes

  0  the goal is met
  1  an unexpected error
  2  a mistake in the goal, the options or the file
  3  the goal cannot be met; the rule that comes nearest is given
"""

Column = list[str] | None


def tune(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES",
            help="Table of labels and scores: .csv, .csv.gz, .tsv, .parquet, .feather, .arrow.",
        ),
    ],
    goal: Annotated[
        str, typer.Option("--goal", "-g", metavar="TEXT", help="What is wanted, in words.")
    ],
    label: Annotated[
        Column, typer.Option(metavar="COL", help="Column of the label. Default: label.")
    ] = None,
    score: Annotated[
        Column,
        typer.Option(
            metavar="COL", help="Column of the score; repeat for several. Default: score."
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Columns of scores, one per class, in one go."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive label, where they are not 0 and 1."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the weight of each row.")
    ] = None,
    group: Annotated[
        Column, typer.Option(metavar="COL", help="Column of a group; may be repeated.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="COL", help='Column of the query, for by="query".')
    ] = None,
    task: Annotated[
        str, typer.Option(metavar="TASK", help="binary, multiclass, multilabel or ranking.")
    ] = "binary",
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Classes of a multiclass task, in the order of the score columns. Default: "
            "the names of those columns.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Kind of rule: threshold, per-group or top-k; offsets or argmax for "
            "multiclass. Default: what suits the goal.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The --group that a per-group rule goes by."),
    ] = None,
    score_kind: Annotated[
        str, typer.Option(metavar="KIND", help="raw, probability or logit.")
    ] = "raw",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rule as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the trade-off: .svg, .png or .pdf."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, tune, write, print; see :func:`setpoint.tune` for what is chosen."""
    wanted = Goal.parse(goal)
    roles = Roles(
        labels=tuple(label or ["label"]),
        scores=(*(score or ()), *_split(scores)) or ("score",),
        task=task,
        score_kind=score_kind,
        positive=positive,
        classes=_split(classes) or None,
        weight=weight,
        groups=tuple(group or ()),
        query=query,
    )
    if plot is not None:
        tradeoff.refuse_ending(plot)
    refuse_existing([path for path in (out, plot) if path is not None], force, read=file)
    rows = read_rows(file, roles)
    chosen = choose(wanted, rows.y, rows.scores, task=rows.task, kind=kind, by=by, **rows.more)
    rule = rows.sign(chosen)
    drawn = None if plot is None else tradeoff.render(rule, plot)
    if out is not None:
        rule.save(out)
    if plot is not None and drawn is not None:
        write_bytes(plot, drawn)
    if as_json:
        print_json(_record(rule, rows, file, out, plot))
    else:
        _show(Screen.open(), rule, rows, file, out, plot)
    if not rule.feasible:
        raise typer.Exit(Code.INFEASIBLE)


def _split(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(","))


def _record(
    rule: DecisionRule, rows: Rows, file: Path, out: Path | None, plot: Path | None
) -> dict[str, Any]:
    written = {"rule": out, "plot": plot}
    return {
        "goal": str(rule.goal),
        "data": {"file": str(file), **rows.about},
        "feasible": rule.feasible,
        "operating_point": rule.operating_point(),
        "sentence": rule.sentence(),
        "rule": rule.to_json(),
        "written": {name: str(path) for name, path in written.items() if path is not None},
    }


def _show(
    screen: Screen,
    rule: DecisionRule,
    rows: Rows,
    file: Path,
    out: Path | None,
    plot: Path | None,
) -> None:
    search = "" if rule.search == "exact" else f" (search: {rule.search})"
    screen.line()
    screen.facts(
        [
            ("Goal", str(rule.goal)),
            ("Data", data_line(rows.about, str(file))),
            ("Operating point", rule.operating_point() + search),
        ]
    )
    show_rule(screen, rule)
    screen.line()
    tradeoff.show(screen, rule)
    screen.facts(_usage(rule, out, plot))


def _usage(rule: DecisionRule, out: Path | None, plot: Path | None) -> list[tuple[str, str]]:
    """How the rule is used from here."""
    group = {"per-group": f', group={{"{rule.by}": …}}', "top-k": ""}.get(rule.kind, "")
    group = ", query=…" if rule.by == "query" else group
    facts = [] if out is None else [("Written", str(out))]
    if plot is not None:
        facts.append(("Written" if out is None else "", str(plot)))
    if out is None:
        facts.append(("Keep it", "--out rule.json"))
    name = out or Path("rule.json")
    return [
        *facts,
        ("Use it", "import setpoint as sp"),
        ("", f"rule = sp.DecisionRule.load({json.dumps(name.as_posix(), ensure_ascii=False)})"),
        ("", f"decisions = rule.decide(scores{group})"),
    ]
