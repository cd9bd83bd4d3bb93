"""Names of rates in the words of the goal: ``recall, sex=f`` for the rows behind a bound.

A rate is known by what a row can be: the rows that have a say in it, and those among them that
speak for a high value. A metric with the same two sets is the same share, however it is written
(−fpr is as good a name for specificity as any sum of totals).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.decisions.quantities.rate import RateClaim, shares
from setpoint.decisions.quantities.row_states import states_of
from setpoint.expressions import Columns, Domain, Expression, Leaf, Population, Total
from setpoint.expressions.fractions import Form, cleared, fractions
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    BIN,
    CORRECT,
    DECIDED,
    KEPT,
    Label,
    Literal,
)
from setpoint.metrics import (
    accuracy,
    coverage,
    error_rate,
    f1,
    fdr,
    fnr,
    fpr,
    jaccard,
    npv,
    positive_rate,
    precision,
    prevalence,
    recall,
    selective_risk,
    specificity,
)

#: Shares of rows that have a name, the commonest first: f1 and jaccard are the same share of the
#: same rows, and the first of them gives its name.
NAMED = (
    precision,
    recall,
    fpr,
    specificity,
    fnr,
    npv,
    fdr,
    accuracy,
    error_rate,
    positive_rate,
    prevalence,
    f1,
    jaccard,
    coverage,
    selective_risk,
)
_SIDES = (DECIDED, ACTUAL, CORRECT)


@dataclass(frozen=True)
class RateName:
    """A rate by its metric, and the group or class whose rows it is about."""

    metric: str
    part: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.metric, self.part)))


def rate_name(rate: RateClaim, population: Population) -> RateName | None:
    """The metric that a rate is, or None where it is none that has a name.

    Parameters
    ----------
    rate : RateClaim
    population : Population
        That it is about.
    """
    totals = [total for form in (rate.top, rate.bottom) for total in form if total is not None]
    groups = _groups(totals)
    classes = {x.value for total in totals for x in total.event.about(*_SIDES)} - {None}
    if groups is None or len(classes) > 1:
        return None
    label = next(iter(classes), None)
    top, bottom = (_ungrouped(form) for form in (rate.top, rate.bottom))
    parts = sorted(map(str, groups)) + ([] if label is None else [f"class={label}"])
    for metric in NAMED:
        forms = _forms(metric, population, label)
        if forms is not None and _same(population, (top, bottom), forms):
            return RateName(str(metric), ", ".join(parts))
    return None


def _groups(totals: list[Total]) -> frozenset[Literal] | None:
    """The literals on group columns, where all totals have the same."""
    own = (*_SIDES, KEPT, BIN)
    found = {frozenset(x for x in t.event.literals if x.column not in own) for t in totals}
    return next(iter(found)) if len(found) == 1 else None


def _ungrouped(form: Form) -> Form:
    own = (*_SIDES, KEPT, BIN)
    plain: Form = {}
    for total, coefficient in form.items():
        assert total is not None
        groups = {x.column for x in total.event.literals} - set(own)
        plain[Total(total.event.without(*groups), total.quantity)] = coefficient
    return plain


def _forms(metric: Expression, population: Population, label: Label) -> tuple[Form, Form] | None:
    """N and D of a metric, seen from a class; None where it asks for a class and there is none."""
    ground = metric.expand(Domain(population, label))
    if label is not None:
        ground = ground.map_leaves(lambda leaf: leaf.of(label))
    elif population.task.kind == "multiclass" and any(map(_of_one_class, ground.leaves())):
        return None
    parts = fractions(ground.normal())
    return None if parts is None else cleared(parts)


def _of_one_class(leaf: Leaf) -> bool:
    return not isinstance(leaf, Total) or leaf.speaks_of_one_class()


def _same(population: Population, one: tuple[Form, Form], other: tuple[Form, Form]) -> bool:
    """Whether two rates are the same share of the same rows."""
    totals = [total for form in (*one, *other) for total in form]
    if None in totals:
        return False
    states = states_of(totals, population)  # type: ignore[arg-type]
    if states is None:
        return False
    (say, high), (others_say, others_high) = (_sets(forms, states) for forms in (one, other))
    return bool((say == others_say).all() and (high == others_high).all())


def _sets(forms: tuple[Form, Form], states: Columns) -> tuple[np.ndarray, np.ndarray]:
    """The states that have a say, and those of the greatest N / D among them."""
    top, bottom = (shares(form, states) for form in forms)
    say = (top != 0) | (bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(say, top / bottom, -np.inf)
    return say, say & np.isclose(ratio, ratio.max())
