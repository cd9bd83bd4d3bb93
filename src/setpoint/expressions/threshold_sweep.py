"""Totals at every threshold, from one sort.

Rows are decided positive when score >= threshold. With the scores in descending order every total
is a cumulative sum, read off at the last row of each block of ties; the first candidate is +inf
(decide nothing). The same rows with other weights need no other sort.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from setpoint._core.errors import GoalError
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import ACTUAL, CORRECT, DECIDED, KEPT, Event, Literal
from setpoint.expressions.totals import Total

_POSITIVE = Event(frozenset([Literal(ACTUAL)]))


class Sweep:
    """The candidates of one threshold over binary columns.

    Attributes
    ----------
    thresholds : numpy.ndarray of shape (m + 1,)
        +inf, then the distinct scores, descending.
    size : int
        m + 1.
    """

    def __init__(self, columns: Columns) -> None:
        columns = columns.on_host()
        scores = np.asarray(columns.scores)
        self._columns = columns
        self._order = np.argsort(scores)[::-1]
        ranked = scores[self._order]
        last = np.empty(ranked.size, bool)  # last row of its block of ties
        last[-1] = True
        np.not_equal(ranked[1:], ranked[:-1], out=last[:-1])
        self._ends = None if last.all() else np.flatnonzero(last)
        ranked = ranked if self._ends is None else ranked[self._ends]
        self.thresholds = np.concatenate([np.array([np.inf], ranked.dtype), ranked])
        self.size = self.thresholds.size
        self._ranked: dict[Event, np.ndarray | None] = {}
        self._forget_totals()

    def _forget_totals(self) -> None:
        self._sums: dict[Event, np.ndarray] = {}
        self._rests: dict[Event, np.ndarray] = {}
        self._all: dict[Event, float] = {}

    def weighted(self, weight: np.ndarray | None) -> Sweep:
        """The sweep of the same rows with other weights: order and memberships are shared."""
        other = copy.copy(self)
        other._columns = replace(self._columns, weight=weight)
        other._forget_totals()
        return other

    def state(self, leaf: Total, start: int, stop: int) -> np.ndarray | float:
        """The total at candidates ``start:stop``; a float where no decision enters."""
        return self.at(leaf, slice(start, stop))

    def at(self, leaf: Total, where: slice | np.ndarray) -> np.ndarray | float:
        """The total at any candidates."""
        if not isinstance(leaf, Total):
            raise GoalError(f'"{leaf}" does not follow from a threshold')
        positive = self._columns.classes[1]
        sides = {(x.value in (None, positive)) == x.holds for x in leaf.event.about(DECIDED)}
        rest = leaf.event.without(DECIDED, CORRECT, KEPT)
        for literal in leaf.event.about(CORRECT):
            # correct = (decided and actual) or neither; its negation swaps the two
            hit = Event(rest.literals | {Literal(ACTUAL, holds=literal.holds)})
            miss = Event(rest.literals | {Literal(ACTUAL, holds=not literal.holds)})
            return self._decided(hit, where) + self._left(miss, where)
        if sides == {True}:
            return self._decided(rest, where)
        if sides == {False}:
            return self._left(rest, where)
        return 0.0 if sides else self._total(rest)

    def _decided(self, event: Event, where: slice | np.ndarray) -> np.ndarray:
        """Total of the event among the decided rows."""
        negative = Literal(ACTUAL, holds=False)
        # Counts can be subtracted; of weights a difference would leave a speck where 0 belongs.
        if self._columns.weight is None and negative in event.literals:
            rest = Event(event.literals - {negative})
            return self._decided(rest, where) - self._decided(rest & _POSITIVE, where)
        if not event.literals and self._columns.weight is None and self._ends is None:
            # one more row at each candidate
            if isinstance(where, slice):
                return np.arange(where.start, where.stop, dtype=np.float64)
            return where.astype(np.float64)
        if event not in self._sums:
            self._sums[event] = self._cumulate(event)
        return self._sums[event][where].astype(np.float64, copy=False)

    def _left(self, event: Event, where: slice | np.ndarray) -> np.ndarray:
        """Total of the event among the rows not decided."""
        if self._columns.weight is None:
            return self._total(event) - self._decided(event, where)
        if event not in self._rests:  # summed from the other end, for the same reason
            self._rests[event] = self._cumulate(event, backwards=True)
        return self._rests[event][where]

    def _total(self, event: Event) -> float:
        if event not in self._all:
            self._all[event] = float(self._decided(event, slice(self.size - 1, self.size))[0])
        return self._all[event]

    def _cumulate(self, event: Event, backwards: bool = False) -> np.ndarray:
        """Sums over the rows decided at each candidate; backwards, over the rows left."""
        if event not in self._ranked:
            member = self._columns.membership(event)
            self._ranked[event] = None if member is None else member[self._order]
        member, weight = self._ranked[event], self._columns.weight
        count = np.int32 if self._order.size < 2**31 else np.int64
        if member is None and weight is None:
            ends = np.arange(self._order.size) if self._ends is None else self._ends
            return np.concatenate([[0], ends + 1]).astype(count)
        ranked = weight if weight is None else weight[self._order]
        parts = [x for x in (member, ranked) if x is not None]
        amounts = parts[0] if len(parts) == 1 else parts[0] * parts[1]
        sums = np.empty(self.size, count if amounts.dtype == bool else np.float64)
        if backwards:
            sums[-1] = 0
            tail = np.cumsum(amounts[::-1])[::-1]
            sums[:-1] = tail if self._ends is None else tail[np.r_[0, self._ends[:-1] + 1]]
            return sums
        sums[0] = 0
        if self._ends is None:
            np.cumsum(amounts, out=sums[1:])
        else:
            sums[1:] = np.cumsum(amounts, dtype=sums.dtype)[self._ends]
        return sums
