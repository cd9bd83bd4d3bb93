"""``setpoint tune``: the operating point for a file of scores, from whatever model they come."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.errors import KindError
from setpoint._core.files import write_bytes
from setpoint.cli.display import tradeoff_view as tradeoff
from setpoint.cli.display.certificate_view import refuse_weights, show_certificate
from setpoint.cli.display.rule_view import CAUTION, data_line, decided_facts, show_rule
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.files.output_paths import refuse_ending, refuse_existing
from setpoint.cli.files.rule_files import load_seen
from setpoint.cli.inputs.scored_table import (
    Roles,
    ScoredTable,
    by_column,
    in_classes_of,
    read_rows,
    sought_for,
)
from setpoint.cli.inputs.shared_options import (
    ENDINGS,
    Debug,
    Group,
    Label,
    Positive,
    Query,
    Score,
    Scores,
    Seen,
    Weight,
    WeightBound,
    labels_of,
    scores_of,
    split,
)
from setpoint.cli.words import command
from setpoint.decisions import DecisionRule
from setpoint.decisions import tune as choose
from setpoint.goals import Goal

# What is said of a rule that was chosen: as one JSON object, and on the screen.


@dataclass(frozen=True, eq=False)
class Told:
    """A rule, the rows it comes from, and the files it went to.

    Parameters
    ----------
    rule : DecisionRule
    rows : ScoredTable
    file : Path
        Where they come from.
    known, reference : ScoredTable and Path, or None
        Of a rule chosen with proof: the reference rows and their file.
    out, certificate, plot : Path or None
        What was written.
    """

    rule: DecisionRule
    rows: ScoredTable
    file: Path
    known: ScoredTable | None
    reference: Path | None
    out: Path | None
    certificate: Path | None
    plot: Path | None

    def record(self) -> dict[str, Any]:
        """Plain data."""
        rule, proof = self.rule, self.rule.certificate
        written = {"rule": self.out, "certificate": self.certificate, "plot": self.plot}
        proven: dict[str, Any] = {}
        if proof is not None and self.known is not None:
            proven = {
                "verdict": proof.verdict,
                "needed": proof.needed,
                "reference": {"file": str(self.reference), **self.known.about},
            }
        return {
            "goal": str(rule.goal),
            "data": {"file": str(self.file), **self.rows.about},
            "feasible": rule.feasible,
            **proven,
            "operating_point": rule.operating_point(),
            "decided": self.rows.decided(rule),
            **({"caution": CAUTION} if proof is None else {}),
            "sentence": rule.sentence() if proof is None else str(proof),
            "rule": rule.to_json(),
            "written": {name: str(path) for name, path in written.items() if path is not None},
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        rule, proof = self.rule, self.rule.certificate
        search = "" if rule.search == "exact" else f" (search: {rule.search})"
        ordered = []
        if self.known is not None:
            ordered = [("Reference", data_line(self.known.about, str(self.reference)))]
        screen.line()
        screen.facts(
            [
                ("Goal", str(rule.goal)),
                ("Data", data_line(self.rows.about, str(self.file))),
                *ordered,
                ("Operating point", rule.operating_point() + search),
            ]
        )
        decided = decided_facts(self.rows.decided(rule), chosen_here=proof is None)
        if proof is None:
            show_rule(screen, rule)
            screen.facts(decided)
        else:
            show_certificate(screen, proof, decided)
        screen.line()
        tradeoff.show(screen, rule)
        screen.facts(self._usage())

    def _usage(self) -> list[tuple[str, str]]:
        """How the rule is used from here."""
        rule, rows = self.rule, self.rows
        group = f', group={{"{rule.by}": …}}' if rule.point.needs_group else ""
        group = ", query=…" if rule.point.needs_query else group
        written = [str(p) for p in (self.out, self.certificate, self.plot) if p is not None]
        facts = [("" if i else "Written", path) for i, path in enumerate(written)]
        if self.out is None:
            facts.append(("Keep it", "--out rule.json"))
        name = self.out or Path("rule.json")
        quoted, given = shlex.quote(str(name)), rows.options("score", "query")
        return [
            *facts,
            *self._checks(quoted),
            ("Use it", f"{command()} decide {quoted} new.csv {given} --out decided.csv"),
            ("in Python", "import setpoint as sp"),
            ("", f"rule = sp.DecisionRule.load({json.dumps(name.as_posix(), ensure_ascii=False)})"),
            ("", f"decisions = rule.decide(scores{group})"),
        ]

    def _checks(self, name: str) -> list[tuple[str, str]]:
        """How the rule is judged on other rows."""
        rule, rows = self.rule, self.rows
        checked = rows.options("label", "score", "weight", "query")
        if rule.proven:
            watched = rows.options("label", "score", "weight")
            state = "--state monitor.json"
            return [("Watch it", f"{command()} monitor {name} new.csv {watched} {state}")]
        if rule.certificate is not None:
            planned = f"{shlex.quote(str(self.reference))} {rows.options('label', 'score')}"
            goal = shlex.quote(str(rule.goal))
            return [("Plan for it", f"{command()} plan {planned} --goal {goal}")]
        facts = [("Check it", f"{command()} evaluate {name} held.csv {checked}")]
        if rule.feasible and rule.goal.constraints and not rule.point.no_proof:
            bound = " --weight-bound X" if "weight" in rows.about else ""
            facts.append(("Prove it", f"{command()} certify {name} fresh.csv {checked}{bound}"))
            facts.append(("", "on rows that nothing has seen: they are touched once"))
        return facts


HELP = (
    "Choose the operating point that best meets a goal, on the scores of any model; with --prove "
    "the best one that is proven to."
)
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

  setpoint tune scores.csv \\
    --goal "maximize coverage subject to selective_risk <= 0.02"

  setpoint tune fresh.csv --prove 0.95 --reference tune.csv \\
    --goal "maximize recall subject to precision >= 0.9" --out rule.json

With --prove the rows must be rows that nothing has seen. Which rules are
tried, and in which order, comes from the reference rows alone.

Exit codes

  0  the goal is met; with --prove, it is proven
  1  an unexpected error
  2  a mistake in the goal, the options or the file
  3  the goal cannot be met, or is not proven; the rule that comes nearest
     is given
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
            help="Kind of rule: threshold, per-group, top-k or abstain; offsets, argmax or "
            "abstain for multiclass. Default: what suits the goal.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The --group that a per-group rule goes by; or the confidence that an abstaining "
            "multiclass rule goes by: sr_max, sr_ent, sr_doctor, rl_max or rl_conf_m.",
        ),
    ] = None,
    score_kind: Annotated[
        str, typer.Option(metavar="KIND", help="raw, probability or logit.")
    ] = "raw",
    prove: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Choose and prove on these rows, at this confidence, for example 0.95.",
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For --prove: other rows with the same columns, such as the train or tune rows.",
        ),
    ] = None,
    weight_bound: WeightBound = None,
    seen: Seen = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rule as JSON.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For --prove: write the certificate alone as well; the rule contains it.",
        ),
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
    by = by_column(by, kind, group or ())
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
        sought=sought_for(wanted, kind, by),
    )
    _refuse_without_proof(prove, reference, weight, weight_bound, seen, certificate)
    refuse_ending(plot)
    refuse_existing([out, certificate, plot], force, rows=[file, reference], read=seen or ())
    used = [load_seen(path) for path in seen or ()]
    rows = read_rows(file, roles)
    known = None if reference is None else _reference(reference, rows, roles)
    rule = rows.sign(
        choose(
            wanted,
            rows.y,
            rows.scores,
            task=rows.task,
            kind=kind,
            by=by,
            prove=prove,
            reference=None if known is None else _parts(known),
            weight_bound=weight_bound,
            seen=used,
            **rows.more,
        )
    )
    if plot is not None and rule.frontier is None:
        tradeoff.tell_none(rule, plot)
        plot = None
    drawn = None if plot is None else tradeoff.render(rule, plot)
    if out is not None:
        rule.save(out)
    if certificate is not None and rule.certificate is not None:
        rule.certificate.save(certificate)
    if plot is not None and drawn is not None:
        write_bytes(plot, drawn)
    told = Told(rule, rows, file, known, reference, out, certificate, plot)
    if as_json:
        print_json(told.record())
    else:
        told.show(Screen.open())
    if not (rule.feasible if prove is None else rule.proven):
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _refuse_without_proof(
    prove: float | None,
    reference: Path | None,
    weight: str | None,
    weight_bound: float | None,
    seen: Sequence[Path] | None,
    certificate: Path | None,
) -> None:
    """Raise where an option lacks the one it goes with."""
    if prove is not None:
        if reference is None:
            raise KindError(
                "--prove needs --reference FILE: other rows that the order of the tests comes "
                "from, such as the train or the tune rows."
            )
        refuse_weights(weight, weight_bound)
        return
    given = {
        "--reference": reference,
        "--weight-bound": weight_bound,
        "--seen": seen,
        "--certificate": certificate,
    }
    for option, value in given.items():
        if value:
            raise KindError(
                f"{option} belongs to --prove, which chooses and proves on rows that nothing has "
                "seen; say --prove 0.95 --reference FILE as well."
            )


def _reference(path: Path, rows: ScoredTable, roles: Roles) -> ScoredTable:
    """The reference rows, with the columns of the others; they have neither weight nor query."""
    read = read_rows(path, replace(roles, weight=None, query=None))
    if rows.task.kind == "multiclass":
        return replace(read, y=in_classes_of(rows.task, read.y))
    return read


def _parts(rows: ScoredTable) -> tuple[Any, ...]:
    """Reference rows as the library takes them."""
    return rows.y, rows.scores, *([rows.more["group"]] if "group" in rows.more else [])
