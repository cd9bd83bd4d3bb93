"""``setpoint plan``: how many labelled rows a proof would take, before they are labelled."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from setpoint._core.errors import KindError
from setpoint._core.files import write_bytes
from setpoint.cli.display.rule_view import data_line
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.files.output_paths import as_bytes, refuse_ending, refuse_existing
from setpoint.cli.files.rule_files import load_rule
from setpoint.cli.inputs.scored_table import (
    Roles,
    ScoredTable,
    by_column,
    labels_for,
    read_for,
    read_rows,
    roles_of,
    sought_for,
)
from setpoint.cli.inputs.shared_options import (
    ENDINGS,
    Confidence,
    Debug,
    Group,
    Label,
    Positive,
    Score,
    Scores,
    labels_of,
    scores_of,
    split,
)
from setpoint.cli.words import count, number
from setpoint.decisions import DecisionRule, Need, Plan, plot_plan
from setpoint.decisions import plan as lay_out
from setpoint.decisions.plan import thinned
from setpoint.goals import Goal

HELP = "Say how many fresh labelled rows would prove a goal, going by rows already labelled."
EPILOG = """
Examples

  setpoint plan tune.csv --label fraud --score p \\
    --goal "maximize recall subject to precision >= 0.9"

  setpoint plan tune.csv --label fraud --score p --rule rule.json \\
    --rows 2000 --plot plan.svg

A rule that was tuned on these rows sits on its bounds, where rows are needed
in masses: the table of options says what less boldness costs, and saves.

Exit codes

  0  there is a way; with --rows, one for so many rows
  1  an unexpected error
  2  a mistake in the goal, the options or the file
  3  no number of rows would prove it; with --rows, not so many
