"""The nearest goal that could be proven on fresh rows, and how many rows the goal itself takes.

The goal is provable where some candidate has the power for every constraint; if none has, the
bounds give way to what the candidate that lacks least could prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.json_codec import Record
from setpoint.decisions.proof.margin_path import (
    claims_before,
    margin_path,
    unweighted_decisions,
)
from setpoint.decisions.proof.power import MOST
from setpoint.decisions.proof.testing_order import threshold_claims
from setpoint.decisions.quantities.row_states import ROWS
from setpoint.decisions.sensitivity.proof_prospects import (
    Around,
    Counted,
    ProspectPart,
    counted_along,
    parts_of,
)
from setpoint.decisions.sensitivity.value_function import Along, Searched
from setpoint.expressions import Columns
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.goals.constraint_bound import ConstraintBound, asked_of, moved, numbered
from setpoint.rules.decision_rule import DecisionRule
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import score_at_least
from setpoint.rules.tradeoff_curve import spread_over
from setpoint.statistics.score_calibration import drawn_curves


@dataclass(frozen=True)
class Provable(Record):
    """A goal that fresh rows would prove with the power.

    Attributes
    ----------
    goal : Goal
        As asked, where that can be proven; else with bounds that can.
    as_asked : bool
    rows : int
        Fresh rows.
    value : float
        The objective of the rule below, on these rows.
    point : str
        The rule, in words.
    threshold : float or None
        Its threshold, where it has one.
    """

    goal: Goal
    as_asked: bool
    rows: int
    value: float
    point: str
    threshold: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; the goal stands as text."""
        return {**super().to_json(), "goal": str(self.goal)}


