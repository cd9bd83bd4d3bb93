"""One input column as it will be encoded: a number, or a category. Frozen, found once by fitting.

A number x becomes z = (g((x − centre) / scale) − mean) / sd, where g has the tails of ``TAILS``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setpoint.datasets.columns.cell_values import Levels

TAILS = ("robust", "plain")
KNEE = 3.0  #: from here on, in robust units, the tails are logarithmic
LIMIT = 1e4  #: no encoded number is larger, in standard deviations
_NORMAL_IQR = 1.3489795003921634  #: interquartile range of the standard normal


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    Attributes
    ----------
    name : str
    centre, scale : float
        Median and interquartile range / 1.349 ("robust"), or mean and standard deviation ("plain").
    mean, sd : float
        Of what g makes of them; sd is 0 for a column of one value, which is encoded as 0 always.
    missing : bool
        Whether values were missing when fitted: then a column flags them.
    """

    name: str
    centre: float
    scale: float
    mean: float
    sd: float
    missing: bool

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name, f"{self.name} (missing)") if self.missing else (self.name,)


@dataclass(frozen=True)
class Category:
    """A column of levels.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Those with a column of their own, sorted.
    other, missing : bool
        Whether the other levels share a column, and whether the missing values have one.
    """

    name: str
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that have a column: of two and nothing else, the second says it all."""
        is_binary = len(self.levels) == 2 and not self.other and not self.missing
        return self.levels[1:] if is_binary else self.levels

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        own = [f"{self.name}={level}" for level in self.shown]
        shared = [f"{self.name} (other)"] * self.other + [f"{self.name} (missing)"] * self.missing
        return (*own, *shared)

    def places(self, column: Levels) -> np.ndarray:
        """The encoded column that is 1 in each row, counted from 0; −1 where none is."""
        other = len(self.shown) if self.other else -1
        missing = len(self.shown) + self.other if self.missing else other
        place = {level: -1 for level in self.levels} | {s: k for k, s in enumerate(self.shown)}
        table = [place.get(level, other) for level in column.texts]
        return np.array([*table, missing], dtype=np.intp)[column.codes]


def fit_number(name: str, x: np.ndarray, weights: np.ndarray | None, tails: str) -> NumberColumn:
    """Find centre, scale, mean and sd of finite or missing values, all of positive weight."""
    present = ~np.isnan(x)
    missing = not present.all()
    if missing:
        x = x[present]
        weights = None if weights is None else weights[present]
    if len(x) == 0 or x.min() == x.max():
        return NumberColumn(name, float(x[0]) if len(x) else 0.0, 1.0, 0.0, 0.0, missing)
    # In units of a power of two near the largest: exact, and the squares of 1e300 stay finite.
    exponent = int(np.frexp(np.abs(x).max())[1])
    unit = np.ldexp(x, -exponent)
    mean, sd = _moments(unit, weights)
    centre, scale = mean, sd
    if tails == "robust":
        low, middle, high = _quartiles(unit, weights)
        if high > low:
            centre, scale = middle, (high - low) / _NORMAL_IQR
    scale = math.ldexp(scale, exponent)
    if not scale > 0:  # less than the smallest float: as good as one value
        return NumberColumn(name, float(x[0]), 1.0, 0.0, 0.0, missing)
    centre = math.ldexp(centre, exponent)
    if tails == "plain":
        return NumberColumn(name, centre, scale, 0.0, 1.0, missing)
    bent = bend(ratio(x[:, None], np.array([centre]), np.array([scale])))[:, 0]
    mean, sd = _moments(bent, weights)
    return NumberColumn(name, centre, scale, mean, sd, missing)


def ratio(x: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(x − centre) / scale, shape (n, k); infinite only where no float holds the quotient."""
    with np.errstate(over="ignore", invalid="ignore"):
        r = x - centre
        r /= scale
        lost = np.isinf(r)
        if lost.any():  # the difference may be too large where the quotient is not
            halves = (x / 2 - centre / 2) / scale * 2
            r[lost] = halves[lost]
    return r


def bend(r: np.ndarray) -> np.ndarray:
    """Make the tails logarithmic, in place: g(r) = r for |r| ≤ 3, ±(3 + log(1 + |r| − 3)) beyond.

    Monotone, with a continuous derivative.

    >>> bend(np.array([-2.0, 3.0, 103.0])).round(3)
    array([-2.   ,  3.   ,  7.615])
    """
    size = np.minimum(np.abs(r), np.finfo(np.float64).max)
    far = size > KNEE  # (n, k), False for NaN
    if far.any():
        r[far] = np.copysign(KNEE + np.log1p(size[far] - KNEE), r[far])
    return r


def fit_category(
    name: str, column: Levels, weights: np.ndarray | None, max_levels: int, min_count: float
) -> tuple[Category, tuple[str, ...]]:
    """Choose the levels that get a column of their own; say so where not all of them do."""
    has_level = column.codes >= 0
    codes = column.codes[has_level]
    counts = np.bincount(
        codes, None if weights is None else weights[has_level], minlength=len(column.texts)
    )
    occurs = np.bincount(codes, minlength=len(column.texts)) > 0  # categories may be declared only
    ranked = sorted((-counts[k], column.texts[k]) for k in np.flatnonzero(occurs))
    frequent = [level for count, level in ranked if -count >= min_count]
    levels = tuple(sorted(frequent[:max_levels]))
    category = Category(name, levels, other=len(levels) < len(ranked), missing=not has_level.all())
    return category, _notes(category, len(ranked), len(frequent), min_count)


def _notes(category: Category, many: int, frequent: int, min_count: float) -> tuple[str, ...]:
    where = f'column "{category.name}" has {many:,} levels'
    shared = f'share the column "{category.name} (other)"'
    if frequent == 0 and many > 1:
        return (f"{where}, none of them in {min_count:g} rows: all {shared}.",)
    levels = len(category.levels)
    if frequent > levels:
        return (f"{where}; the {levels} most frequent have their own columns, the rest {shared}.",)
    return ()


def _moments(x: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """Weighted mean and standard deviation, by two passes: the second mends the first."""
    mean = float(np.average(x, weights=weights))
    rest = x - mean
    mean += float(np.average(rest, weights=weights))
    rest = x - mean
    return mean, math.sqrt(float(np.average(rest * rest, weights=weights)))


def _quartiles(x: np.ndarray, weights: np.ndarray | None) -> Sequence[float]:
    """The least values with 1/4, 1/2, 3/4 of the weight at or below them."""
    shares = np.array([0.25, 0.5, 0.75])
    if weights is None:
        places = np.ceil(shares * len(x)).astype(int) - 1
        return np.partition(x, places)[places].tolist()
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    places = np.searchsorted(below, shares * below[-1])
    return x[order[np.minimum(places, len(x) - 1)]].tolist()
