"""`make_report`: from a rule, scored rows and facts to the record that everything is drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.json_codec import plain
from setpoint.decisions import Certificate, DecisionRule, Plan
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.outcome import Outcome, same_point
from setpoint.expressions import Columns
from setpoint.goals import Goal, lower
from setpoint.reports.checks.check_record import Check
from setpoint.reports.report import FORMAT, Report
from setpoint.reports.report_inputs import CERTIFY, Diagnosed, RunFacts, ScoredRows
from setpoint.reports.sections.confusion import confusion
from setpoint.reports.sections.groups import affected
from setpoint.reports.sections.key_figures import KeyFigure, key_figures
from setpoint.reports.sections.score_distribution import distribution, reliability
from setpoint.reports.sections.summaries import (
    tell_certificate,
    tell_comparison,
    tell_diagnosis,
    tell_plan,
    tell_rule,
)
from setpoint.reports.sections.threshold_curves import curves
from setpoint.reports.sections.tradeoff import tradeoff
from setpoint.reports.verdict import verdict
from setpoint.reports.wording import Words, sentence


def make_report(
    *,
    goal: Goal | str,
    rule: DecisionRule,
    scored: Sequence[ScoredRows],
    facts: RunFacts,
    certificate: Certificate | None = None,
    comparison: Comparison | None = None,
    diagnosis: Diagnosed | None = None,
    plan: Plan | None = None,
    checks: Sequence[Check] = (),
) -> Report:
    """Measure everything a report shows; what is drawn later comes from this record alone.

    Parameters
    ----------
    goal : Goal or str
    rule : DecisionRule
    scored : sequence of Scored
        Rows in their roles. Figures are of those named "certify", or of the first.
    facts : Facts
    certificate : Certificate, optional
        Without it the rule's own, if it was chosen with proof.
    comparison : Comparison, optional
    diagnosis : optional
        Why the goal cannot be met, and what its limits cost: anything with ``lines()`` and
        ``to_json()``.
    plan : Plan, optional
        What more labels would buy.
    checks : sequence of Check
    """
    if not isinstance(rule, DecisionRule):
        raise KindError(f"a DecisionRule is needed, from sp.tune; got {rule!r}")
    asked = Goal.of(goal)
    lowered = lower(asked)
    certificate = rule.certificate if certificate is None else certificate
    rows = [(s.name, s.decided_by(rule)) for s in scored]
    main = next((pair for pair in rows if pair[0] == CERTIFY), rows[0] if rows else None)
    figures = [(name, _figures(lowered, name, c, rule, certificate)) for name, c in rows]
    shown = next((found for name, found in figures if main and name == main[0]), ())
    words = Words(facts.target, facts.positive)
    fresh = main is not None and main[0] == CERTIFY
    compared = None if comparison is None else tell_comparison(comparison)
    contenders = [] if compared is None else compared["contenders"]
    record = {
        "format": FORMAT,
        "goal": str(asked),
        "lowered": str(lowered),
        "task": _task(rule, words),
        "verdict": verdict(lowered, rule, certificate, shown, fresh, words, bool(facts.finished)),
        "facts": facts.to_json(),
        "rule": tell_rule(rule),
        "rows": [_rows(name, c) for name, c in rows],
        "figures": [
            {"on": name, "items": [_told(f, words) for f in found]} for name, found in figures
        ],
        "main": None if main is None else main[0],
        "fresh": fresh,
        "chosen_here": fresh and rule.certificate is not None,
        "tradeoff": tradeoff(lowered, rule, rows, shown, contenders) if rows else None,
        **_of_rows(main, rule),
        "comparison": compared,
        "certificate": None if certificate is None else tell_certificate(certificate, rule),
        "plan": None if plan is None else tell_plan(plan),
        "diagnosis": None if diagnosis is None else tell_diagnosis(diagnosis),
        "checks": [asdict(check) for check in sorted(checks, key=lambda c: c.code)],
    }
    record["left_out"] = _left_out(record)
    return Report(plain(record))


def _task(rule: DecisionRule, words: Words) -> dict[str, Any]:
    classes = [str(c) for c in rule.task.classes or ()]
    return {
        "kind": rule.task.kind,
        "score": rule.task.score,
        "classes": classes,
        "named": words.named,
        "are": words.are,
        "them": words.them,
    }


def _figures(
    goal: Goal, name: str, columns: Columns, rule: DecisionRule, certificate: Certificate | None
) -> tuple[KeyFigure, ...]:
    of_these = name == CERTIFY and certificate is not None and same_point(certificate, rule)
    return key_figures(goal, columns, certificate if of_these else None)


def _told(figure: KeyFigure, words: Words) -> dict[str, Any]:
    known = figure.value is not None and words.knows(figure.name)
    told = sentence(words.figure(figure.name, figure.value or 0.0)) if known else ""
    return {**asdict(figure), "words": told}


def _rows(name: str, columns: Columns) -> dict[str, Any]:
    binary = columns.task.kind == "binary"
    return {
        "name": name,
        "rows": columns.size,
        "positives": int(columns.actual.sum()) if binary else None,
        "weighted": columns.weight is not None,
    }


def _of_rows(main: tuple[str, Columns] | None, rule: DecisionRule) -> dict[str, Any]:
    """What is measured on the rows that the report is about."""
    if main is None:
        names = ("curves", "confusion", "distribution", "calibration")
        return {**dict.fromkeys(names), "groups": []}
    columns = main[1]
    binary = columns.task.kind == "binary"
    return {
        "curves": curves(columns) if binary else None,
        "confusion": confusion(columns),
        "distribution": distribution(columns, rule) if binary else None,
        "calibration": reliability(columns) if binary else None,
        "groups": affected(columns),
    }


def _left_out(record: dict[str, Any]) -> list[dict[str, str]]:
    """The sections that are not there, and why."""
    kind = record["task"]["kind"]
    nothing = "no scored rows were given"
    per_class = (
        nothing if not record["rows"] else f"a {kind} task has no single score to draw along"
    )
    if record["rows"] and kind == "binary":
        per_class = "the rows hold a single class"
    reasons = {
        "tradeoff": ("the trade-off", _no_tradeoff(record)),
        "curves": ("precision–recall and ROC curves", per_class),
        "confusion": ("the confusion table", nothing),
        "distribution": ("the spread of the scores", per_class),
        "calibration": ("calibration", per_class),
        "groups": ("figures by group", "no group column was given"),
        "comparison": ("the comparison with baselines", "none was made"),
        "certificate": ("the certificate", _no_certificate(record)),
        "plan": ("what more labels would buy", "no plan was made"),
        "checks": ("checks of the data", "none were made"),
    }
    return [{"what": what, "why": why} for key, (what, why) in reasons.items() if not record[key]]


def _no_tradeoff(record: dict[str, Any]) -> str:
    if not record["rows"]:
        return "no scored rows were given"
    if record["rule"]["kind"] != "threshold":
        return "the rule has more than one threshold to move, and there is nothing to compare with"
    return "the goal is on scores, and no threshold changes it"


def _no_certificate(record: dict[str, Any]) -> str:
    if record["verdict"]["status"] == Outcome.NO_CONSTRAINT:
        return "the goal sets no limit"
    return "no rows were kept apart to prove it on"
