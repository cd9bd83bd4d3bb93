"""Multiclass: one offset per class, added before the argmax.

With the other classes held still, class c gains row i once its offset passes

    δᵢ = max_{j≠c} (sᵢⱼ + bⱼ) − sᵢ꜀,

so that sorting δ gives every total at every offset of c: an exact one-dimensional search, repeated
over classes. Small classes overfit (an offset can be bought by one row), so the offsets found are
shrunk by a factor in {0, ¼, ½, ¾, 1} that five-fold cross-fitting chooses; 0 is the plain argmax.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.errors import GoalError
from setpoint.decisions.frontier import spread_over
from setpoint.decisions.problem import Problem
from setpoint.expressions import Columns, Event, Total
from setpoint.expressions.events import CORRECT, DECIDED, KEPT

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0)
FOLDS = 5
ROUNDS = 8
POINTS = 512  # offsets looked at per class and round


class OffsetSweep:
    """The candidates of one class's offset, the others held still."""

    def __init__(self, columns: Columns, offsets: np.ndarray, index: int) -> None:
        scores = np.asarray(columns.scores, np.float64) + offsets
        rival = scores.copy()
        rival[:, index] = -np.inf
        self._others = rival.argmax(1)
        gain = rival.max(1) - (scores[:, index] - offsets[index])
        order = np.argsort(gain)
        ranked = gain[order]
        cuts = np.flatnonzero(np.r_[ranked[1:] != ranked[:-1], True])
        # Between two gains the decisions do not change: take the middle, away from ties.
        edges = np.r_[ranked[0] - 2.0, ranked[cuts], ranked[-1] + 2.0]
        middle = (edges[:-1] + edges[1:]) / 2
        moved = np.r_[0, cuts + 1]
        keep = spread_over(moved.size, POINTS)
        self.offsets = middle[keep]
        self._moved = moved[keep]  # rows that have changed to the class
        self.size = self.offsets.size
        self._order, self._columns, self._index = order, columns, index
        self._cache: dict[Total, np.ndarray] = {}

    def state(self, leaf: Total, start: int, stop: int) -> np.ndarray:
        """The total at candidates ``start:stop``."""
        if leaf not in self._cache:
            self._cache[leaf] = self._curve(leaf)
        return self._cache[leaf][start:stop]

    def _curve(self, leaf: Total) -> np.ndarray:
        """Each row counts before it changes to the class, after it, both or never."""
        rows = self._rows(leaf.event.without(DECIDED, CORRECT, KEPT))
        said = leaf.event.about(DECIDED, CORRECT)
        if len(said) > 1:
            raise GoalError(f'"{leaf}" speaks of two decisions at once')
        if not said:
            return np.full(self.size, rows.sum())
        (literal,) = said
        actual = self._columns.actual
        wanted = actual if literal.column == CORRECT else self._columns.classes.index(literal.value)
        before = (self._others == wanted) == literal.holds
        after = np.broadcast_to((wanted == self._index) == literal.holds, before.shape)
        # Sums of what stays and of what came, each from its own end: no difference, so 0 stays 0.
        stayed = np.r_[np.cumsum((rows * before)[self._order][::-1])[::-1], 0.0]
        came = np.r_[0.0, np.cumsum((rows * after)[self._order])]
        return stayed[self._moved] + came[self._moved]

    def _rows(self, event: Event) -> np.ndarray:
        member, weight = self._columns.membership(event), self._columns.weight
        rows = np.ones(self._columns.size)
        rows = rows if member is None else rows * member
        return rows if weight is None else rows * weight


@dataclass(frozen=True)
class Offsets:
    """Offsets per class and the factor they were shrunk by."""

    values: tuple[float, ...]
    factor: float


def search_offsets(problem: Problem, seed: int = 0) -> Offsets:
    """Offsets by coordinate search, shrunk by cross-fitting."""
    columns = problem.columns
    anchor = np.bincount(columns.actual, minlength=len(columns.classes)).argmax()
    held_out: dict[float, dict[Any, float]] = {factor: {} for factor in FACTORS}
    for rows in _folds(columns.actual, seed):
        inside = replace(problem, columns=columns.take(~rows))
        offsets = climb(inside, int(anchor))
        outside = columns.take(rows)
        for factor, totals in held_out.items():
            decided = decide_classes(outside, factor * offsets)
            for leaf in problem.leaves():
                totals[leaf] = totals.get(leaf, 0.0) + leaf.measure(decided)
    sign = problem.goal.sign
    ranks = {factor: problem.at(totals).rank(sign) for factor, totals in held_out.items()}
    factor = max(FACTORS, key=lambda f: (ranks[f], -f))
    offsets = factor * climb(problem, int(anchor)) if factor else np.zeros(len(columns.classes))
    return Offsets(tuple(offsets.tolist()), factor)


def decide_classes(columns: Columns, offsets: np.ndarray) -> Columns:
    """The columns with the argmax of scores + offsets as decisions."""
    shifted = np.asarray(columns.scores, np.float64) + offsets
    return replace(columns, decided=shifted.argmax(1))


def climb(problem: Problem, anchor: int) -> np.ndarray:
    """Improve one class's offset at a time; the largest class keeps 0."""
    columns = problem.columns
    offsets = np.zeros(len(columns.classes))
    sign = problem.goal.sign
    best = problem.judge(decide_classes(columns, offsets)).rank(sign)
    for _ in range(ROUNDS):
        before = best
        for index in range(offsets.size):
            if index == anchor:
                continue
            sweep = OffsetSweep(columns, offsets, index)
            found = problem.scan(sweep).choose()[0]
            moved = offsets.copy()
            moved[index] = sweep.offsets[found]
            rank = problem.judge(decide_classes(columns, moved)).rank(sign)
            if rank > best:
                offsets, best = moved, rank
        if best <= before:
            break
    return offsets


def _folds(actual: np.ndarray, seed: int) -> list[np.ndarray]:
    """Masks of FOLDS folds, each class spread evenly over them."""
    random = np.random.default_rng(seed)
    order = random.permutation(actual.size)
    fold = np.empty(actual.size, np.int64)
    start = 0
    for label in np.unique(actual):
        rows = order[actual[order] == label]
        fold[rows] = (start + np.arange(rows.size)) % FOLDS
        start += rows.size
    return [fold == f for f in range(FOLDS) if np.any(fold == f) and not np.all(fold == f)]
