"""The order in which thresholds are tested, from reference rows and the number of certify rows.

The start is the lever: the order stops at its first failure, so it should begin where a proof is
most likely, and then go, one reference score after the other, to where the objective is better. The
power at a threshold t is that of the exact test,

    mean over curves of  Π over constraints of  P(Bin(n_t, rate_t) >= k*)

with rate_t and n_t from curves P(positive | score) drawn from their posterior (see smoothing), and
n_t varied as the number of rows with a say will vary. It reads nothing of the certify rows but
their number, so the order is fixed before they are looked at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setpoint._core import scipy_special as special
from setpoint.decisions.certify import subject_of
from setpoint.decisions.proof.margin_path import joint_power
from setpoint.decisions.quantities.from_expression import parts_of_all
from setpoint.decisions.quantities.rate import Rate
from setpoint.expressions import Columns, Sweep
from setpoint.expressions.fractions import Form
from setpoint.goals import Goal
from setpoint.rules.decision_rule import declared
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import OneThreshold
from setpoint.statistics import binomial as bounds
from setpoint.statistics.score_calibration import DRAWS, drawn_curves

MOST_ROWS = 2000  #: reference rows that curves are drawn on
MOST_STARTS = 400
_NODES = (np.arange(11) + 0.5) / 11  #: quantiles of the number of rows with a say
_LOOKS = 24  #: thresholds at which constraints that are no pure rates are looked at


def threshold_order(goal: Goal, reference: Columns, delta: float, size: int) -> np.ndarray:
    """Thresholds in the order of their tests; ``size`` is the number of certify rows."""
    reference = replace(reference, weight=None)
    part = _some(reference)
    sweep = Sweep(part)
    places = np.unique(np.linspace(1, sweep.size - 1, min(sweep.size - 1, MOST_STARTS)).round())
    places = places.astype(np.int64)
    power, merit, lacking = _expected(goal, part, sweep, places, delta, size)
    if power.max() <= 1e-6:  # too few rows for a proof anywhere: begin where least is lacking
        start = int(np.argmin(lacking))
    else:
        ties = np.flatnonzero(power >= power.max() - 1e-6)
        start = int(ties[np.argmax(merit[ties])])
    first = sweep.thresholds[places[start]]
    every = np.unique(np.asarray(reference.scores))[::-1]
    if merit[start:].max() >= merit[: start + 1].max():
        return every[every <= first]
    return every[every >= first][::-1]


def pure_claims(goal: Goal, columns: Columns) -> list[list[tuple[Rate, str, float]] | None]:
    """Of each constraint the pure rates that must all keep a bound; None where it is otherwise."""
    rule = OneThreshold(task=columns.task, threshold=0.0)  # any, for what follows from the goal
    half = rule.decided_columns(columns)
    half = replace(half, task=declared(goal, half))
    found: list[list[tuple[Rate, str, float]] | None] = []
    for constraint in goal.constraints:
        subject, asked = subject_of(constraint, half, None, (), rule)
        parts = None if constraint.op == "==" else parts_of_all(subject, constraint.op)
        rates = [p for p in parts or () if isinstance(p, Rate) and p.pure]
        pure = parts is not None and len(rates) == len(parts) and len(rates) > 0
        found.append([(r, constraint.op, asked) for r in rates] if pure else None)
    return found


def counts_along(r: Rate, sweep: Sweep, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, n) of a pure rate at candidates of a sweep.

    N = k N₁ + m N₂ and D = k D₁ + m D₂ with n = k + m.
    """
    top, bottom = (_along(form, sweep, places) for form in (r.top, r.bottom))
    (n1, d1), (n2, d2) = r.possible[0], r.possible[-1]
    det = n1 * d2 - n2 * d1
    if det == 0:  # every row that has a say is alike
        k = bottom / d1 if d1 else top / n1
        return k, k
    k, m = (top * d2 - n2 * bottom) / det, (n1 * bottom - top * d1) / det
    return k, k + m


