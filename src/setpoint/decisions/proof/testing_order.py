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
from setpoint.decisions.proof.margin_path import joint_power, unweighted_decisions
from setpoint.decisions.quantities.from_expression import ConstraintClaim, claims_of
from setpoint.expressions import Columns, Population, Sweep
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
    part = reference.sample(MOST_ROWS)
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


def threshold_claims(goal: Goal, columns: Columns) -> tuple[ConstraintClaim, ...]:
    """What the goal claims of rows like these, where one threshold decides them."""
    return claims_of(goal, Population.of(replace(columns, task=declared(goal, columns))))


def _expected(
    goal: Goal, part: Columns, sweep: Sweep, places: np.ndarray, delta: float, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Power, objective (higher is better) and the p-value expected at each place."""
    claims = threshold_claims(goal, part)
    tests = [(c.op, float(r.share(c.asked)), r) for c in claims for r in c.pure_rates]
    doubled = part.take(np.tile(np.arange(part.size), 2))
    doubled = replace(doubled, actual=np.repeat([True, False], part.size))
    problem = GoalOnRows.ground(Goal(goal.sense, goal.objective), doubled)
    unweighted = Sweep(doubled)
    powers, merits, lacking = (np.zeros((DRAWS, places.size)) for _ in range(3))
    for b, curve in enumerate(drawn_curves(part)):
        along = unweighted.weighted(np.concatenate([curve, 1 - curve]))
        node = float(special.ndtri(_NODES[b % _NODES.size]))
        each = np.ones(places.size)
        for op, floor, rate in tests:
            k, n = rate.along(along, places)
            lacking[b] = np.maximum(lacking[b], _p_value(op, floor, k, n, size / part.size))
            each *= _power(op, floor, k, n, delta=delta, size=size, rows=part.size, node=node)
        powers[b] = each
        merit = problem.scan(along).merit[places]
        merits[b] = np.where(np.isfinite(merit), merit, -1e300)
    power = powers.mean(0)
    others = [claim for claim in claims if not claim.pure_rates]
    if others:
        power = power * _others(others, goal, part, sweep, places, delta, size)
    return power, merits.mean(0), lacking.mean(0)


def _p_value(op: str, share: float, k: np.ndarray, n: np.ndarray, scale: float) -> np.ndarray:
    """The p-value of k of n rows, scaled to the number of certify rows."""
    test = bounds.p_above if op == ">=" else bounds.p_below
    return test(np.round(k * scale), np.round(n * scale), share)


def _power(
    op: str,
    floor: float,
    k: np.ndarray,
    n: np.ndarray,
    *,
    delta: float,
    size: int,
    rows: int,
    node: float,
) -> np.ndarray:
    """The power of ``size`` rows where k and n were counted on ``rows``, at a quantile of n."""
    share = np.clip(k / np.maximum(n, 1e-12), 0, 1)
    if op == "<=":
        share, floor = 1 - share, 1 - floor
    say = np.clip(n / rows, 0, 1)
    drawn = np.round(size * say + node * np.sqrt(size * say * (1 - say)))
    drawn = np.clip(drawn, 0, size)
    distinct, where = np.unique(drawn, return_inverse=True)
    needed = bounds.least_proof(distinct, floor, delta)[where]
    return np.where(needed > drawn, 0.0, bounds.p_above(needed, drawn, share))


def _others(
    claims: list[ConstraintClaim],
    goal: Goal,
    part: Columns,
    sweep: Sweep,
    places: np.ndarray,
    delta: float,
    size: int,
) -> np.ndarray:
    """The power of claims on more than pure rates, looked at here and there."""
    looks = np.unique(np.linspace(0, places.size - 1, min(places.size, _LOOKS)).round().astype(int))
    thresholds = sweep.thresholds[places[looks]]
    rules = [OneThreshold(task=part.task, threshold=float(t)) for t in thresholds]
    powers = [joint_power(claims, unweighted_decisions(r, part), delta, size) for r in rules]
    return np.interp(np.arange(places.size), looks, powers)
