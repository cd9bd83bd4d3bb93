"""Abstaining: rules that leave some rows undecided, searched by the same scan as thresholds.

Binary: a band (low, high), positive where score >= high, negative where score < low. Every total is
a sum over the rows above and one over the rows below,

    Total(q ∧ kept) = Total(q ∧ score >= high) + Total(q ∧ score < low)

Several classes: the class with the highest score, where the confidence in it is high enough; with
the rows in order of confidence every total is a cumulative sum.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from setpoint._core.arrays import Array, to_numpy
from setpoint._core.errors import Argument, KindError, Spelling
from setpoint._core.json_codec import number_from, number_to
from setpoint._core.words import listing
from setpoint.expressions import Columns, Sweep, Task, Total, take_scores
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
from setpoint.goals import Goal
from setpoint.rules.confidence_scores import (
    CONFIDENCES,
    confidence,
    from_probabilities,
    head_norms,
)
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import judged
from setpoint.rules.rule import BestRule, Rule, RuleSearch, as_array_of, beyond, is_cut
from setpoint.rules.tradeoff_curve import spread_over

CUTS = 1500  #: places at which a band may begin or end; all of them where there are not more


@dataclass(frozen=True, kw_only=True)
class Abstention(Rule):
    """A rule that leaves some rows undecided: a band of scores, or a threshold on a confidence."""

    kind: ClassVar[str] = "abstain"
    tasks: ClassVar[tuple[str, ...]] = ("binary", "multiclass")
    may_abstain: ClassVar[bool] = True
    takes_by: ClassVar[bool] = True
    takes_head: ClassVar[bool] = True

    @classmethod
    def asked_by(cls, goal: Goal) -> bool:
        """Whether the goal counts rows by whether they are decided at all."""
        parts = (goal.objective, *(side for c in goal.constraints for side in c.sides))
        leaves = (leaf for part in parts for leaf in part.normal().leaves())
        return any(isinstance(leaf, Total) and leaf.event.about(KEPT) for leaf in leaves)

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The best band of a binary task, the best threshold on a confidence of classes."""
        # so that what is not defined where rows abstain is refused
        columns = replace(columns, abstained=np.zeros(columns.size, bool))
        problem = GoalOnRows.meet(goal, columns, abstaining=True)
        if columns.task.kind != "binary":
            return tune_sure(problem, Selector.make(columns, options.by, options.head))
        if options.by is not None:
            raise KindError(
                "{argument}: a binary rule abstains in a band of scores; leave {by} out",
                argument=Argument("by", options.by),
                by=Argument("by"),
            )
        if options.head is not None:
            raise KindError("a binary rule abstains in a band of scores; leave head= out")
        return tune_band(problem)

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> Abstention:
        """Read what :meth:`numbers` wrote."""
        if task.kind == "binary":
            return ScoreBand(task=task, band=tuple(number_from(t) for t in data["band"]))
        return ConfidenceThreshold(
            task=task,
            threshold=number_from(data["threshold"]),
            confidence=data["confidence"],
            norms=tuple(data["norms"]),
        )

    @abstractmethod
    def split(self, s: Array) -> tuple[Array, Array]:
        """(decisions as if every row were decided, where nothing is decided)."""

    def decided_columns(self, columns: Columns) -> Columns:
        """The same rows, decided, and where nothing is."""
        decided, abstained = self.split(np.asarray(columns.scores))
        return replace(columns, decided=decided, abstained=abstained)

    def abstains(self, scores: Any) -> Array:
        """True for each row on which nothing is decided."""
        return self.split(take_scores(self.task, scores, tuned=True))[1]


