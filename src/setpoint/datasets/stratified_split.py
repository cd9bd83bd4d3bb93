"""Two ways to cut rows in two: by class (whole ids at a time), or by time.

Both know the class code of every row, and hold each cut to having enough rows of two classes (of
one, where there is only one) on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.options import number

# Dealing groups of rows to parts, so that each part has its share of each class.
#
# Part b, which is to have the share t_b, gets the groups that keep
#
#     Σ_b Σ_c (f_bc / n_c − t_b)² / t_b
#
# small, where f_bc are its rows of class c and n_c all rows of that class. Groups with the same
# rows
# of each class are dealt together: the minimum over real numbers of groups is known in closed form,
# its whole part is dealt at random, the rest one by one. So rows that are groups of their own are
# dealt within one row of t_b n_c, and a million of them take no longer than a sort.


def deal(
    counts: np.ndarray, kinds: np.ndarray, shares: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Deal groups to parts.

    Parameters
    ----------
    counts : numpy.ndarray, shape (s, c)
        Rows of each class in a group of each kind.
    kinds : numpy.ndarray of int, shape (g,)
        The kind of each group.
    shares : numpy.ndarray, shape (b,)
        The share of the rows that each part is to have; positive, of sum 1.
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray of int, shape (g,)
        The part of each group.

    Examples
    --------
    >>> rows = deal(np.eye(2), np.array([0] * 8 + [1] * 4), np.array([0.75, 0.25]),
    ...             np.random.default_rng(0))
    >>> np.bincount(rows[:8]).tolist(), np.bincount(rows[8:]).tolist()
    ([6, 2], [3, 1])
    """
    many = np.bincount(kinds, minlength=len(counts))
    shuffled = rng.permutation(len(kinds))
    shuffled = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    ends = np.cumsum(many)
    rows = many @ counts  # (c,) rows of each class
    relative = counts / np.maximum(rows, 1)  # (s, c)
    sizes = counts.sum(1) / max(rows.sum(), 1)  # (s,)
    filled = np.zeros((len(shares), counts.shape[1]))  # shares of each class dealt, (b, c)
    dealt = np.zeros(len(shares))  # shares of all rows dealt, (b,)
    part = np.empty(len(kinds), dtype=np.intp)
    # The large first: the small ones then level out what those left uneven.
    for kind in np.argsort(-counts.sum(1), kind="stable"):
        if not many[kind]:
            continue
        numbers = _whole(filled, relative[kind], shares, int(many[kind]))
        one = filled + numbers[:, None] * relative[kind]
        open_ = np.ones(len(shares), dtype=bool)
        for _ in range(many[kind] - numbers.sum()):
            cost = (2 * (one - shares[:, None]) * relative[kind]).sum(1)
            cost += 2 * (dealt + numbers * sizes[kind] - shares) * sizes[kind]  # parts of one size
            cost += (relative[kind] ** 2).sum() + sizes[kind] ** 2
            cost = np.where(open_, cost / shares, np.inf)
            tied = np.flatnonzero(cost <= cost.min() + 1e-12)
            chosen = rng.choice(tied)
            numbers[chosen] += 1
            open_[chosen] = False
            one[chosen] += relative[kind]
        members = shuffled[ends[kind] - many[kind] : ends[kind]]
        part[members] = np.repeat(np.arange(len(shares)), numbers)
        filled += numbers[:, None] * relative[kind]
        dealt += numbers * sizes[kind]
    return part


def _whole(filled: np.ndarray, group: np.ndarray, shares: np.ndarray, many: int) -> np.ndarray:
    """The whole part of the best real numbers x_b of groups: x_b = (λ t_b − a_b)₊ / q, Σ x_b = m.

    Here a_b = Σ_c g_c (f_bc − t_b) and q = Σ_c g_c², f and g in shares of each class.
    """
    slope = ((filled - shares[:, None]) * group).sum(1)  # a, (b,)
    curve = float((group**2).sum())
    active = np.ones(len(shares), dtype=bool)
    while True:
        level = (many * curve + slope[active].sum()) / shares[active].sum()
        numbers = np.where(active, (level * shares - slope) / curve, 0.0)
        if (numbers >= -1e-9).all():
            return np.floor(np.maximum(numbers, 0.0) + 1e-9).astype(int)
        active &= numbers > 0


