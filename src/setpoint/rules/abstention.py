"""Abstaining: rules that leave some rows undecided, searched by the same scan as thresholds.

Binary: a band (low, high), positive where score >= high, negative where score < low. Every total is
a sum over the rows above and one over the rows below,

    Total(q ∧ kept) = Total(q ∧ score >= high) + Total(q ∧ score < low)

Several classes: the class with the highest score, where the confidence in it is high enough; with
the rows in order of confidence every total is a cumulative sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.errors import Argument, KindError, Spelling
from setpoint._core.words import listing
from setpoint.expressions import Columns, Sweep, Total
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    CORRECT,
    DECIDED,
    KEPT,
    Event,
    Literal,
    decided,
    not_decided,
)
from setpoint.rules.confidence_scores import CONFIDENCES, confidence, head_norms
from setpoint.rules.decision_rule import DecisionRule
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import judged
from setpoint.rules.rule import logits_of
from setpoint.rules.tradeoff_curve import spread_over

CUTS = 1500  #: places at which a band may begin or end; all of them where there are not more


class Bands:
    """Candidates: all bands between two cut points of binary columns."""

    def __init__(self, columns: Columns) -> None:
        self._sweep = Sweep(columns)
        self._positive = columns.classes[1]
        self.cuts = spread_over(self._sweep.size, CUTS)
        high, low = np.triu_indices(self.cuts.size)  # thresholds fall, so high comes first
        self.high, self.low = self.cuts[high], self.cuts[low]
        self.size = self.high.size

    @property
    def exact(self) -> bool:
        """Whether every score is a cut point."""
        return self.cuts.size == self._sweep.size

    def band(self, index: int) -> tuple[float, float]:
        """(low, high) of a candidate."""
        thresholds = self._sweep.thresholds
        return float(thresholds[self.low[index]]), float(thresholds[self.high[index]])

    def state(self, leaf: Total, start: int, stop: int) -> Any:
        """The total at candidates ``start:stop``."""
        event = leaf.event
        rest = event.without(DECIDED, CORRECT, KEPT)
        said = event.about(CORRECT)
        if said:
            (literal,) = said
            hit = rest & _is(ACTUAL, literal.holds)
            miss = rest & _is(ACTUAL, not literal.holds)
            return self._above(hit, start, stop) + self._below(miss, start, stop)
        sides = {(x.value in (None, self._positive)) == x.holds for x in event.about(DECIDED)}
        if sides == {True}:
            return self._above(rest, start, stop)
        if sides == {False}:
            return self._below(rest, start, stop)
        if sides:
            return 0.0
        if event.about(KEPT):
            return self._above(rest, start, stop) + self._below(rest, start, stop)
        return self._sweep.at(leaf, slice(0, 1))

    def _above(self, event: Event, start: int, stop: int) -> Any:
        return self._sweep.at(Total(event & decided), self.high[start:stop])

    def _below(self, event: Event, start: int, stop: int) -> Any:
        return self._sweep.at(Total(event & not_decided), self.low[start:stop])


def _is(column: str, holds: bool) -> Event:
    return Event(frozenset([Literal(column, holds=holds)]))


class Sure:
    """Candidates: decide the rows whose confidence is at least a threshold."""

    def __init__(self, columns: Columns, sure: np.ndarray) -> None:
        self._columns = replace(columns, abstained=None)
        self._order = np.argsort(-sure, kind="stable")
        ranked = sure[self._order]
        self._ends = np.flatnonzero(np.r_[ranked[1:] != ranked[:-1], True])
        self.thresholds = np.r_[np.inf, ranked[self._ends]]
        self.size = self.thresholds.size
        self._sums: dict[Event, np.ndarray] = {}

    def state(self, leaf: Total, start: int, stop: int) -> Any:
        """The total at candidates ``start:stop``."""
        if leaf.threshold_free():
            return leaf.measure(self._columns)
        event = leaf.event.without(KEPT)
        if event not in self._sums:
            member, weight = self._columns.membership(event), self._columns.weight
            amount = np.ones(self._columns.size) if member is None else np.asarray(member, float)
            amount = amount if weight is None else amount * weight
            self._sums[event] = np.r_[0.0, np.cumsum(amount[self._order])[self._ends]]
        return self._sums[event][start:stop]


@dataclass(frozen=True, eq=False)
class Selector:
    """What an abstaining rule over classes goes by."""

    name: str
    norms: tuple[float, ...] = ()

    @classmethod
    def make(cls, columns: Columns, by: str | None, head: Any) -> Selector:
        """The confidence asked for; softmax scores need logits or probabilities."""
        usual = "rl_conf_m" if columns.task.score == "raw" else "sr_max"
        name = usual if by is None else by
        if not isinstance(name, str):
            raise KindError(
                "{argument} names a confidence, one of {known}; got {by!r}",
                argument=Argument("by"),
                known=listing(CONFIDENCES),
                by=by,
            )
        if name.startswith("sr_") and name in CONFIDENCES and columns.task.score == "raw":
            raise KindError(
                "{argument} takes a softmax, and these scores are declared raw; {way}, or go by "
                '"rl_conf_m"',
                argument=Argument("by", name),
                way=Spelling(
                    'declare them, Task.multiclass(classes, score="logit")',
                    "say --score-kind logit",
                ),
            )
        if head is None:
            return cls(name)
        return cls(name, tuple(head_norms(head, len(columns.classes)).tolist()))

    def __call__(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """Confidence and class index of each row."""
        z = logits_of(columns.task, columns.scores)
        sure, index = confidence(self.name, z, list(self.norms) or None)
        return np.asarray(sure), np.asarray(index)


def tune_band(problem: GoalOnRows) -> DecisionRule:
    """The best band of a binary task."""
    bands = Bands(problem.columns)
    found = judged(problem, bands)
    cuts = f"bands between {bands.cuts.size:,} of the scores"
    parts = {"band": bands.band(found.index), "search": "exact" if bands.exact else cuts}
    return problem.rule("abstain", found.point, found.held, **parts)


def tune_sure(problem: GoalOnRows, selector: Selector) -> DecisionRule:
    """The best threshold on the confidence of a multiclass task."""
    sure, index = selector(problem.columns)
    problem = replace(problem, columns=replace(problem.columns, decided=index))
    candidates = Sure(problem.columns, sure)
    found = judged(problem, candidates)
    threshold = float(candidates.thresholds[found.index])
    parts = {"threshold": threshold, "confidence": selector.name, "norms": selector.norms}
    return problem.rule("abstain", found.point, found.held, **parts)