@final
@dataclass(frozen=True, kw_only=True)
class ScoreBand(Abstention):
    """Of a binary task: positive where score >= high, negative where score < low.

    Attributes
    ----------
    band : tuple of two floats
        (low, high); nothing is decided between.
    """

    band: tuple[float, ...]

    def is_sound(self) -> bool:
        """Whether the band has two ends, in order."""
        both = len(self.band) == 2 and all(map(is_cut, self.band))
        return both and self.band[0] <= self.band[1]

    def split(self, s: Array) -> tuple[Array, Array]:
        """(decisions as if every row were decided, where nothing is decided)."""
        low, high = self.band
        return s >= high, (s >= low) & (s < high)

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """1, 0, and −1 where nothing is decided."""
        del group, query
        decided, abstained = map(to_numpy, self.split(s))
        return as_array_of(np.where(abstained, -1, decided).astype(np.int8), s)

    def describe(self) -> str:
        """The band in words."""
        low, high = self.band
        positive = "nowhere" if high == math.inf else f"where score >= {high:.6g}"
        negative = "everywhere" if low == math.inf else f"where score < {low:.6g}"
        return f"positive {positive}, negative {negative}"

    def cuts(self) -> tuple[float, ...]:
        """Both ends of the band."""
        return self.band

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """How far each score lies beyond the upper end of the band."""
        del group
        return beyond(scores, self.band[1], scores >= self.band[1])

    def numbers(self) -> dict[str, Any]:
        """The band."""
        return {"band": [number_to(t) for t in self.band]}


@final
@dataclass(frozen=True, kw_only=True)
class ConfidenceThreshold(Abstention):
    """Of several classes: the one with the highest score, where the confidence is high enough.

    Attributes
    ----------
    threshold : float
        Decide where the confidence >= threshold.
    confidence : str
        A name of ``CONFIDENCES``.
    norms : tuple of float
        Of the rows of the last layer, for the confidence "rl_geo_m".
    """

    threshold: float
    confidence: str
    norms: tuple[float, ...] = ()

    def is_sound(self) -> bool:
        """Whether the confidence is known, and each class has a norm where it takes norms."""
        if self.confidence not in CONFIDENCES or not is_cut(self.threshold):
            return False
        needs_head = CONFIDENCES[self.confidence].needs_head
        norms = len(self.task.classes or ()) if needs_head else 0
        return len(self.norms) == norms and all(is_cut(n) and n > 0 for n in self.norms)

    def split(self, s: Array) -> tuple[Array, Array]:
        """(the class of each row by its place, where nothing is decided)."""
        z = logits_of(self.task, s)
        sure, index = confidence(self.confidence, z, list(self.norms) or None)
        return index, sure < self.threshold

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """The class of each row, None where nothing is decided."""
        del group, query
        index, abstained = map(to_numpy, self.split(s))
        classes = np.array([*(self.task.classes or ()), None], dtype=object)
        return classes[np.where(abstained, -1, index)]

    def describe(self) -> str:
        """The threshold in words."""
        odds = ""
        if self.confidence == "sr_max":  # kept as a logit, so that nothing saturates
            odds = f" (a probability of {1 / (1 + np.exp(-self.threshold)):.4g})"
        return f"argmax of scores where {self.confidence} >= {self.threshold:.6g}{odds}"

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """The scores, (n, K): the largest of a row is decided, where any is."""
        del group
        return scores

    def search_again(self) -> RuleSearch:
        """Thresholds on the same confidence."""
        return RuleSearch(rule=Abstention, by=self.confidence, head=list(self.norms) or None)

    def numbers(self) -> dict[str, Any]:
        """The threshold, the confidence, and the norms that go with it."""
        return {
            "threshold": number_to(self.threshold),
            "confidence": self.confidence,
            "norms": list(self.norms),
        }


def logits_of(task: Task, scores: Any) -> Any:
    """Scores of classes as logits: the logarithms of probabilities, others as they are."""
    return from_probabilities(scores) if task.score == "probability" else scores


# --- candidates -----------------------------------------------------------------------------------


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
        about_correct = event.about(CORRECT)
        if about_correct:
            (literal,) = about_correct
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


def tune_band(problem: GoalOnRows) -> BestRule:
    """The best band of a binary task."""
    bands = Bands(problem.columns)
    best = judged(problem, bands)
    how = "exact" if bands.exact else f"bands between {bands.cuts.size:,} of the scores"
    rule = ScoreBand(task=problem.columns.task, band=bands.band(best.index))
    return problem.best(rule, best.point, best.held, search=how)


def tune_sure(problem: GoalOnRows, selector: Selector) -> BestRule:
    """The best threshold on the confidence of a multiclass task."""
    sure, index = selector(problem.columns)
    problem = replace(problem, columns=replace(problem.columns, decided=index))
    candidates = Sure(problem.columns, sure)
    best = judged(problem, candidates)
    rule = ConfidenceThreshold(
        task=problem.columns.task,
        threshold=float(candidates.thresholds[best.index]),
        confidence=selector.name,
        norms=selector.norms,
    )
    return problem.best(rule, best.point, best.held)