"""
_CAUTION = (
    "these rows stand for the truth here, and flatter a rule that was chosen on them; the fresh "
    "rows alone decide what is proven"
)


def plan(
    file: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help=f"Table of labels and scores: {ENDINGS}."),
    ],
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal",
            "-g",
            metavar="TEXT",
            help="What is wanted, in words. Default: as --rule has it.",
        ),
    ] = None,
    rule_file: Annotated[
        Path | None,
        typer.Option(
            "--rule", metavar="RULE", help="The rule to prove. Default: the one tune would choose."
        ),
    ] = None,
    confidence: Confidence = 0.95,
    power: Annotated[
        float,
        typer.Option(metavar="P", help="The probability that so many rows will prove it."),
    ] = 0.8,
    fresh: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", help="What can be had with so many fresh rows."),
    ] = None,
    label: Label = None,
    score: Score = None,
    scores: Scores = None,
    positive: Positive = None,
    group: Group = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="binary, multiclass or multilabel. Default: binary."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Classes of a multiclass task, as for tune."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Kind of rule, as for tune.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the rule goes by, as for tune.")
    ] = None,
    score_kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="raw, probability or logit. Default: raw."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the bound that so many rows would prove: .svg, .png or .pdf.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, plan, draw, print; see :func:`setpoint.plan`."""
    if fresh is not None and fresh < 1:
        raise KindError(f"--rows is a number of fresh rows, 1 or more; got {fresh}.")
    refuse_ending(plot)
    refuse_existing([plot], force, rows=[file], read=[rule_file])
    if rule_file is None:
        if goal is None:
            raise KindError(
                'say what is wanted: --goal "maximize … subject to …", or --rule FILE, whose goal '
                "is then taken."
            )
        rule, wanted = None, Goal.parse(goal)
        by = by_column(by, kind, group or ())
        roles = Roles(
            labels=labels_of(label, task or "binary"),
            scores=scores_of(score, scores),
            task=task or "binary",
            score_kind=score_kind or "raw",
            positive=positive,
            classes=split(classes) or None,
            groups=tuple(group or ()),
            sought=sought_for(wanted, kind, by),
        )
        rows = read_rows(file, roles)
        y, of = rows.y, {"task": rows.task, "kind": kind, "by": by}
    else:
        rule = load_rule(rule_file)
        _refuse_declared(task=task, classes=classes, kind=kind, by=by, score_kind=score_kind)
        wanted = rule.goal if goal is None else Goal.parse(goal)
        roles = roles_of(rule.point, wanted, label, score, scores, positive, group=group)
        rows = read_for(rule.task, file, roles)
        y, of = labels_for(rule.task, rows), {"rule": rule}
    made = lay_out(wanted, y, rows.scores, confidence=confidence, power=power, **of, **rows.more)
    if plot is not None:
        write_bytes(plot, as_bytes(plot_plan(made, _costliest(made)), plot))
    if as_json:
        print_json(_record(made, rows, file, rule_file, fresh, plot))
    else:
        _show(Screen.open(), made, rule, rows, file, fresh, plot)
    if not _possible(made, fresh):
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _refuse_declared(**given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise KindError(f"{option} is as the rule has it; leave it out beside --rule.")


def _costliest(made: Plan) -> int:
    """The constraint that takes the most rows."""
    rows = [float("inf") if need.rows is None else need.rows for need in made.needs]
    return rows.index(max(rows))


def _possible(made: Plan, fresh: int | None) -> bool:
    """Whether something can be proven, with the rows there are."""
    soonest = [n for n in (made.needed, *(o.rows for o in made.options)) if n is not None]
    return bool(soonest) and (fresh is None or min(soonest) <= fresh)


def _record(
    made: Plan,
    rows: ScoredTable,
    file: Path,
    rule_file: Path | None,
    fresh: int | None,
    plot: Path | None,
) -> dict[str, Any]:
    best = None if fresh is None else made.best_with(fresh)
    return {
        **made.to_json(),
        "rule": None if rule_file is None else str(rule_file),
        "data": {"file": str(file), **rows.about},
        "rows": fresh,
        "best": None if best is None else asdict(best),
        "sentence": str(made),
        "written": {} if plot is None else {"plot": str(plot)},
    }


def _show(
    screen: Screen,
    made: Plan,
    rule: DecisionRule | None,
    rows: ScoredTable,
    file: Path,
    fresh: int | None,
    plot: Path | None,
) -> None:
    chosen = " (as tune chooses it on these rows)" if rule is None else ""
    screen.line()
    screen.facts(
        [
            ("Goal", str(made.goal)),
            ("Data", data_line(rows.about, str(file))),
            ("Operating point", made.point + chosen),
        ]
    )
    told = [(n.constraint, number(n.value), *_told(n)) for n in made.needs]
    screen.table(("", "here", "fresh rows", "of them"), told, numeric=(1, 2))
    asked = f"at {100 * made.confidence:g}% confidence with power {made.power:g}"
    screen.facts([("To prove it", f"{asked}: {_needed(made)}")])
    if made.options:
        objective = str(made.goal.objective)
        options = [(f"{o.rows:,}", number(o.value), f"{o.point}") for o in thinned(made.options)]
        screen.table(("fresh rows", objective, "would prove the rule"), options, numeric=(0, 1))
    else:
        screen.line()
    if fresh is not None:
        screen.facts(_with_rows(made, fresh))
    screen.facts(
        [
            ("Caution", _CAUTION),
            *([] if plot is None else [("Written", str(plot))]),
        ]
    )


def _told(need: Need) -> tuple[str | Text, str]:
    if need.rows is None:
        return Text("none", "bold red"), need.why
    return f"{need.rows:,}", "" if need.of_them is None else f"about {need.of_them:,} {need.who}"


def _needed(made: Plan) -> str:
    if made.needed is not None:
        return f"about {count(made.needed, 'fresh labelled row')}"
    return "no number of rows would do; a rule with a margin could be proven"


def _with_rows(made: Plan, fresh: int) -> list[tuple[str, str]]:
    """What can be had with so many rows: another rule, or another bound."""
    best = made.best_with(fresh)
    if best is None:
        found = "none of the rules could be proven"
    else:
        found = f"{made.goal.objective} {number(best.value)}, where {best.point}"
    facts = [(f"With {fresh:,}", found)]
    for need, constraint in zip(made.needs, made.goal.constraints, strict=True):
        within = [(n, b) for n, b in need.bounds if n <= fresh and b is not None]
        if within and constraint.op != "==":
            rows, bound = within[-1]
            other = f"{constraint.left} {constraint.op} {number(bound)}"
            facts.append(("", f"or, with the rule above, {other} ({rows:,} rows)"))
    return facts
