"""``setpoint evaluate``: what a rule does on other rows than those it was chosen on."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint.cli.display.certificate_view import told_short
from setpoint.cli.display.rule_view import data_line, decided_facts, show_kept
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.files.rule_files import load_rule
from setpoint.cli.inputs.scored_table import ScoredTable, labels_for, read_for, roles_of
from setpoint.cli.inputs.shared_options import (
    ENDINGS,
    Debug,
    Group,
    Label,
    Positive,
    Query,
    RuleOrRun,
    Score,
    Scores,
    Weight,
)
from setpoint.cli.jobs.evaluate_job import EvaluatedRun
from setpoint.cli.jobs.run_scores import OutputColumns
from setpoint.cli.words import command
from setpoint.decisions import DecisionRule, Evaluation
from setpoint.decisions import evaluate as judge

HELP = "Apply a run or a rule to other rows with labels: does the promise still hold there?"
EPILOG = """
Examples

  setpoint evaluate run labelled.csv

  setpoint evaluate rule.json held.csv --label fraud --score p

  setpoint evaluate rule.json held.parquet --label sick --positive yes \\
    --score risk --weight cost --json

  setpoint evaluate rule.json held.csv --label animal --scores cat,dog,owl

A run scores the rows itself, and knows its label. Rows that were not part of
the fit are tested as certify would: PROVEN, NOT PROVEN or REFUTED.

Exit codes

  0  every constraint holds on these rows
  1  an unexpected error
  2  a mistake in the options or a file
  3  a constraint is broken on these rows
"""


def evaluate(
    rule_file: RuleOrRun,
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
    if rule_file.is_dir():
        columns = OutputColumns(label, score, scores, positive, weight, group, query)
        judged = EvaluatedRun.of(rule_file, file, columns)
        if as_json:
            print_json(judged.record())
        else:
            judged.show(Screen.open())
        if not judged.evaluation.holds:
            raise typer.Exit(ExitCode.GOAL_NOT_MET)
        return
    rule = load_rule(rule_file)
    roles = roles_of(rule.point, rule.goal, label, score, scores, positive, weight, group, query)
    rows = read_for(rule.task, file, roles)
    found = judge(rule, labels_for(rule.task, rows), rows.scores, **rows.more)
    if as_json:
        print_json(_record(rule, found, rows, rule_file, file))
    else:
        _show(Screen.open(), rule, found, rows, rule_file, file)
    if not found.holds:
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _record(
    rule: DecisionRule, found: Evaluation, rows: ScoredTable, rule_file: Path, file: Path
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
        "certificate": None if rule.certificate is None else rule.certificate.verdict,
        "sentence": str(found),
    }


def _show(
    screen: Screen,
    rule: DecisionRule,
    found: Evaluation,
    rows: ScoredTable,
    rule_file: Path,
    file: Path,
) -> None:
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
            *_promise(rule, rows, rule_file),
        ]
    )


def _promise(rule: DecisionRule, rows: ScoredTable, rule_file: Path) -> list[tuple[str, str]]:
    """What a figure is worth beside the certificate that the rule holds."""
    proof = rule.certificate
    if proof is None:
        return []
    watched = f"{command()} monitor {shlex.quote(str(rule_file))} labelled.csv"
    return [
        ("Certificate", f"{told_short(proof)}; what stands here is a figure, and no proof"),
        ("Watch it", f"{watched} {rows.options('label', 'score', 'weight')} --state monitor.json"),
    ]
