"""``setpoint certify``: whether a rule keeps its promise, proven on rows nothing has seen."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.errors import FileError, KindError
from setpoint._core.files import write_bytes
from setpoint.cli.display.certificate_view import (
    refuse_unprovable,
    refuse_weights,
    show_certificate,
)
from setpoint.cli.display.rule_view import data_line, decided_facts
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.files.output_paths import refuse_existing, refuse_unwritable
from setpoint.cli.files.rule_files import load_rule, load_seen
from setpoint.cli.inputs.scored_table import ScoredTable, labels_for, read_for, roles_of
from setpoint.cli.inputs.shared_options import (
    ENDINGS,
    Confidence,
    Debug,
    Group,
    Label,
    Positive,
    Query,
    RuleFile,
    Score,
    Scores,
    Seen,
    Weight,
    WeightBound,
    split,
)
from setpoint.cli.words import command
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions import certify as test_rule
from setpoint.goals import Goal
from setpoint.rules.certificate import REFUTED

HELP = "Prove, or refute, that a rule keeps its constraints: on rows that nothing has seen."
EPILOG = """
Examples

  setpoint certify rule.json fresh.csv --label fraud --score p

  setpoint certify rule.json fresh.csv --label fraud --score p \\
    --goal "maximize recall subject to precision >= 0.85" --confidence 0.9

  setpoint certify rule.json fresh.parquet --weight w --weight-bound 20 \\
    --out certificate.json

  setpoint certify rule.json fresh.csv --prevalence 0.01,0.05 \\
    --seen other.certificate.json

The rows are touched once. RULE is written again and remembers them: a second
certify on them, or on rows that hold some of them, is refused. The
certificate goes to --out, without it beside the rule.

Exit codes

  0  PROVEN: every constraint
  1  an unexpected error
  2  a mistake in the goal, the options or a file
  3  NOT PROVEN, or REFUTED
"""


def certify(
    rule_file: RuleFile,
    file: Annotated[
        Path,
        typer.Argument(metavar="ROWS", help=f"Rows that nothing has seen, with labels: {ENDINGS}."),
    ],
    goal: Annotated[
        str | None,
        typer.Option("--goal", "-g", metavar="TEXT", help="What is promised. Default: as tuned."),
    ] = None,
    label: Label = None,
    score: Score = None,
    scores: Scores = None,
    positive: Positive = None,
    confidence: Confidence = 0.95,
    weight: Weight = None,
    weight_bound: WeightBound = None,
    group: Group = None,
    query: Query = None,
    prevalence: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Certify for every share of positives in this range, or for one share, instead "
            "of that of these rows.",
        ),
    ] = None,
    seen: Seen = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the certificate goes. Default: RULE.certificate.json."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load, read, test, remember, write, print; see :func:`setpoint.certify`."""
    rule = load_rule(rule_file)
    wanted = rule.goal if goal is None else Goal.parse(goal)
    refuse_unprovable(wanted)
    refuse_weights(weight, weight_bound)
    shares = _prevalence(prevalence)
    out = rule_file.with_suffix(".certificate.json") if out is None else out
    refuse_existing([out], force, rows=[file], read=[rule_file, *(seen or ())])
    refuse_unwritable(rule_file, "which has to remember the rows")
    used = [load_seen(path) for path in seen or ()]
    roles = roles_of(rule.point, wanted, label, score, scores, positive, weight, group, query)
    rows = read_for(rule.task, file, roles)
    proof = test_rule(
        wanted,
        rule,
        labels_for(rule.task, rows),
        rows.scores,
        confidence,
        weight_bound=weight_bound,
        prevalence=shares,
        seen=used,
        **rows.more,
    )
    proof = rows.sign_proof(proof)
    _write(rule, rule_file, proof, out)
    if as_json:
        print_json(_record(rule, proof, rows, rule_file, file, out))
    else:
        _show(Screen.open(), rule, proof, rows, rule_file, file, out)
    if not proof.proven:
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _prevalence(text: str | None) -> list[float] | float | None:
    if text is None:
        return None
    try:
        shares = [float(part) for part in split(text)]
    except ValueError as error:
        raise KindError(
            f'--prevalence is a share of positives, or two, such as 0.01,0.05; got "{text}".'
        ) from error
    return shares[0] if len(shares) == 1 else shares


def _write(rule: DecisionRule, rule_file: Path, proof: Certificate, out: Path) -> None:
    """Both files or none: rows that are remembered without a certificate would be lost."""
    place = rule_file.resolve()  # a link stays a link
    before = place.read_bytes()
    rule.save(place)
    try:
        proof.save(out)
    except FileError:
        write_bytes(place, before)
        raise


def _record(
    rule: DecisionRule,
    proof: Certificate,
    rows: ScoredTable,
    rule_file: Path,
    file: Path,
    out: Path,
) -> dict[str, Any]:
    return {
        "goal": str(proof.goal),
        "rule": str(rule_file),
        "data": {"file": str(file), **rows.about},
        "operating_point": rule.operating_point(),
        "verdict": proof.verdict,
        "needed": proof.needed,
        "decided": rows.decided(rule),
        "sentence": str(proof),
        "certificate": proof.to_json(),
        "written": {"certificate": str(out), "rule": str(rule_file)},
    }


def _show(
    screen: Screen,
    rule: DecisionRule,
    proof: Certificate,
    rows: ScoredTable,
    rule_file: Path,
    file: Path,
    out: Path,
) -> None:
    screen.line()
    screen.facts(
        [
            ("Goal", str(proof.goal)),
            ("Data", data_line(rows.about, str(file))),
            ("Operating point", rule.operating_point()),
        ]
    )
    show_certificate(screen, proof, decided_facts(rows.decided(rule), chosen_here=False))
    screen.line()
    screen.facts(
        [
            ("Written", f"{out} (fingerprint of the rows {proof.fingerprint})"),
            ("", f"{rule_file} now remembers these rows; they prove nothing a second time"),
            *_next_steps(proof, rows, rule_file, out),
        ]
    )


def _next_steps(
    proof: Certificate, rows: ScoredTable, rule_file: Path, out: Path
) -> list[tuple[str, str]]:
    if proof.proven:
        kept, columns = shlex.quote(str(out)), rows.options("label", "score", "weight")
        return [
            ("Watch it", f"{command()} monitor {kept} labelled.csv {columns} --state monitor.json")
        ]
    columns = rows.options("label", "score")
    if proof.verdict == REFUTED:
        goal = f"{columns} --goal {shlex.quote(str(proof.goal))}"
        return [
            ("Choose again", f"{command()} tune fresh.csv {goal} --prove {proof.confidence:g}"),
            ("", "--reference tune.csv: the best rule that fresh rows prove"),
        ]
    if proof.needed is None:
        return []
    rule, goal = shlex.quote(str(rule_file)), shlex.quote(str(proof.goal))
    return [("Plan for it", f"{command()} plan tune.csv {columns} --rule {rule} --goal {goal}")]
