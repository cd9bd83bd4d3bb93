"""``setpoint tune``: the operating point for a file of scores, from whatever model they come."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.errors import KindError
from setpoint._core.files import write_bytes
from setpoint.cli import tradeoff
from setpoint.cli.debugging import Debug
from setpoint.cli.options import (
    ENDINGS,
    Group,
    Label,
    Positive,
    Query,
    Score,
    Scores,
    Weight,
    labels_of,
    scores_of,
    split,
)
from setpoint.cli.output import Code, Force, Json, Screen, command, print_json
from setpoint.cli.results import CAUTION, data_line, decided_facts, show_rule
from setpoint.cli.rows import Roles, Rows, columns_of, read_rows
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


def tune(
    file: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help=f"Table of labels and scores: {ENDINGS}."),
    ],
    goal: Annotated[
        str, typer.Option("--goal", "-g", metavar="TEXT", help="What is wanted, in words.")
    ],
    label: Label = None,
    score: Score = None,
    scores: Scores = None,
    positive: Positive = None,
    weight: Weight = None,
    group: Group = None,
    query: Query = None,
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
        typer.Option(
            metavar="FILE",
            help="Draw the trade-off: .svg, .png or .pdf. Only rules with one threshold for all "
            "rows have one.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, tune, write, print; see :func:`setpoint.tune` for what is chosen."""
    wanted = Goal.parse(goal)
    by = _by(by, kind, group or ())
    roles = Roles(
        labels=labels_of(label, task),
        scores=scores_of(score, scores),
        task=task,
        score_kind=score_kind,
        positive=positive,
        classes=split(classes) or None,
        weight=weight,
        groups=tuple(group or ()),
        query=query,
        sought=tuple(dict.fromkeys([*columns_of(wanted), *([] if by is None else [by])])),
    )
    if plot is not None:
        tradeoff.refuse_ending(plot)
    refuse_existing([path for path in (out, plot) if path is not None], force, read=file)
    rows = read_rows(file, roles)
    chosen = choose(wanted, rows.y, rows.scores, task=rows.task, kind=kind, by=by, **rows.more)
    rule = rows.sign(chosen)
    if plot is not None and rule.frontier is None:
        tradeoff.tell_none(rule, plot)
        plot = None
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


def _by(by: str | None, kind: str | None, groups: Sequence[str]) -> str | None:
    """The column a per-group rule goes by: the only --group, where there are no others."""
    if kind != "per-group":
        return by
    if by is None:
        return groups[0] if len(groups) == 1 else None
    if groups and by not in groups:
        raise KindError(f"--by {by} is not among --group {', '.join(groups)}.")
    return by


def _record(
    rule: DecisionRule, rows: Rows, file: Path, out: Path | None, plot: Path | None
) -> dict[str, Any]:
    written = {"rule": out, "plot": plot}
    return {
        "goal": str(rule.goal),
        "data": {"file": str(file), **rows.about},
        "feasible": rule.feasible,
        "operating_point": rule.operating_point(),
        "decided": rows.decided(rule),
        "caution": CAUTION,
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
    screen.facts(decided_facts(rows.decided(rule), chosen_here=True))
    screen.line()
    tradeoff.show(screen, rule)
    screen.facts(_usage(rule, rows, out, plot))


def _usage(
    rule: DecisionRule, rows: Rows, out: Path | None, plot: Path | None
) -> list[tuple[str, str]]:
    """How the rule is used from here."""
    group = {"per-group": f', group={{"{rule.by}": …}}', "top-k": ""}.get(rule.kind, "")
    group = ", query=…" if rule.by == "query" else group
    facts = [] if out is None else [("Written", str(out))]
    if plot is not None:
        facts.append(("Written" if out is None else "", str(plot)))
    if out is None:
        facts.append(("Keep it", "--out rule.json"))
    name = out or Path("rule.json")
    checked = " ".join(_columns(rows, "label", "score", "weight", "query"))
    given = " ".join(_columns(rows, "score", "query"))
    return [
        *facts,
        ("Check it", f"{command()} evaluate {shlex.quote(str(name))} held.csv {checked}"),
        (
            "Use it",
            f"{command()} decide {shlex.quote(str(name))} new.csv {given} --out decided.csv",
        ),
        ("in Python", "import setpoint as sp"),
        ("", f"rule = sp.DecisionRule.load({json.dumps(name.as_posix(), ensure_ascii=False)})"),
        ("", f"decisions = rule.decide(scores{group})"),
    ]


def _columns(rows: Rows, *wanted: str) -> list[str]:
    """Columns as options of the next command; the rule knows its groups and its positive label."""
    about = rows.about
    labels = [about["label"]] if "label" in about else [x["label"] for x in about.get("labels", ())]
    several = "scores" if len(rows.score_names) > 1 else "score"
    options = {
        "label": ("label", ",".join(labels)),
        "score": (several, ",".join(rows.score_names)),
        "weight": ("weight", about.get("weight")),
        "query": ("query", about.get("query")),
    }
    pairs = [options[name] for name in wanted]
    return [f"--{option} {shlex.quote(column)}" for option, column in pairs if column]