@dataclass(frozen=True)
class LabelsNeeded(Record):
    """How many fresh labelled rows would prove a goal.

    Attributes
    ----------
    goal : Goal
    rows : int or None
        With the power asked for; None where no number can be named.
    of_them : int or None
        How many of those would have a say.
    who : str
        Who has a say: "positives", "rows decided positive", …
    value : float or None
        The objective that could be had with them, on these rows: at least halfway from the worst
        there is to the best within the bounds.
    if_as_seen : bool
        These rows leave it open whether it holds at all: the number counts on the truth being what
        was seen.
    """

    goal: Goal
    rows: int | None
    of_them: int | None
    who: str
    value: float | None
    if_as_seen: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; the goal stands as text."""
        return {**super().to_json(), "goal": str(self.goal)}


@dataclass(frozen=True, eq=False)
class Outlook:
    """Candidate rules, and what fresh rows would prove of each.

    ``parts`` holds, per constraint, what has to keep its bound; ``merit`` is that of each
    candidate, −inf where the objective is empty.
    """

    goal: Goal
    asked: tuple[ConstraintBound, ...]
    parts: tuple[tuple[ProspectPart, ...], ...]
    merit: np.ndarray
    rules: Sequence[DecisionRule] | np.ndarray
    power: float

    @property
    def each(self) -> float:
        """The power of each constraint that gives all of them together the one asked for."""
        return 1 - (1 - self.power) / len(self.asked)

    def powers(self, caps: Sequence[float], rows: float, as_seen: bool = False) -> np.ndarray:
        """The least power over the constraints, at each candidate."""
        least = np.where(self.merit > -np.inf, 1.0, 0.0)
        for asked, parts, cap in zip(self.asked, self.parts, caps, strict=True):
            for part in parts:
                power = part.as_seen if as_seen else part.power
                least = np.minimum(least, power(asked.sign * cap, rows))
        return least

    def excess(self, rows: float) -> list[np.ndarray]:
        """Per constraint, the tightest cap that is proven at each candidate."""
        return [
            np.maximum.reduce([a.sign * part.reach(rows, self.each) for part in parts])
            for a, parts in zip(self.asked, self.parts, strict=True)
        ]

    def words(self, i: int) -> tuple[str, float | None]:
        """The rule of a candidate in words, and its threshold."""
        if isinstance(self.rules, np.ndarray):
            threshold = float(self.rules[i])
            return score_at_least(threshold), threshold
        rule = self.rules[i]
        threshold = rule.threshold if rule.point.along_scores else None
        return rule.operating_point(), threshold

    # --- answers -----------------------------------------------------------------------------

    def provable(self, rows: int) -> Provable | None:
        """The nearest goal that so many fresh rows prove; None where nothing can be."""
        caps = tuple(a.cap for a in self.asked)
        able = self.powers(caps, rows) >= self.each
        if able.any():
            return self._provable(caps, able, rows, as_asked=True)
        excess = self.excess(rows)
        trios = zip(excess, caps, self.asked, strict=True)
        lacking = np.maximum.reduce([a.lacking(e, cap) for e, cap, a in trios])
        lacking = np.where(self.merit > -np.inf, lacking, np.inf)
        nearest = int(np.argmin(lacking))
        if not math.isfinite(lacking[nearest]):
            return None
        wide = tuple(
            cap if e[nearest] <= cap else a.sign * a.outward(float(e[nearest]))
            for e, cap, a in zip(excess, caps, self.asked, strict=True)
        )
        able = self.merit > -np.inf
        for e, cap, a in zip(excess, wide, self.asked, strict=True):
            able &= e <= cap + a.slack(cap)
        if not able.any() or all(_empty(a, cap) for a, cap in zip(self.asked, wide, strict=True)):
            return None
        return self._provable(wide, able, rows, as_asked=False)

    def _provable(
        self, caps: tuple[float, ...], able: np.ndarray, rows: int, as_asked: bool
    ) -> Provable:
        best = int(np.argmax(np.where(able, self.merit, -np.inf)))
        goal = self.goal if as_asked else moved(self.goal, self.asked, caps)
        value = self.goal.sign * float(self.merit[best])
        return Provable(goal, as_asked, rows, value, *self.words(best))

    def labels(self, caps: Sequence[float], worth: float, fresh: int) -> LabelsNeeded:
        """The least number of fresh rows that would prove the goal at these caps.

        With a merit of at least ``worth``: to decide nothing would keep most caps.
        """
        goal = moved(self.goal, self.asked, tuple(caps))
        rows, as_seen = self._least(caps, worth, as_seen=False), False
        if rows is None:
            rows, as_seen = self._least(caps, worth, as_seen=True), True
            if rows is None or rows <= fresh:  # what is open cannot be sure with fewer rows
                return LabelsNeeded(goal, None, None, ROWS, None)
        able = self._able(caps, rows, worth, as_seen)
        best = int(np.argmax(np.where(able, self.merit, -np.inf)))
        of_them, who = self._say(best, rows)
        value = self.goal.sign * float(self.merit[best])
        return LabelsNeeded(goal, rows, of_them, who, value, as_seen)

    def _able(self, caps: Sequence[float], rows: float, worth: float, as_seen: bool) -> np.ndarray:
        return (self.powers(caps, rows, as_seen) >= self.each) & (self.merit >= worth - SLACK)

    def _least(self, caps: Sequence[float], worth: float, as_seen: bool) -> int | None:
        """By bisection; the power of few rows goes up and down in small teeth."""

        def enough(rows: float) -> bool:
            return bool(self._able(caps, rows, worth, as_seen).any())

        low, high = 1.0, MOST
        if not enough(high):
            return None
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        rows = _told(high)
        for _ in range(20):
            if enough(rows):
                break
            rows = _told(1.01 * rows + 1)
        return rows

    def _say(self, i: int, rows: int) -> tuple[int | None, str]:
        counted = [p for p in self.parts[0] if isinstance(p, Counted)]
        if len(self.parts) != 1 or len(self.parts[0]) != 1 or not counted:
            return None, ROWS
        part = counted[0]
        return round(rows * float(part.n[i]) / part.size), part.rate.who


def _told(rows: float) -> int:
    """Two digits, rounded up: a plan is no more exact."""
    unit = 10 ** max(0, math.floor(math.log10(max(rows, 1.0))) - 1)
    return math.ceil(rows / unit) * unit


def _empty(asked: ConstraintBound, cap: float) -> bool:
    """Whether a bound asks for nothing."""
    low, high = asked.span
    return asked.sign * cap <= low if asked.op == ">=" else asked.sign * cap >= high


# What a goal reads along the threshold if P(positive | score) is a smooth curve.
#
# The best of many thresholds owes some of its merit to chance: at the top of the ranking a rate is
# made of few rows, and the highest of them all is too high. A curve through all rows
# (statistics/score_calibration), drawn from its posterior, does not follow single rows: in place of
# its label each row counts p as a positive and 1 − p as a negative, summed up between one threshold
# and the next.


DRAWS = 32
ROWS_OF_A_CURVE = 8000  #: rows that the curve is drawn through
ROWS_PER_GAP = 16  #: rows that stand for those between two thresholds


def smoothed(land: Along, places: np.ndarray) -> list[np.ndarray] | None:
    """Per constraint its metric at some candidates (the first among them), (draws, candidates).

    None where the goal speaks of groups: the curve is that of all rows.
    """
    if land.goal.columns:
        return None
    thresholds = land.sweep.thresholds[places].astype(np.float64)
    ranked = np.sort(np.asarray(land.columns.scores, np.float64))[::-1]
    ends = np.r_[np.searchsorted(-ranked, -thresholds[1:], side="right"), ranked.size]
    counts = np.diff(np.r_[0, ends])
    within = (np.arange(ROWS_PER_GAP) + 0.5) / ROWS_PER_GAP
    ranks = np.minimum(ends - counts + np.floor(np.outer(within, counts)), ranked.size - 1)
    standing = ranked[ranks.astype(np.int64)]  # (ROWS_PER_GAP, thresholds)
    some = land.columns.sample(ROWS_OF_A_CURVE)
    sampled = np.asarray(some.scores, np.float64)
    order = np.argsort(sampled, kind="stable")
    scores = np.r_[thresholds[1:], ranked[-1] - 1.0]  # what lies below the last is below all
    metrics: list[list[np.ndarray]] = [[] for _ in land.asked]
    drawn: Along | None = None
    for curve in drawn_curves(some, DRAWS):
        share = np.interp(standing, sampled[order], curve[order]).mean(0)
        counted = _counted(land.columns, scores, counts * share, counts)
        drawn = Along(land.goal, counted, like=drawn)
        for j, asked in enumerate(land.asked):
            metrics[j].append(asked.sign * drawn.excess[j][: places.size])
    return [np.array(values) for values in metrics]


def _counted(
    columns: Columns, scores: np.ndarray, positive: np.ndarray, counts: np.ndarray
) -> Columns:
    """Two rows for each score: so many positives, and the rest."""
    return Columns(
        columns.task,
        np.repeat([True, False], scores.size),
        scores=np.tile(scores, 2),
        weight=np.maximum(np.r_[positive, counts - positive], 0.0),
    )


# The candidates of a proof: thresholds along the rows, or rules with a margin of other kinds.


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
    kind = land.search.rule
    if kind.no_proof:
        return f"{kind.no_proof}, so a {kind.kind} rule proves nothing"
    near = numbered(nearby)
    rules = margin_path(near, land.columns, land.search, delta, fresh)
    rules = rules or [land.choose(near)]
    decided = [unweighted_decisions(rule, land.columns) for rule in rules]
    claims = claims_before(numbered(land.goal), rules[0].point, decided[0])
    for asked, claim in zip(land.asked, claims, strict=True):
        if not claim.claim.exact:
            return _inexact(asked)
    parts = [tuple(parts_of(claim, decided, delta)) for claim in claims]
    merit = [-np.inf if r.value is None else land.goal.sign * r.value for r in rules]
    return Outlook(land.goal, land.asked, tuple(parts), np.array(merit), rules, power)


def _inexact(asked: ConstraintBound) -> str:
    return f"{asked.metric} has no exact bound, so that nothing proves it"


def _along(land: Along, nearby: Goal, delta: float, power: float) -> Outlook | str:
    """Thresholds; some dozen of them where a constraint is no pure rate."""
    claims = threshold_claims(numbered(land.goal), land.columns)
    caps = tuple(a.cap for a in asked_of(nearby))
    pure = all(claim.pure_rates for claim in claims)
    places = spread_over(land.sweep.size, PLACES) if pure else _looks(land, caps)
    size = land.columns.size
    curves = smoothed(land, places)
    parts: list[tuple[ProspectPart, ...]] = []
    for j, claim in enumerate(claims):
        if claim.pure_rates:
            counted = counted_along(claim, land.sweep, places, size, delta)
            if curves is not None and len(counted) == 1:
                counted = [replace(counted[0], curves=curves[j])]
            parts.append(tuple(counted))
            continue
        if not claim.claim.exact:
            return _inexact(land.asked[j])
        around = _around(land, j, places, delta)
        if curves is not None:
            worse = np.minimum if around.op == ">=" else np.maximum
            around = replace(around, value=worse(around.value, curves[j].mean(0)))
        parts.append((around,))
    thresholds = land.sweep.thresholds[places]
    return Outlook(land.goal, land.asked, tuple(parts), land.merit[places], thresholds, power)


def _around(land: Along, j: int, places: np.ndarray, delta: float) -> Around:
    """A constraint at some thresholds: its value on all rows, how far its bound lies on some."""
    asked = land.asked[j]
    some = land.columns.sample(MOST_ROWS)
    goal = numbered(Goal(land.goal.sense, land.goal.objective, (asked.constraint,)))
    (claim,) = threshold_claims(goal, some)
    away = []
    for threshold in land.sweep.thresholds[places]:
        rule = OneThreshold(task=land.columns.task, threshold=float(threshold))
        quantity = claim.on(unweighted_decisions(rule, some))
        edge = quantity.lower(delta) if asked.op == ">=" else quantity.upper(delta)
        away.append(np.inf if quantity.value is None else abs(quantity.value - edge))
    here = np.maximum(away, 1e-12) * math.sqrt(some.size / land.columns.size)
    value = asked.sign * land.excess[j][places]
    return Around(op=asked.op, value=value, here=here, size=land.columns.size, delta=delta)


def _looks(land: Along, caps: tuple[float, ...]) -> np.ndarray:
    """Thresholds here and there, and on the way from where the bounds are kept best to the goal."""
    tight = (land.tightest(j, caps) for j in range(len(caps)))
    ends = [int(spot.point) for spot in (land.best(caps), *tight) if spot is not None]  # type: ignore[arg-type]
    way = np.linspace(min(ends), max(ends), LOOKS // 2) if ends else np.zeros(0)
    return np.union1d(spread_over(land.sweep.size, LOOKS // 2), np.round(way).astype(np.int64))
