"""The verdict: one status, one sentence that needs no statistics, one that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setpoint._core.json_codec import Record
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.outcome import Outcome
from setpoint.goals import Goal
from setpoint.reports.sections.key_figures import OBJECTIVE, KeyFigure
from setpoint.reports.wording import Words, percent, sentence, signed
from setpoint.rules.certificate import NOT_PROVEN, REFUTED, Finding


@dataclass(frozen=True)
class VerdictSection(Record):
    """How the run ended, one sentence that needs no statistics, one that does."""

    status: Outcome
    headline: str
    detail: str


def verdict(
    goal: Goal,
    rule: DecisionRule,
    certificate: Certificate | None,
    figures: Sequence[KeyFigure],
    fresh: bool,
    words: Words,
    finished: bool,
) -> VerdictSection:
    """Status, headline and detail.

    Parameters
    ----------
    goal : Goal
        Lowered.
    rule : DecisionRule
    certificate : Certificate or None
        Of this rule or, where none could be proven, of the one nearest to it.
    figures : sequence of KeyFigure
        On the rows kept apart, if there are any.
    fresh : bool
        Whether those rows had no part in training or choosing.
    words : Words
    finished : bool
    """
    outcome = Outcome.of(goal, rule, certificate)
    asked = "; ".join(words.limit(*parts) for parts in _limits(goal))
    reached = _reached(figures, fresh, words)
    headline, detail = {
        Outcome.PROVEN: _proven,
        Outcome.NOT_PROVEN: _not_proven,
        Outcome.REFUTED: _refuted,
        Outcome.NOT_FEASIBLE: _not_feasible,
        Outcome.NO_CONSTRAINT: _no_constraint,
    }[outcome](asked, rule, certificate)
    if not finished:
        detail += " The run was stopped before its plan was done: this is the best so far."
    return VerdictSection(outcome, headline, " ".join(filter(None, [detail, reached])))


def _limits(goal: Goal) -> list[tuple[str, str, float]]:
    limits = []
    for c in goal.constraints:
        if c.number is None:
            limits.append((f"{c.left} - ({c.right})", c.op, 0.0))
        else:
            limits.append((str(c.left), c.op, c.number))
    return limits


def _reached(figures: Sequence[KeyFigure], fresh: bool, words: Words) -> str:
    objective = next((f for f in figures if f.role == OBJECTIVE and f.value is not None), None)
    if objective is None or objective.value is None:
        return ""
    clause = words.figure(objective.name, objective.value)
    if objective.low is not None and objective.high is not None:
        shown = percent if clause.count("%") else "{:.4g}".format
        clause += f" (95% interval {shown(objective.low)} to {shown(objective.high)})"
    where = "" if fresh else " on rows that also helped to choose the rule"
    return sentence(clause + where)


def _proven(asked: str, rule: DecisionRule, proof: Certificate | None) -> tuple[str, str]:
    return (
        f"The model keeps what was asked: {asked}.",
        ""
        if proof is None
        else f"Proven at {percent(proof.confidence)} confidence on "
        f"{proof.rows:,} rows that nothing had seen.",
    )


def _not_proven(asked: str, rule: DecisionRule, proof: Certificate | None) -> tuple[str, str]:
    if proof is None:
        return (
            f"Not proven: {asked}. No rows were kept apart to prove it on.",
            f"On the rows the rule was chosen on: {signed(rule.sentence())}",
        )
    open_ones = [f for f in proof.findings if f.verdict == NOT_PROVEN]
    if any(f.out_of_fold for f in open_ones):
        looks = "It looks as if" if all(map(_holds, open_ones)) else "It is not shown that"
        headline = f"{looks} the model keeps what was asked ({asked}); it is not proven."
    elif all(map(_holds, open_ones)):
        headline = (
            f"It looks as if the model keeps what was asked ({asked}), but {proof.rows:,} rows "
            "are too few to prove it."
        )
    else:
        headline = (
            f"It is not shown that the model keeps what was asked ({asked}): on the rows kept "
            "apart it falls short."
        )
    return headline, " ".join(f"{signed(f.sentence())}." for f in open_ones)


def _holds(finding: Finding) -> bool:
    if finding.value is None:
        return False
    return finding.value >= finding.asked if finding.op == ">=" else finding.value <= finding.asked


def _refuted(asked: str, rule: DecisionRule, proof: Certificate | None) -> tuple[str, str]:
    broken = [] if proof is None else [f for f in proof.findings if f.verdict == REFUTED]
    return (
        f"The model does not keep what was asked: {asked}.",
        " ".join(f"{signed(f.sentence())}." for f in broken),
    )


def _not_feasible(asked: str, rule: DecisionRule, proof: Certificate | None) -> tuple[str, str]:
    return (
        f"What was asked is out of reach with this model: {asked}.",
        f"On the {rule.rows:,} rows it was chosen on, {signed(rule.account())}",
    )


def _no_constraint(asked: str, rule: DecisionRule, proof: Certificate | None) -> tuple[str, str]:
    return (
        "No limit was set, so there is nothing to prove.",
        f"The rule was chosen to {rule.goal}.",
    )
