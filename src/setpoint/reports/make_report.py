"""`make_report`: from a rule, scored rows and facts to the content of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from setpoint._core.errors import KindError
from setpoint.decisions import Certificate, DecisionRule, Plan
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.outcome import Outcome
from setpoint.expressions import Columns
from setpoint.goals import Goal
from setpoint.reports.checks.check_record import Check
from setpoint.reports.report import Report
from setpoint.reports.report_content import LeftOutSection, ReportContent, TaskSection
from setpoint.reports.report_inputs import CERTIFY, Diagnosed, RunFacts, ScoredRows
from setpoint.reports.sections.confusion import confusion
from setpoint.reports.sections.groups import affected
from setpoint.reports.sections.key_figures import (
    FiguresOnRows,
    KeyFigure,
    RowsSummary,
    key_figures,
)
from setpoint.reports.sections.score_distribution import distribution, reliability
from setpoint.reports.sections.summaries import (
    CertificateSummary,
    ComparisonSummary,
    DiagnosisSummary,
    PlanSummary,
    RuleSummary,
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
    """Measure everything a report shows; what is drawn later comes from this content alone.

    Parameters
    ----------
    goal : Goal or str
    rule : DecisionRule
    scored : sequence of ScoredRows
        Rows in their roles. Figures are of those named "certify", or of the first.
    facts : RunFacts
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
    lowered = asked.lowered
    certificate = rule.certificate if certificate is None else certificate
    rows = [(s.name, s.decided_by(rule)) for s in scored]
    main = next((pair for pair in rows if pair[0] == CERTIFY), rows[0] if rows else None)
    words = Words(facts.target, facts.positive)
    figures = [
        FiguresOnRows(name, _figures(lowered, name, columns, rule, certificate, words))
        for name, columns in rows
    ]
    shown = next((f.items for f in figures if main and f.on == main[0]), ())
    fresh = main is not None and main[0] == CERTIFY
    compared = None if comparison is None else ComparisonSummary.of(comparison)
    contenders = () if compared is None else compared.contenders
    columns = None if main is None else main[1]
    scores = columns if columns is not None and columns.task.kind == "binary" else None
    content = ReportContent(
        goal=str(asked),
        lowered=str(lowered),
        task=_task(rule, words),
        verdict=verdict(lowered, rule, certificate, shown, fresh, words, bool(facts.finished)),
        facts=facts,
        rule=RuleSummary.of(rule),
        rows=tuple(_summary(name, c) for name, c in rows),
        figures=tuple(figures),
        main=None if main is None else main[0],
        fresh=fresh,
        chosen_here=fresh and rule.certificate is not None,
        tradeoff=tradeoff(lowered, rule, rows, shown, contenders) if rows else None,
        curves=None if scores is None else curves(scores),
        confusion=None if columns is None else confusion(columns),
        distribution=None if scores is None else distribution(scores, rule),
        calibration=None if scores is None else reliability(scores),
        groups=() if columns is None else affected(columns),
        comparison=compared,
        certificate=None if certificate is None else CertificateSummary.of(certificate, rule),
        plan=None if plan is None else PlanSummary.of(plan),
        diagnosis=None if diagnosis is None else DiagnosisSummary.of(diagnosis),
        checks=tuple(sorted(checks, key=lambda check: check.code)),
    )
    content = replace(content, left_out=tuple(_left_out(content, rule)))
    # read back, so that what is drawn now and what is drawn from a file are the same
    return Report.from_json(content.to_json())


def _task(rule: DecisionRule, words: Words) -> TaskSection:
    return TaskSection(
        kind=rule.task.kind,
        score=rule.task.score,
        classes=tuple(str(c) for c in rule.task.classes or ()),
        named=words.named,
        are=words.are,
        them=words.them,
    )


def _figures(
    goal: Goal,
    name: str,
    columns: Columns,
    rule: DecisionRule,
    certificate: Certificate | None,
    words: Words,
) -> tuple[KeyFigure, ...]:
    of_these = name == CERTIFY and certificate is not None and certificate.point.same_as(rule.point)
    figures = key_figures(goal, columns, certificate if of_these else None)
    return tuple(_worded(figure, words) for figure in figures)


def _worded(figure: KeyFigure, words: Words) -> KeyFigure:
    if figure.value is None or not words.knows(figure.name):
        return figure
    return replace(figure, words=sentence(words.figure(figure.name, figure.value)))


def _summary(name: str, columns: Columns) -> RowsSummary:
    binary = columns.task.kind == "binary"
    return RowsSummary(
        name=name,
        rows=columns.size,
        positives=int(columns.actual.sum()) if binary else None,
        weighted=columns.weight is not None,
    )


def _left_out(content: ReportContent, rule: DecisionRule) -> Iterator[LeftOutSection]:
    """The sections that are not there, and why."""
    nothing = "no scored rows were given"
    if not content.rows:
        no_scores = nothing
    elif content.task.kind == "binary":
        no_scores = "the rows hold a single class"
    else:
        no_scores = f"a {content.task.kind} task has no single score to draw along"
    sections = (
        (content.tradeoff, "the trade-off", _no_tradeoff(content, rule)),
        (content.curves, "precision–recall and ROC curves", no_scores),
        (content.confusion, "the confusion table", nothing),
        (content.distribution, "the spread of the scores", no_scores),
        (content.calibration, "calibration", no_scores),
        (content.groups, "figures by group", "no group column was given"),
        (content.comparison, "the comparison with baselines", "none was made"),
        (content.certificate, "the certificate", _no_certificate(content)),
        (content.plan, "what more labels would buy", "no plan was made"),
        (content.checks, "checks of the data", "none were made"),
    )
    for section, what, why in sections:
        if not section:
            yield LeftOutSection(what, why)


def _no_tradeoff(content: ReportContent, rule: DecisionRule) -> str:
    if not content.rows:
        return "no scored rows were given"
    if not rule.point.along_scores:
        return "the rule has more than one threshold to move, and there is nothing to compare with"
    return "the goal is on scores, and no threshold changes it"


def _no_certificate(content: ReportContent) -> str:
    if content.verdict.status is Outcome.NO_CONSTRAINT:
        return "the goal sets no limit"
    return "no rows were kept apart to prove it on"
