"""Promises at another prevalence, the one shift with an exact answer.

Recall T and false positive rate F do not move with the share π of positives. A cleared metric is
linear in both,

    E[z] = π (T z_tp + (1−T) z_fn) + (1−π) (F z_fp + (1−F) z_tn)

so that N / D ≥ c at prevalence π is a claim on two independent rates. For fixed T and F it is
linear in π too: what holds at both ends of a range holds between.
"""

from __future__ import annotations

import numpy as np

from setpoint._core.errors import Argument, GoalError, Spelling
from setpoint.decisions.quantities.quantity import Claim, ExtremeClaim
from setpoint.decisions.quantities.rate import RateClaim, rate_claim, shares
from setpoint.decisions.quantities.two_rates import PairClaim
from setpoint.expressions import Columns, Constraint, Expression, Population, Task, Total
from setpoint.expressions.fractions import Form, cleared, fractions
from setpoint.expressions.rows.row_events import Event, actual, decided, not_actual


def at_prevalence(
    ground: Expression,
    population: Population,
    prevalence: tuple[float, ...],
    name: str,
    constraint: Constraint,
) -> Claim:
    """A linear-fractional metric of one binary table, over a range of prevalences."""
    parts = fractions(ground.normal())
    clear = None if parts is None else cleared(parts)
    if population.task.kind != "binary" or population.abstains or clear is None:
        raise GoalError(
            f'"{constraint}" has no exact reading at another prevalence; precision, npv, f1, '
            "accuracy, cost and other ratios of tp, fp, fn, tn have"
        )
    if population.weighted:
        raise GoalError(
            "{argument} and {weight} do not go together; leave one out",
            argument=Argument("prevalence"),
            weight=Spelling("sample_weight=", "--weight"),
        )
    top, bottom = ({t: c for t, c in form.items() if c != 0} for form in clear)
    rows = [_common_rows(form) for form in (top, bottom)]
    if None in top or None in bottom or len({*rows[0], *rows[1]}) != 1:
        raise GoalError(f'"{constraint}" counts rows of several groups; certify each group alone')
    where = next(iter(rows[0] or rows[1]))
    caught = rate_claim(
        f"recall behind {name}",
        {Total(decided & actual & where): 1.0},
        {Total(actual & where): 1.0},
        population,
    )
    flagged = rate_claim(
        f"fpr behind {name}",
        {Total(decided & not_actual & where): 1.0},
        {Total(not_actual & where): 1.0},
        population,
    )
    assert caught is not None
    assert flagged is not None
    table = _table(population.task, where)
    n, d = (shares(form, table) for form in (top, bottom))
    ends = tuple(_at(pi, n, d, caught, flagged) for pi in dict.fromkeys(prevalence))
    if len(ends) == 1:
        return ends[0]
    return ExtremeClaim(1 if constraint.op == ">=" else -1, ends)


def _common_rows(form: Form) -> set:
    """The group conditions of each total, decisions and labels aside."""
    return {t.event.without("decided", "actual", "correct", "kept") for t in form if t is not None}


def _table(task: Task, where: Event) -> Columns:
    """tp, fn, fp, tn as four rows."""
    return Columns(
        task,
        actual=np.array([True, True, False, False]),
        decided=np.array([True, False, True, False]),
        groups={x.column: np.array([x.value] * 4, dtype=object) for x in where.literals},
    )


def _at(
    pi: float, n: np.ndarray, d: np.ndarray, caught: RateClaim, flagged: RateClaim
) -> PairClaim:
    def plane(t: float) -> tuple[float, float, float]:
        tp, fn, fp, tn = n - t * d
        return pi * (tp - fn), (1 - pi) * (fp - tn), pi * fn + (1 - pi) * tn

    def point(recall: float, fpr: float) -> float:
        shares = np.array([pi * recall, pi * (1 - recall), (1 - pi) * fpr, (1 - pi) * (1 - fpr)])
        below = shares @ d
        return float(shares @ n / below) if below > 0 else float("nan")

    with np.errstate(divide="ignore", invalid="ignore"):
        values = (n / d)[d > 0]
    return PairClaim(
        one=caught,
        two=flagged,
        plane=plane,
        span=(float(values.min()), float(values.max())),
        point=point,
    )
