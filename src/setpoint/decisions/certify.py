"""`certify`: whether a rule keeps its constraints, proven on rows that nothing has seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from setpoint._core.errors import (
    Argument,
    DataError,
    KindError,
    Name,
    Phrase,
    Spelling,
    Wording,
)
from setpoint._core.options import is_real
from setpoint._core.words import listing
from setpoint.decisions.proof.power import rows_needed
from setpoint.decisions.quantities.from_expression import ConstraintClaim, claim_of, claims_of
from setpoint.decisions.quantities.quantity import Quantity
from setpoint.decisions.quantities.rate_names import rate_name
from setpoint.expressions import Columns, Constraint, Domain, Expression, Population
from setpoint.expressions.rows.row_fingerprint import Fingerprint, refuse_seen
from setpoint.goals import Goal, check
from setpoint.rules.certificate import NOT_PROVEN, PROVEN, REFUTED, Certificate, Evidence, Finding
from setpoint.rules.decision_rule import DecisionRule, applied, declared, point_of
from setpoint.rules.rule import Rule
from setpoint.statistics.binomial import check_confidence

ASSUMPTION = (
    "It holds if the tested rows are a random sample of the rows to come and nothing (training, "
    "tuning, choosing among models) has seen them; it does not cover drift."
)
_OUT_OF_FOLD = "The rows are out-of-fold: these are figures, and prove nothing."


def used(how: str | Wording) -> Phrase:
    """The end of a sentence on rows that were used: how, and the way out."""
    return Phrase(
        "{how}; a proof needs rows that nothing has seen. Pass other rows, or choose and prove in "
        "one step: {tune}",
        how=how,
        tune=Spelling(
            "tune(goal, y, scores, prove=…, reference=…)", "tune --prove 0.95 --reference FILE"
        ),
    )


USED_BEFORE = used(Spelling("before (seen=)", "before (--seen)"))


def certify(
    goal: Goal | Expression | str,
    rule: DecisionRule,
    y_true: Any,
    scores: Any,
    confidence: float = 0.95,
    *,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    group: Any = None,
    query: Any = None,
    prevalence: Sequence[float] | float | None = None,
    out_of_fold: bool = False,
    seen: Iterable[Any] = (),
) -> Certificate:
    """Test every constraint of a goal on rows that nothing has seen.

    A constraint is PROVEN if "it is broken" can be rejected at level 1 − confidence, REFUTED if "it
    holds" can, NOT PROVEN otherwise. Several constraints are proven together, each at the full
    level (intersection–union).

    Parameters
    ----------
    goal : Goal, str or Expression
        Usually the rule's own; other bounds may be asked for.
    rule : DecisionRule
    y_true, scores : array-like
        As for :func:`tune`: rows drawn like those to come, untouched by training, tuning and
        selection. They are touched once: the rule remembers them, and a second ``certify`` of it
        on them raises.
    confidence : float
    sample_weight, group, query : array-like, optional
        As for :func:`tune`.
    weight_bound : float, optional
        The largest weight that a row can have at all. Without it weighted rows prove nothing.
    prevalence : pair of float, or float, optional
        Certify for every share of positives in this range instead of that of these rows: exact for
        metrics of one binary table, since recall and FPR do not move with the prevalence.
    out_of_fold : bool
        Whether the scores are out-of-fold: each row scored by a model that the others helped to
        train. The folds depend on each other and the model refitted on all rows is another one, so
        nothing is PROVEN then, and the bounds are figures.
    seen : iterable of Certificate, DecisionRule or Fingerprint
        Whose rows are used up: rows that are among them raise.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np, setpoint as sp
    >>> y, scores = np.repeat([0, 1], 60), np.linspace(0, 1, 120)
    >>> rule = sp.tune("maximize recall subject to precision >= 0.9", y[::2], scores[::2])
    >>> sp.certify(rule.goal, rule, y[1::2], scores[1::2], confidence=0.9).verdict
    'PROVEN'
    """
    delta = check_confidence(confidence)
    goal = check(Goal.of(goal), point_of(rule).task).lowered
    columns = applied(rule, y_true, scores, sample_weight=sample_weight, group=group, query=query)
    if weight_bound is not None:
        check_weights(columns, weight_bound)
    certificate = certify_columns(
        goal,
        rule,
        columns,
        delta,
        weight_bound=weight_bound,
        prevalence=_range(prevalence),
        seen=fingerprints(seen),
    )
    if out_of_fold:
        return as_figures(certificate, _OUT_OF_FOLD, out_of_fold=True)
    return certificate


def certify_columns(
    goal: Goal,
    rule: DecisionRule | Rule,
    columns: Columns,
    delta: float,
    *,
    weight_bound: float | None = None,
    prevalence: tuple[float, ...] = (),
    seen: Sequence[Fingerprint] = (),
) -> Certificate:
    """:func:`certify` of rows that are checked, on the host, and hold the rule's decisions.

    Parameters
    ----------
    goal : Goal
        Lowered, and checked against the task.
    rule : DecisionRule or Rule
        Remembers the rows where it is a :class:`DecisionRule`.
    columns : Columns
        As :meth:`setpoint.rules.rule.Rule.decided_columns` gives them.
    delta : float
        1 − confidence.
    weight_bound, prevalence
        As for :func:`certify`; the prevalence as a pair.
    seen : sequence of Fingerprint
    """
    rows = Fingerprint.of(columns)
    if isinstance(rule, DecisionRule):
        own = () if rule.chosen_on is None else (rule.chosen_on,)
        refuse_seen(rows, own, "certify rows", used("to choose the rule (tune)"))
        refuse_seen(
            rows,
            rule.touched,
            "certify rows",
            used("to certify this rule, or as its reference"),
        )
    refuse_seen(rows, seen, "certify rows", USED_BEFORE)
    also = (rule.groups,) if isinstance(rule, DecisionRule) else ()
    columns = replace(columns, task=declared(goal, columns, also))
    certificate = examine(goal, point_of(rule), columns, rows, delta, weight_bound, prevalence)
    if isinstance(rule, DecisionRule):
        rule.touched.append(rows)
    return certificate


def as_figures(certificate: Certificate, words: str, *, out_of_fold: bool = False) -> Certificate:
    """The same figures, of which none is a proof; ``words`` say why."""
    findings = tuple(
        replace(
            f,
            verdict=NOT_PROVEN,
            exact=False,
            how=f"{f.how} on out-of-fold rows" if out_of_fold else f.how,
            needed=None,
            out_of_fold=out_of_fold,
        )
        if f.verdict == PROVEN or out_of_fold
        else f
        for f in certificate.findings
    )
    return replace(
        certificate,
        verdict=_verdict([f.verdict for f in findings]),
        findings=findings,
        assumption=words,
    )


def fingerprints(seen: Any) -> list[Fingerprint]:
    """The rows that certificates and rules have used up."""
    single = not isinstance(seen, Iterable) or isinstance(seen, Certificate | DecisionRule)
    items = [seen] if single else list(seen)
    found: list[Fingerprint] = []
    for item in items:
        if isinstance(item, DecisionRule):
            found += item.seen
        elif isinstance(item, Certificate):
            found.append(item.fingerprint)
        elif isinstance(item, Fingerprint):
            found.append(item)
        else:
            raise KindError(f"seen= takes certificates, rules and fingerprints; got {item!r}")
    return found


def examine(
    goal: Goal,
    point: Rule,
    columns: Columns,
    rows: Fingerprint,
    delta: float,
    weight_bound: float | None = None,
    prevalence: tuple[float, ...] = (),
    chosen_among: int = 0,
    candidates: int = 1,
) -> Certificate:
    """The certificate of a rule on columns that hold its decisions, all groups declared.

    Where the rule was chosen by tests on these same rows (``chosen_among`` of ``candidates`` that
    were laid out), what they proved is the bounds that were asked for, and no more; and the
    interval around the objective has to hold for all candidates.
    """
    population = population_of(point, columns, weight_bound)
    findings = []
    for claim in claims_of(goal, population, prevalence):
        finding = _finding(claim, columns, population, delta, len(goal.constraints))
        proven = chosen_among and finding.verdict == PROVEN
        findings.append(_no_more(finding) if proven else finding)
    objective = goal.objective.expand(Domain(population))
    reading = claim_of(objective, population, str(goal.objective)).on(columns)
    end = delta / 2 / max(candidates, 1)
    return Certificate(
        verdict=_verdict([f.verdict for f in findings]),
        goal=goal,
        confidence=1 - delta,
        findings=tuple(findings),
        value=reading.value,
        interval=(reading.lower(end), reading.upper(end)),
        interval_how=reading.how,
        rows=columns.size,
        point=replace(point, task=columns.task),
        fingerprint=rows,
        assumption=_assumption(prevalence, point, columns, chosen_among, rows),
        weight_bound=weight_bound,
        prevalence=prevalence,
        weighted=columns.weight is not None,
        flagged=_flagged(columns),
    )


def _flagged(columns: Columns) -> float | None:
    """The share of rows decided positive, where there is a positive."""
    if columns.task.kind != "binary" or columns.decided is None:
        return None
    return float(columns.decided.mean())


def population_of(point: Rule, columns: Columns, weight_bound: float | None = None) -> Population:
    """Where the rows that a rule decides come from; rows ranked together depend on each other."""
    return Population.of(columns, weight_bound, dependent=not point.row_by_row)


def _no_more(finding: Finding) -> Finding:
    """The finding of a rule that was chosen here: the bound asked for is all that is proven."""
    how = f"{finding.how}; no more than the bound is proven where the rule is chosen"
    return replace(finding, bound=finding.asked, other=finding.sides()[1], how=how)


def proves(claims: Sequence[ConstraintClaim], columns: Columns, delta: float) -> bool:
    """Whether every claim is proven on columns that hold a rule's decisions."""
    for claim in claims:
        if claim.op == "==" or not claim.claim.exact:
            return False
        if not claim.on(columns).proves(claim.op, claim.asked, delta):
            return False
    return True


