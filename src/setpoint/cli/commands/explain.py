"""``setpoint explain``: what was decided in a run, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from setpoint.cli.display.run_view import (
    Fact,
    RunUsage,
    certificate_facts,
    figure_facts,
    infeasible_facts,
    margin_words,
    note_facts,
    price_facts,
    record,
    referee_facts,
    verdict_text,
)
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.shared_options import Debug
from setpoint.cli.words import command, count, in_words, number
from setpoint.decisions.outcome import Outcome
from setpoint.fit.conclusion.stack import ALWAYS, FOR_REFEREE, MemberFate, MemberOutcome

HELP = "Say what was decided in a run and why: models, margin, proof, price, checks."
EPILOG = """
Examples

  setpoint explain run
  setpoint explain run --json

Exit codes

  0  done
  1  an unexpected error
  2  the folder is no run, or is not whole
"""
_SETTINGS = (
    "random_state",
    "effort",
    "folds",
    "certify_size",
    "margin",
    "proof_price",
    "confidence",
)


_FATES = {
    MemberFate.ALONE: "decides alone",
    MemberFate.STACKED: "in the stack",
    MemberFate.NO_WEIGHT: "no weight: what it says adds nothing to the others",
    MemberFate.LEFT_OUT: "not in the stack",
    MemberFate.SURPASSED: "not in the stack",
    MemberFate.COMPARED: "only to compare with",
    MemberFate.TOO_LATE: "not fitted: the time limit came first",
    MemberFate.NOT_FITTED: "not fitted: the run was stopped before",
}


def explain(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that fit wrote.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Open, print."""
    run = SavedRun.open(folder)
    if as_json:
        print_json(_record(run))
    else:
        _show(Screen.open(), run)


def members(run: SavedRun) -> list[dict[str, Any]]:
    """Every model of the plan: why it entered, what it weighs, what became of it."""
    why = dict(run.about["plan"]["members"])
    return [
        {
            "name": member.name,
            "why": why[member.name],
            "weight": member.weight,
            "outcome": str(member.fate),
            "fate": _fate(member),
        }
        for member in run.members
    ]


def _fate(member: MemberOutcome) -> str:
    """What became of a model, in words."""
    if member.reason and member.fate is MemberFate.LEFT_OUT:
        return f"left out, {member.reason}"
    if member.reason and member.fate is MemberFate.SURPASSED:
        return member.reason
    return _FATES[member.fate]


def _record(run: SavedRun) -> dict[str, Any]:
    facts = run.facts
    return {
        **record(run),
        "run": str(run.folder),
        "data": {
            name: facts[name]
            for name in ("source", "target", "positive", "rows", "columns", "fingerprint", "parts")
        },
        "plan": list(facts["plan"]),
        "members": members(run),
        "all_checks": [dict(check) for check in run.report["checks"]],
        "settings": {name: run.about["settings"][name] for name in _SETTINGS},
        "versions": run.about["versions"],
    }


def _show(screen: Screen, run: SavedRun) -> None:
    verdict = run.report["verdict"]
    screen.line()
    screen.facts(
        [
            ("Verdict", Text.assemble(verdict_text(run), f". {verdict['headline']}")),
            ("", verdict["detail"]),
        ]
    )
    _section(screen, "What was asked", [("Goal", run.goal), *_lowered(run)])
    _section(screen, "On which rows", _data(run))
    _section(screen, "Which models", _models(run))
    _section(screen, "Where it decides", [*_point(run), *figure_facts(run)])
    if run.status is Outcome.NOT_FEASIBLE and run.diagnosis is not None:
        _section(screen, "Why it cannot be met", infeasible_facts(run))
    _section(screen, "What is proven", [*certificate_facts(run), *_assumption(run)])
    _section(screen, "What it bought", [*referee_facts(run), *price_facts(run)])
    _section(screen, "What to know", [*note_facts(run), *_checks(run)])
    _section(screen, "How it was made", _made(run))


def _section(screen: Screen, title: str, facts: list[Fact]) -> None:
    if not facts:
        return
    screen.line()
    screen.line(title, "bold underline" if screen.console.is_terminal else "bold")
    screen.facts(facts)


def _lowered(run: SavedRun) -> list[Fact]:
    lowered = str(run.report["lowered"])
    return [] if lowered == run.goal else [("that is", lowered)]


def _data(run: SavedRun) -> list[Fact]:
    facts = run.facts
    kinds = ", ".join(f"{n} {kind}" for kind, n in facts["columns"].items() if n)
    positive = facts["positive"]
    named = f"{facts['target']} = {positive} is positive" if positive else facts["target"]
    return [
        ("Data", f"{facts['source']}: {count(facts['rows'], 'row')}; columns: {kinds or 'none'}"),
        ("Target", named),
        ("Parted", str(run.about["plan"]["how"])),
        ("Fingerprint", str(facts["fingerprint"])[:16]),
    ]


def _models(run: SavedRun) -> list[Fact]:
    facts: list[Fact] = []
    for member in members(run):
        weight = "" if not member["weight"] else f" (weight {number(member['weight'])})"
        usual = member["why"] in (ALWAYS, FOR_REFEREE)
        why = "" if usual else f"; {member['why']}"
        facts.append((member["name"], f"{member['fate']}{weight}{why}"))
    folds = run.about["plan"]["folds"]
    how = f"{folds} folds, each row scored by models that never saw it" if folds > 1 else ""
    return [*facts, ("Folds", how)] if how else facts


def _point(run: SavedRun) -> list[Fact]:
    words = margin_words(run)
    facts: list[Fact] = [("Operating point", run.rule.operating_point())]
    return [*facts, ("Chosen", words)] if words else facts


def _assumption(run: SavedRun) -> list[Fact]:
    proof = run.certificate
    if proof is None or not run.rule.goal.constraints:
        return []
    return [("Assumption", proof.assumption)]


def _checks(run: SavedRun) -> list[Fact]:
    passed = [c["title"] for c in run.report["checks"] if c["status"] == "passed"]
    lines = [f"{c['title']}: {c['sentence']} ({c['code']})" for c in run.checks]
    facts: list[Fact] = [("" if i else "Look at", line) for i, line in enumerate(lines)]
    return [*facts, ("Checks passed", ", ".join(passed))] if passed else facts


def _made(run: SavedRun) -> list[Fact]:
    settings = {name: run.about["settings"][name] for name in _SETTINGS}
    shown = ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)
    versions = ", ".join(f"{name} {v}" for name, v in run.about["versions"].items())
    finished = "" if run.about["finished"] else "; stopped before its plan was done"
    return [
        ("Settings", f"model {run.about['model']}, {shown}"),
        ("Time", f"{in_words(float(run.about['seconds']))}{finished}"),
        ("Versions", versions),
        ("Report", str(run.folder / "report.html")),
        ("Use it", RunUsage.of(run.folder, command()).predict),
    ]