HOLDOUT = 0.25  #: share of the rows that tune where there is one fold
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
        certified = deal(counts, kinds, np.array([share, 1 - share]), rng) == 0
        self._top_up(certified, counts, kinds, PROOF, 2 * self.least, rng)
        chosen = certified[group]
        return _if_provable(self.codes, rows[chosen], rows[~chosen], self.least)

    def folds(self, rows: np.ndarray, many: int) -> Folds:
        rng = np.random.default_rng([self.seed, 1])
        counts, kinds, group = self._groups(rows)
        if many == 1:
            validation = deal(counts, kinds, np.array([HOLDOUT, 1 - HOLDOUT]), rng) == 0
            self._top_up(validation, counts, kinds, self.least, self.least, rng)
            return self._fold(rows, group, np.where(validation, 0, 1), [0])
        for fold_count in range(min(many, len(kinds)), 1, -1):
            part = deal(counts, kinds, np.full(fold_count, 1 / fold_count), rng)
            folds = self._fold(rows, group, part, list(range(fold_count)))
            if folds:
                return folds
        return ()

    def _top_up(
        self,
        in_part: np.ndarray,
        counts: np.ndarray,
        kinds: np.ndarray,
        needed: int,
        left: int,
        rng: np.random.Generator,
    ) -> None:
        """Take more groups of a rare class, the smallest first, where enough rows are left."""
        have = np.bincount(kinds[in_part], minlength=len(counts)) @ counts
        rows_of = np.bincount(kinds, minlength=len(counts)) @ counts
        for code in np.flatnonzero((have < needed) & (rows_of >= needed + left)):
            able = rng.permutation(np.flatnonzero(~in_part & (counts[kinds, code] > 0)))
            for k in able[np.argsort(counts.sum(1)[kinds[able]], kind="stable")]:
                if have[code] < needed:
                    in_part[k] = True
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
        self, rows: np.ndarray, group: np.ndarray, part: np.ndarray, numbers: list[int]
    ) -> Folds:
        """The folds that hold the parts ``numbers``; none if one has too few rows."""
        codes = self.codes[rows]
        width = int(self.codes.max()) + 1
        part = part.copy()
        for k in numbers:
            # A model cannot answer with a class that it never saw: such ids are only fitted on.
            fitted = np.bincount(codes[part[group] != k], minlength=width) > 0
            part[np.unique(group[(part[group] == k) & ~fitted[codes]])] = -1
        of = part[group]
        folds = tuple((rows[of != k], rows[of == k]) for k in numbers)
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
        return _if_provable(self.codes, rows[late], rows[~late], self.least)

    def folds(self, rows: np.ndarray, many: int) -> Folds:
        for fold_count in range(many, 1, -1):
            cuts = [self._cut(rows, k / (fold_count + 1)) for k in range(1, fold_count + 1)]
            folds = self._fold(rows, [*cuts, int(self.time[rows].max())])
            if folds:
                return folds
        for share in (1 - HOLDOUT, 0.5):
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
    codes: np.ndarray,
    fit: np.ndarray,
    validation: np.ndarray,
    least: int,
    validation_least: int = 0,
) -> bool:
    """Whether two classes (one, where there is one) have rows enough on both sides."""
    width = int(codes.max()) + 1
    fitted = np.bincount(codes[fit], minlength=width)
    validated = np.bincount(codes[validation], minlength=width)
    enough = (fitted >= least) & (validated >= (validation_least or least))
    return int(enough.sum()) >= min(2, width)


def _if_provable(
    codes: np.ndarray, certified: np.ndarray, rest: np.ndarray, least: int
) -> np.ndarray:
    """``certified``; none of them if they prove nothing or too few rows are left for two folds."""
    return certified if _able(codes, rest, certified, 2 * least, PROOF) else certified[:0]


# Splits with a job each: train fits weights, tune chooses.


class Split(NamedTuple):
    """Indices of the rows of each job; ``shared`` where the rows were too few to be parted."""

    train: np.ndarray
    tune: np.ndarray
    shared: bool


def split(y: np.ndarray, tune_size: float, seed: int, least: int = 2) -> Split:
    """Part rows by class, so that each job has its share of each.

    Parameters
    ----------
    y : numpy.ndarray
        (n,) classes, or (n, L) of 0 and 1, parted by the rarest label that has rows enough.
    tune_size : float
        Share of the rows for tuning, in (0, 1).
    seed : int
    least : int
        Rows that either job needs of at least two classes; with fewer, both jobs get all rows. A
        rarer class is halved, and one row of its own goes to train.

    Examples
    --------
    >>> parts = split(np.array([0] * 8 + [1] * 4), 0.25, seed=0, least=1)
    >>> len(parts.train), len(parts.tune), parts.shared
    (9, 3, False)
    """
    number("tune_size", tune_size, 0, 1, open_low=True, open_high=True, error=KindError)
    labels = y if y.ndim == 1 else rarest_label(y, 2 * least)
    rng = np.random.default_rng(seed)
    tune: list[np.ndarray] = []
    enough = 0  # labels with rows enough on both sides
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        k = round(tune_size * len(rows))
        if k < least:
            k = min(least, len(rows) // 2)
        enough += k >= least and len(rows) - k >= least
        tune.append(rows[:k])
    if enough < min(2, len(tune)):
        everything = np.arange(len(y))
        return Split(everything, everything, True)
    chosen = np.sort(np.concatenate(tune))
    return Split(np.setdiff1d(np.arange(len(y)), chosen), chosen, False)


def rarest_label(y: np.ndarray, least: int) -> np.ndarray:
    """The rarest label with so many rows of either value; without one, all rows alike."""
    fewer = np.minimum(y.sum(0), len(y) - y.sum(0))
    able = np.flatnonzero(fewer >= least)
    return y[:, able[np.argmin(fewer[able])]] if len(able) else np.zeros(len(y), int)