def _finding(
    claim: ConstraintClaim, columns: Columns, population: Population, delta: float, several: int
) -> Finding:
    quantity = claim.on(columns)
    op = claim.op
    asked = claim.asked
    if op == "==":
        proven, bound, other = False, asked, asked
        share = delta / several / 2
        refuted = quantity.lower(share) > asked or quantity.upper(share) < asked
    else:
        proven = quantity.exact and quantity.proves(op, asked, delta)
        bound, other = quantity.lower(delta), quantity.upper(delta / several)
        if op == "<=":
            bound, other = quantity.upper(delta), quantity.lower(delta / several)
        refuted = other < asked if op == ">=" else other > asked
    refuted = refuted and quantity.exact and quantity.value is not None
    verdict = PROVEN if proven else REFUTED if refuted else NOT_PROVEN
    needed = None
    if verdict == NOT_PROVEN and op != "==":
        needed = rows_needed(quantity, op, asked, delta, columns.size)
    return Finding(
        constraint=str(claim.constraint),
        verdict=verdict,
        value=quantity.value,
        op=op,
        asked=asked,
        bound=float(bound),
        other=float(other),
        how=quantity.how,
        exact=quantity.exact,
        evidence=_evidence(claim.constraint, quantity, population),
        needed=needed,
    )