def _along(form: Form, sweep: Sweep, places: np.ndarray) -> np.ndarray:
    whole = np.zeros(places.size)
    for total, coefficient in form.items():
        if total is not None:
            whole = whole + coefficient * sweep.at(total, places)
    return whole


def _some(reference: Columns) -> Columns:
    if reference.size <= MOST_ROWS:
        return reference
    rows = np.random.default_rng(0).choice(reference.size, MOST_ROWS, replace=False)
    part = reference.take(np.sort(rows))
    return part if 0 < np.count_nonzero(part.actual) < part.size else reference


def _expected(
    goal: Goal, part: Columns, sweep: Sweep, places: np.ndarray, delta: float, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Power, objective (higher is better) and the p-value expected at each place."""
    claims = pure_claims(goal, part)
    doubled = part.take(np.tile(np.arange(part.size), 2))
    doubled = replace(doubled, actual=np.repeat([True, False], part.size))
    problem = GoalOnRows.ground(Goal(goal.sense, goal.objective), doubled)
    unweighted = Sweep(doubled)
    powers, merits, lacking = (np.zeros((DRAWS, places.size)) for _ in range(3))
    for b, curve in enumerate(drawn_curves(part)):
        along = unweighted.weighted(np.concatenate([curve, 1 - curve]))
        node = float(special.ndtri(_NODES[b % _NODES.size]))
        each = np.ones(places.size)
        for r, op, asked in (claim for parts in claims for claim in parts or ()):
            k, n = counts_along(r, along, places)
            lacking[b] = np.maximum(lacking[b], _p_value(r, op, asked, k, n, size / part.size))
            each *= _power(r, op, asked, k, n, delta, size, part.size, node)
        powers[b] = each
        merit = problem.scan(along).merit[places]
        merits[b] = np.where(np.isfinite(merit), merit, -1e300)
    power = powers.mean(0)
    if None in claims:
        power = power * _others(goal, part, sweep, places, delta, size, claims)
    return power, merits.mean(0), lacking.mean(0)


def _p_value(
    r: Rate, op: str, asked: float, k: np.ndarray, n: np.ndarray, scale: float
) -> np.ndarray:
    """The p-value of k of n rows, scaled to the number of certify rows."""
    test = bounds.p_above if op == ">=" else bounds.p_below
    return test(np.round(k * scale), np.round(n * scale), r.share(asked))


def _power(
    r: Rate,
    op: str,
    asked: float,
    k: np.ndarray,
    n: np.ndarray,
    delta: float,
    size: int,
    rows: int,
    node: float,
) -> np.ndarray:
    share = np.clip(k / np.maximum(n, 1e-12), 0, 1)
    floor = float(r.share(asked))
    if op == "<=":
        share, floor = 1 - share, 1 - floor
    say = np.clip(n / rows, 0, 1)
    drawn = np.round(size * say + node * np.sqrt(size * say * (1 - say)))
    drawn = np.clip(drawn, 0, size)
    distinct, where = np.unique(drawn, return_inverse=True)
    needed = bounds.least_proof(distinct, floor, delta)[where]
    return np.where(needed > drawn, 0.0, bounds.p_above(needed, drawn, share))


def _others(
    goal: Goal,
    part: Columns,
    sweep: Sweep,
    places: np.ndarray,
    delta: float,
    size: int,
    claims: list,
) -> np.ndarray:
    """The power of constraints that are no pure rates, looked at here and there."""
    rest = tuple(c for c, known in zip(goal.constraints, claims, strict=True) if known is None)
    some = Goal(goal.sense, goal.objective, rest)
    looks = np.unique(np.linspace(0, places.size - 1, min(places.size, _LOOKS)).round().astype(int))
    powers = [
        joint_power(some, OneThreshold(task=part.task, threshold=float(t)), part, delta, size)
        for t in sweep.thresholds[places[looks]]
    ]
    return np.interp(np.arange(places.size), looks, powers)
