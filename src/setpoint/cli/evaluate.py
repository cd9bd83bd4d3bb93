"""``setpoint evaluate``: what a rule does on other rows than those it was chosen on."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint.cli.debugging import Debug
from setpoint.cli.options import (
    ENDINGS,
    Group,
    Label,
    Positive,
    Query,
    RuleFile,
    Score,
    Scores,
    Weight,
    labels_of,
    scores_of,
)
from setpoint.cli.output import Code, Json, Screen, print_json
from setpoint.cli.results import data_line, decided_facts, show_kept
from setpoint.cli.rows import Roles, Rows, columns_of, read_rows
from setpoint.cli.ruled import in_classes_of, in_zeros_and_ones, positive_of, score_columns
from setpoint.decisions import DecisionRule, Evaluation
from setpoint.decisions import evaluate as judge

HELP = "Apply a rule to other rows with labels, and see whether its constraints hold there."
EPILOG = """
Examples

  setpoint evaluate rule.json held.csv --label fraud --score p

  setpoint evaluate rule.json held.parquet --label sick --positive yes \\
    --score risk --weight cost --json

  setpoint evaluate rule.json held.csv --label animal --scores cat,dog,owl

Exit codes

  0  every constraint holds on these rows
  1  an unexpected error
  2  a mistake in the options or a file
  3  a constraint is broken on these rows
"""


def evaluate(
    rule_file: RuleFile,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="ROWS", help=f"Rows the rule was not chosen on, with labels: {ENDINGS}."
        ),
    ],
    label: Label = None,
    score: Score = None,
    scores: Scores = None,
    positive: Positive = None,
    weight: Weight = None,
    group: Group = None,
    query: Query = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load, read, judge, print; see :func:`setpoint.evaluate`."""
    rule = DecisionRule.load(rule_file)
    task, known = rule.task, tuple(map(str, rule.task.classes or ()))
    sought = [*columns_of(rule.goal), *([rule.by] if rule.kind == "per-group" else [])]
    labels = labels_of(label, task.kind) or (known if task.kind == "multilabel" else ())
    roles = Roles(
        labels=labels,
        scores=score_columns(rule, scores_of(score, scores)),
        task=task.kind,
        score_kind=task.score,
        positive=positive_of(rule, positive),
        classes=known if task.kind == "multiclass" else None,
        weight=weight,
        groups=tuple(group or ()),
        query=query,
        sought=tuple(dict.fromkeys(name for name in sought if name is not None)),
    )
    rows = read_rows(file, roles)
    if task.kind == "multiclass":
        rows = replace(rows, y=in_classes_of(rule, rows.y))
    plain = in_zeros_and_ones(rule)
    found = judge(plain, rows.y, rows.scores, **rows.more)
    if as_json:
        print_json(_record(rule, found, rows, rule_file, file))
    else:
        _show(Screen.open(), rule, found, rows, file)
    if not found.holds:
        raise typer.Exit(Code.INFEASIBLE)


def _record(
    rule: DecisionRule, found: Evaluation, rows: Rows, rule_file: Path, file: Path
) -> dict[str, Any]:
    return {
        "goal": str(rule.goal),
        "rule": str(rule_file),
        "data": {"file": str(file), **rows.about},
        "operating_point": rule.operating_point(),
        "holds": found.holds,
        "value": found.value,
        "constraints": [asdict(kept) for kept in found.kept],
        "decided": rows.decided(rule),
        "sentence": str(found),
    }


def _show(screen: Screen, rule: DecisionRule, found: Evaluation, rows: Rows, file: Path) -> None:
    screen.line()
    screen.facts(
        [
            ("Goal", str(rule.goal)),
            ("Data", data_line(rows.about, str(file))),
            ("Operating point", rule.operating_point()),
        ]
    )
    show_kept(screen, found)
    screen.facts(
        [
            *decided_facts(rows.decided(rule), chosen_here=False),
            ("Here" if found.holds else "BROKEN", str(found)),
        ]
    )
