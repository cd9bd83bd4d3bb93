"""The candidates of a proof: thresholds along the rows, or rules with a margin of other kinds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from setpoint.decisions.proof.margin_path import margin_path, subjects_of
from setpoint.decisions.proof.test_order import pure_claims
from setpoint.decisions.sensitivity.proof_prospects import Around, Part, counted_along, parts_of
from setpoint.decisions.sensitivity.provable_goal import Outlook
from setpoint.decisions.sensitivity.value_function import Along, Searched
from setpoint.decisions.smoothed import smoothed
from setpoint.expressions import Columns
from setpoint.goals import Goal
from setpoint.goals.constraint_bound import Asked, asked_of, numbered
from setpoint.rules.goal_on_rows import Problem
from setpoint.rules.one_threshold import threshold_rule
from setpoint.rules.tradeoff_curve import spread_over

PLACES = 128  #: thresholds whose proofs are looked at
LOOKS = 12  #: the same, where each takes its time
MOST_ROWS = 1000  #: rows that these are looked at on


def outlook(
    land: Along | Searched, nearby: Goal, delta: float, fresh: int, power: float
) -> Outlook | str:
    """Candidate rules for a proof, or why there is none.

    Parameters
    ----------
    land : Along or Searched
        Of rows without weights.
    nearby : Goal
        One that is met here: what the candidates are laid out around.
    delta, fresh, power
        1 − confidence, the fresh rows, the power.
    """
    for asked in land.asked:
        if asked.equality:
            return f"{asked.constraint}: an equality cannot be proven from a sample; state a range"
    if isinstance(land, Along):
        return _along(land, nearby, delta, power)
    if land.kind == "top-k":
        return "the first k of other rows are another rule, so a top-k rule proves nothing"
    near = numbered(nearby)
    rules = margin_path(near, land.columns, land.kind, land.by, None, 0, delta, fresh)
    rules = rules or [land.choose(near)]
    found = [subjects_of(numbered(land.goal), rule, land.columns) for rule in rules]
    parts = []
    for j, asked in enumerate(land.asked):
        quantities = [subjects[j][0] for subjects in found]
        if not all(q.exact for q in quantities):
            return _inexact(asked)
        parts.append(tuple(parts_of(quantities, asked.op, land.columns.size, delta)))
    merit = [-np.inf if r.value is None else land.goal.sign * r.value for r in rules]
    return Outlook(land.goal, land.asked, tuple(parts), np.array(merit), rules, power)


def _inexact(asked: Asked) -> str:
    return f"{asked.metric} has no exact bound, so that nothing proves it"


def _along(land: Along, nearby: Goal, delta: float, power: float) -> Outlook | str:
    """Thresholds; some dozen of them where a constraint is no pure rate."""
    claims = pure_claims(numbered(land.goal), land.columns)
    caps = tuple(a.cap for a in asked_of(nearby))
    places = _looks(land, caps) if None in claims else spread_over(land.sweep.size, PLACES)
    size = land.columns.size
    curves = smoothed(land, places)
    parts: list[tuple[Part, ...]] = []
    for j, claim in enumerate(claims):
        if claim is not None:
            counted = counted_along(claim, land.sweep, places, size, delta)
            if curves is not None and len(counted) == 1:
                counted = [replace(counted[0], curves=curves[j])]
            parts.append(tuple(counted))
            continue
        around = _around(land, j, places, delta)
        if around is not None and curves is not None:
            worse = np.minimum if around.op == ">=" else np.maximum
            around = replace(around, value=worse(around.value, curves[j].mean(0)))
        if around is None:
            return _inexact(land.asked[j])
        parts.append((around,))
    thresholds = land.sweep.thresholds[places]
    return Outlook(land.goal, land.asked, tuple(parts), land.merit[places], thresholds, power)


def _around(land: Along, j: int, places: np.ndarray, delta: float) -> Around | None:
    """A constraint at some thresholds: its value on all rows, how far its bound lies on some."""
    asked, some = land.asked[j], _some(land.columns)
    goal = numbered(Goal(land.goal.sense, land.goal.objective, (asked.constraint,)))
    problem = Problem.ground(goal, land.columns)
    away = []
    for place in places:
        rule = threshold_rule(problem, land.sweep, int(place))
        ((found, _),) = subjects_of(goal, rule, some)
        if not found.exact:
            return None
        edge = found.lower(delta) if asked.op == ">=" else found.upper(delta)
        away.append(np.inf if found.value is None else abs(found.value - edge))
    here = np.maximum(away, 1e-12) * math.sqrt(some.size / land.columns.size)
    value = asked.sign * land.excess[j][places]
    return Around(asked.op, value, here, land.columns.size, delta)


def _some(columns: Columns) -> Columns:
    """Some of the rows, of both classes."""
    if columns.size <= MOST_ROWS:
        return columns
    rows = np.random.default_rng(0).choice(columns.size, MOST_ROWS, replace=False)
    part = columns.take(np.sort(rows))
    return part if 0 < np.count_nonzero(part.actual) < part.size else columns


def _looks(land: Along, caps: tuple[float, ...]) -> np.ndarray:
    """Thresholds here and there, and on the way from where the bounds are kept best to the goal."""
    tight = (land.tightest(j, caps) for j in range(len(caps)))
    ends = [int(spot.point) for spot in (land.best(caps), *tight) if spot is not None]  # type: ignore[arg-type]
    way = np.linspace(min(ends), max(ends), LOOKS // 2) if ends else np.zeros(0)
    return np.union1d(spread_over(land.sweep.size, LOOKS // 2), np.round(way).astype(np.int64))