def _evidence(
    constraint: Constraint, quantity: Quantity, population: Population
) -> tuple[Evidence, ...]:
    """The rows behind each rate, by the name of its metric and its part of the rows."""
    left = str(constraint.left)
    if len(quantity.rates) == 1:
        return (Evidence(name=left, k=quantity.rates[0].k, n=quantity.rates[0].n),)
    evidence = []
    for number, rate in enumerate(quantity.rates, 1):
        metric = rate_name(rate.claim, population)
        name = f"{left}, part {number}" if metric is None else str(metric)
        part = "" if metric is None else metric.part
        evidence.append(Evidence(name=name, k=rate.k, n=rate.n, part=part))
    return tuple(dict.fromkeys(evidence))


def _verdict(verdicts: list[str]) -> str:
    if verdicts and all(v == PROVEN for v in verdicts):
        return PROVEN
    return REFUTED if REFUTED in verdicts else NOT_PROVEN


def _assumption(
    prevalence: tuple[float, ...],
    point: Rule,
    columns: Columns,
    chosen_among: int,
    rows: Fingerprint,
) -> str:
    words = ASSUMPTION
    if not rows.knows_rows:
        words += (
            " The scores have few values, so that rows used before are known again only as a "
            "whole: that none of them is among these is for you to know."
        )
    if chosen_among > 1:
        words += (
            f" The rule was chosen here by {chosen_among} tests in an order fixed on other rows, "
            "which is the one touch of these rows."
        )
    if prevalence:
        low, high = (f"{100 * x:g}%" for x in prevalence)
        span = f"a share of positives of {low}"
        span = span if low == high else f"any share of positives from {low} to {high}"
        words += f" Tested for {span} (values are the worst there), if nothing else changes."
    if columns.query is not None and not point.no_proof:
        words += " Rows of one query depend on each other, so nothing is proven by them."
    if columns.task.groups:
        named = (f"{name}: {listing(map(str, values))}" for name, values in columns.task.groups)
        words += f" Groups: {'; '.join(named)}."
    if point.no_proof:
        words += f" {point.no_proof[:1].upper()}{point.no_proof[1:]}, so this proves nothing."
    return words


def _range(prevalence: Any) -> tuple[float, ...]:
    if prevalence is None:
        return ()
    single = is_real(prevalence) or not isinstance(prevalence, Iterable)
    ends: list[Any] = [prevalence, prevalence] if single else list(prevalence)
    if len(ends) != 2 or not all(is_real(x) and 0 < x < 1 for x in ends) or ends[0] > ends[1]:
        raise DataError(
            "{argument} is a share of positives, or {range}, between 0 and 1; got {prevalence!r}",
            argument=Name("prevalence"),
            range=Spelling("a pair (low, high) of them", "two of them (LOW,HIGH)"),
            prevalence=prevalence,
        )
    return float(ends[0]), float(ends[1])


def check_weights(columns: Columns, bound: Any) -> None:
    """Refuse weights beyond their stated bound."""
    if not is_real(bound) or not 0 < bound < math.inf:
        raise DataError(
            "{argument} is the largest weight a row can have; got {bound!r}",
            argument=Name("weight_bound"),
            bound=bound,
        )
    if columns.weight is None:
        raise KindError(
            "{argument} belongs to {weight}; leave it out",
            argument=Argument("weight_bound"),
            weight=Spelling("sample_weight=", "--weight"),
        )
    heaviest = float(columns.weight.max())
    if heaviest > bound:
        raise DataError(
            "a row weighs {heaviest:g}, more than {argument}",
            heaviest=heaviest,
            argument=Argument("weight_bound", bound),
        )
