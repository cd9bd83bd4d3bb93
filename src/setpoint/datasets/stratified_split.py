"""Two ways to cut rows in two: by class (whole ids at a time), or by time.

Both know the class code of every row, and hold each cut to having enough rows of two classes (of
one, where there is only one) on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from setpoint.datasets._dealing import deal

HELD = 0.25  #: share of the rows held where there is one fold
PROOF = 2  #: rows of a class without which rows to certify are of no use

Folds = tuple[tuple[np.ndarray, np.ndarray], ...]


class Parting(Protocol):
    """A way to cut rows; rows are sorted indices into the table."""

    @property
    def how(self) -> str:
        """End of the sentence "… parted by class"."""
        ...

    def certify(self, rows: np.ndarray, share: float) -> np.ndarray:
        """The rows to keep; none where a side would have too few."""
        ...

    def folds(self, rows: np.ndarray, many: int) -> Folds:
        """At most so many folds, each with rows enough; none where that cannot be."""
        ...


@dataclass(frozen=True, eq=False)
class ByClass:
    """Each part has its share of each class; the rows of one id stay together.

    Attributes
    ----------
    codes : numpy.ndarray of int, shape (n,)
        The class of each row, 0 … c − 1.
    least : int
        Rows that a fold needs of two classes, to fit and to hold.
    seed : int
    ids : numpy.ndarray of int, shape (n,), optional
    """

    codes: np.ndarray
    least: int
    seed: int
    ids: np.ndarray | None = None

    @property
    def how(self) -> str:
        whole = "" if self.ids is None else ", rows of one id together"
        return f"parted by class{whole} (seed {self.seed})"

    def certify(self, rows: np.ndarray, share: float) -> np.ndarray:
        rng = np.random.default_rng([self.seed, 0])
        counts, kinds, group = self._groups(rows)
        kept = deal(counts, kinds, np.array([share, 1 - share]), rng) == 0
        self._top_up(kept, counts, kinds, PROOF, 2 * self.least, rng)
        chosen = kept[group]
        return _kept(self.codes, rows[chosen], rows[~chosen], self.least)

    def folds(self, rows: np.ndarray, many: int) -> Folds:
        rng = np.random.default_rng([self.seed, 1])
        counts, kinds, group = self._groups(rows)
        if many == 1:
            held = deal(counts, kinds, np.array([HELD, 1 - HELD]), rng) == 0
            self._top_up(held, counts, kinds, self.least, self.least, rng)
            return self._fold(rows, group, np.where(held, 0, 1), [0])
        for number in range(min(many, len(kinds)), 1, -1):
            part = deal(counts, kinds, np.full(number, 1 / number), rng)
            folds = self._fold(rows, group, part, list(range(number)))
            if folds:
                return folds
        return ()

    def _top_up(
        self,
        taken: np.ndarray,
        counts: np.ndarray,
        kinds: np.ndarray,
        wanted: int,
        left: int,
        rng: np.random.Generator,
    ) -> None:
        """Take more groups of a rare class, the smallest first, where enough rows are left."""
        have = np.bincount(kinds[taken], minlength=len(counts)) @ counts
        rows_of = np.bincount(kinds, minlength=len(counts)) @ counts
        for code in np.flatnonzero((have < wanted) & (rows_of >= wanted + left)):
            able = rng.permutation(np.flatnonzero(~taken & (counts[kinds, code] > 0)))
            for k in able[np.argsort(counts.sum(1)[kinds[able]], kind="stable")]:
                if have[code] < wanted:
                    taken[k] = True
                    have += counts[kinds[k]]

    def _groups(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of each class in each kind of group (s, c), the kinds (g,), the group of a row."""
        codes = self.codes[rows]
        if self.ids is None:
            return np.eye(int(self.codes.max()) + 1, dtype=int), codes, np.arange(len(rows))
        ids, group = np.unique(self.ids[rows], return_inverse=True)
        width = int(self.codes.max()) + 1
        cells = np.bincount(group * width + codes, minlength=len(ids) * width)
        counts, kinds = np.unique(cells.reshape(-1, width), axis=0, return_inverse=True)
        return counts, kinds.reshape(-1), group

    def _fold(
        self, rows: np.ndarray, group: np.ndarray, part: np.ndarray, held: list[int]
    ) -> Folds:
        """The folds that hold the parts ``held``; none if one has too few rows."""
        codes, width = self.codes[rows], int(self.codes.max()) + 1
        part = part.copy()
        for k in held:
            # A model cannot answer with a class that it never saw: such ids are only fitted on.
            seen = np.bincount(codes[part[group] != k], minlength=width) > 0
            part[np.unique(group[(part[group] == k) & ~seen[codes]])] = -1
        of = part[group]
        folds = tuple((rows[of != k], rows[of == k]) for k in held)
        return folds if all(_able(self.codes, *fold, self.least) for fold in folds) else ()


@dataclass(frozen=True, eq=False)
class ByTime:
    """The latest rows certify, each fold holds later rows than it fits; equal times stay together.

    Attributes
    ----------
    codes : numpy.ndarray of int, shape (n,)
    least : int
    time : numpy.ndarray of int, shape (n,)
        Ranks of the times, equal for equal times.
    """

    codes: np.ndarray
    least: int
    time: np.ndarray

    @property
    def how(self) -> str:
        return "parted by time, the latest rows last"

    def certify(self, rows: np.ndarray, share: float) -> np.ndarray:
        last = self._cut(rows, 1 - share)
        late = self.time[rows] > last
        return _kept(self.codes, rows[late], rows[~late], self.least)

    def folds(self, rows: np.ndarray, many: int) -> Folds:
        for number in range(many, 1, -1):
            cuts = [self._cut(rows, k / (number + 1)) for k in range(1, number + 1)]
            folds = self._fold(rows, [*cuts, int(self.time[rows].max())])
            if folds:
                return folds
        for share in (1 - HELD, 0.5):
            folds = self._fold(rows, [self._cut(rows, share), int(self.time[rows].max())])
            if folds:
                return folds
        return ()

    def _cut(self, rows: np.ndarray, share: float) -> int:
        """The time at or before which the share of rows nearest to ``share`` lies."""
        times, many = np.unique(self.time[rows], return_counts=True)
        before = np.cumsum(many)[:-1]
        if not len(before):
            return int(times[0])
        return int(times[np.argmin(np.abs(before - share * len(rows)))])

    def _fold(self, rows: np.ndarray, cuts: list[int]) -> Folds:
        time = self.time[rows]
        folds = tuple(
            (rows[time <= start], rows[(time > start) & (time <= stop)])
            for start, stop in pairwise(cuts)
        )
        return folds if all(_able(self.codes, *fold, self.least) for fold in folds) else ()


def _able(
    codes: np.ndarray, fit: np.ndarray, held: np.ndarray, least: int, held_least: int = 0
) -> bool:
    """Whether two classes (one, where there is one) have rows enough on both sides."""
    width = int(codes.max()) + 1
    fitted, tried = (np.bincount(codes[rows], minlength=width) for rows in (fit, held))
    return int(((fitted >= least) & (tried >= (held_least or least))).sum()) >= min(2, width)


def _kept(codes: np.ndarray, kept: np.ndarray, rest: np.ndarray, least: int) -> np.ndarray:
    """``kept``, or none of it where it proves nothing or the rest is too small for two folds."""
    return kept if _able(codes, rest, kept, 2 * least, PROOF) else kept[:0]
