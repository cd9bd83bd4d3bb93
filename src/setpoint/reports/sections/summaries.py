"""Summaries of rule, certificate, comparison, plan and diagnosis as a report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setpoint._core.json_codec import Record
from setpoint.decisions import Certificate, DecisionRule, Plan
from setpoint.decisions.comparison import Comparison, Difference
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.decisions.plan import Option, thinned
from setpoint.reports.report_inputs import Diagnosed
from setpoint.rules.certificate import NOT_PROVEN

VOID = (
    "The rows to come are unlike the tested ones (drift). Watch for it: feed labelled rows to the "
    "command setpoint monitor.",
    "The model, the way its columns are prepared, or the threshold is changed.",
    "The tested rows are used again: to tune, to choose among models, or for another rule.",
    "The label comes to mean something else, or the rows that get a label are picked by a new way.",
)
OPTIONS = 24  #: rules of a plan that are drawn, evenly from the soonest proven to the boldest
EVIDENCE = 4  #: rates of a finding that are named; a gap over many groups has one for each


@dataclass(frozen=True)
class RuleSummary(Record):
    """How scores become decisions, and how that was chosen."""

    kind: str
    point: str
    sentence: str
    search: str
    rows: int
    feasible: bool
    binding: tuple[str, ...]
    chosen_on: str | None
    with_proof: bool

    @classmethod
    def of(cls, rule: DecisionRule) -> RuleSummary:
        """The summary of a rule."""
        return cls(
            kind=rule.kind,
            point=rule.operating_point(),
            sentence=rule.sentence(),
            search=rule.search,
            rows=rule.rows,
            feasible=rule.feasible,
            binding=tuple(rule.binding),
            chosen_on=None if rule.chosen_on is None else str(rule.chosen_on),
            with_proof=rule.certificate is not None,
        )


@dataclass(frozen=True)
class FindingSummary(Record):
    """One tested constraint, with its sentences."""

    constraint: str
    verdict: str
    value: float | None
    op: str
    asked: float
    limit: str
    how: str
    evidence: tuple[str, ...]
    needed: int | None
    sentence: str
    way_out: str


@dataclass(frozen=True)
class CertificateSummary(Record):
    """What was proven, under which assumption, and what would void it."""

    verdict: str
    confidence: float
    rows: int
    fingerprint: str
    point: str
    of_this_rule: bool
    assumption: str
    needed: int | None
    findings: tuple[FindingSummary, ...]
    void: tuple[str, ...]

    @classmethod
    def of(cls, certificate: Certificate, rule: DecisionRule) -> CertificateSummary:
        """The summary of a certificate, in a report about a rule."""
        return cls(
            verdict=certificate.verdict,
            confidence=certificate.confidence,
            rows=certificate.rows,
            fingerprint=str(certificate.fingerprint),
            point=certificate.point.describe(),
            of_this_rule=certificate.point.same_as(rule.point),
            assumption=certificate.assumption,
            needed=certificate.needed,
            findings=tuple(
                FindingSummary(
                    constraint=f.constraint,
                    verdict=f.verdict,
                    value=f.value,
                    op=f.op,
                    asked=f.asked,
                    limit=f.limit(),
                    how=f.how,
                    evidence=tuple(map(str, f.evidence[:EVIDENCE])),
                    needed=f.needed,
                    sentence=f.sentence(),
                    way_out=f.way_out() if f.verdict == NOT_PROVEN else "",
                )
                for f in certificate.findings
            ),
            void=VOID,
        )


@dataclass(frozen=True)
class ContenderSummary(Record):
    """A contender of a comparison, and whether it is the one that was taken."""

    name: str
    point: str
    value: float | None
    kept: tuple[ConstraintValue, ...]
    merit: float
    verdict: str
    chosen: bool


@dataclass(frozen=True)
class ComparisonSummary(Record):
    """Who won, by how much, on which rows."""

    goal: str
    chosen: str
    contenders: tuple[ContenderSummary, ...]
    differences: tuple[Difference, ...]
    rows: int
    folds: int
    sentence: str

    @classmethod
    def of(cls, comparison: Comparison) -> ComparisonSummary:
        """The summary of a comparison."""
        return cls(
            goal=str(comparison.goal),
            chosen=comparison.chosen,
            contenders=tuple(
                ContenderSummary(**vars(c), chosen=c.name == comparison.chosen)
                for c in comparison.contenders
            ),
            differences=comparison.differences,
            rows=comparison.rows,
            folds=comparison.folds,
            sentence=comparison.sentence,
        )


@dataclass(frozen=True)
class NeedSummary(Record):
    """What the proof of one constraint takes; ``bounds`` are (rows, provable bound)."""

    constraint: str
    value: float | None
    rows: int | None
    of_them: int | None
    who: str
    bounds: tuple[tuple[int, float], ...]
    why: str
    sentence: str
    asked: float | None
    metric: str


@dataclass(frozen=True)
class PlanSummary(Record):
    """What more labels would buy."""

    goal: str
    confidence: float
    power: float
    size: int
    operating_point: str
    needed: int | None
    needs: tuple[NeedSummary, ...]
    options: tuple[Option, ...]
    objective: str

    @classmethod
    def of(cls, plan: Plan) -> PlanSummary:
        """The summary of a plan."""
        return cls(
            goal=str(plan.goal),
            confidence=plan.confidence,
            power=plan.power,
            size=plan.size,
            operating_point=plan.point,
            needed=plan.needed,
            needs=tuple(
                NeedSummary(
                    constraint=need.constraint,
                    value=need.value,
                    rows=need.rows,
                    of_them=need.of_them,
                    who=need.who,
                    bounds=tuple((rows, x) for rows, x in need.bounds if x is not None),
                    why=need.why,
                    sentence=str(need),
                    asked=c.number,
                    metric=str(c.left),
                )
                for need, c in zip(plan.needs, plan.goal.constraints, strict=True)
            ),
            options=tuple(thinned(plan.options, OPTIONS)),
            objective=str(plan.goal.objective),
        )


@dataclass(frozen=True)
class DiagnosisSummary(Record):
    """Why the goal cannot be met, and the price of each limit."""

    lines: tuple[str, ...]
    details: dict[str, Any]

    @classmethod
    def of(cls, diagnosis: Diagnosed) -> DiagnosisSummary:
        """The summary of a diagnosis."""
        return cls(tuple(map(str, diagnosis.lines())), dict(diagnosis.to_json()))
