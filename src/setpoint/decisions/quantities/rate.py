"""A rate, certified: a linear-fractional metric N / D as k of n, or as the mean of bounded rows.

With Nᵢ and Dᵢ the shares of row i in the two sums, N / D ≥ c clears to a mean,

    E[N] / E[D] ≥ c   ⇔   E[z] ≥ 0,   z = N − c D        (E[D] > 0)

the same clearing that training uses. Which pairs (N, D) a row can have at all follows from the
events alone, never from the rows seen, so a claim on a rate exists before its rows. Where there are
two pairs (leaving out (0, 0)) the metric is a *pure rate*: it depends only on the share p of rows
with the first of them,

    M(p) = (p N₁ + (1−p) N₂) / (p D₁ + (1−p) D₂)

and p is binomial, exactly. Precision, recall, accuracy are; so are F1 and Jaccard, over the rows
that are not true negatives. Where there are more, or where rows have weights, bets decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions.quantities.row_states import ROWS, states_of, who_has_say
from setpoint.expressions import Columns, Population, Sweep
from setpoint.expressions.fractions import Form
from setpoint.expressions.rows.row_fingerprint import row_marks
from setpoint.statistics import betting_test as betting
from setpoint.statistics import binomial as bounds

_ROUNDS, _POINTS = 5, 17
_LEVELS = np.r_[np.geomspace(1e-12, 1e-3, 40), np.linspace(0.002, 0.5, 60)]


@dataclass(frozen=True, eq=False)
class RateClaim:
    """A linear-fractional metric before its rows: what a row can add to it.

    Parameters
    ----------
    name : str
    top, bottom : Form
        N and D as sums of totals.
    possible : numpy.ndarray of shape (m, 2)
        Every (N, D) that a row can have, (0, 0) aside; sorted by N / D, the greatest first.
    who : str
        The rows that have a say in it, in words.
    weight_bound : float or None
        The largest weight there can be; None where every row counts once.
    """

    name: str
    top: Form
    bottom: Form
    possible: np.ndarray
    who: str = ROWS
    weight_bound: float | None = None

    exact = True

    @property
    def pure(self) -> bool:
        """Whether it is a share of rows, so that binomial tests are exact."""
        return self.weight_bound is None and len(self.possible) <= 2

    @property
    def reach(self) -> float:
        """The most that one row can count."""
        return 1.0 if self.weight_bound is None else self.weight_bound

    @cached_property
    def span(self) -> tuple[float, float]:
        """The values it can take."""
        with np.errstate(divide="ignore"):
            values = self.possible[:, 0] / self.possible[:, 1]
        return float(values.min()), float(values.max())

    def at(self, share: Any) -> Any:
        """M(p), for a pure rate."""
        (n1, d1), (n2, d2) = self._two()
        share = np.asarray(share, float)
        bottom = share * d1 + (1 - share) * d2
        top = share * n1 + (1 - share) * n2
        return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.inf)[()]

    def share(self, value: Any) -> Any:
        """The p at which M(p) is a value, clipped to [0, 1]."""
        (n1, d1), (n2, d2) = self._two()
        value = np.asarray(value, float)
        a, b = n1 - value * d1, n2 - value * d2
        slope = np.where(a - b > 0, a - b, 1.0)
        inner = np.clip(-b / slope, 0.0, 1.0)
        return np.where(a - b > 0, inner, np.where(b < 0, 1.0, 0.0))[()]

    def _two(self) -> tuple[np.ndarray, np.ndarray]:
        return self.possible[0], self.possible[-1]

    # --- rows --------------------------------------------------------------------------------

    def of_each(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """N and D of each row, its weight aside."""
        return shares(self.top, columns), shares(self.bottom, columns)

    def has_say(self, columns: Columns) -> np.ndarray:
        """The rows that N or D counts."""
        n, d = self.of_each(columns)
        return (n != 0) | (d != 0)

    def on(self, columns: Columns) -> Rate:
        """The rate of these rows, which hold decisions."""
        pairs = np.stack(self.of_each(columns), axis=1)
        if self.weight_bound is not None:
            pairs = pairs * columns.weight[:, None]  # type: ignore[index]
        pairs = pairs[pairs.any(1)]
        if self.weight_bound is not None:
            return Rate(self, None, betting.BoundedRows.single(_shuffled(pairs, columns)))
        which = np.full(len(pairs), -1)
        for j, pair in enumerate(self.possible):
            which[(pairs == pair).all(1)] = j
        if which.size and which.min() < 0:
            raise DataError("a row is something that no row can be; its column holds odd values")
        counts = np.bincount(which, minlength=len(self.possible)).astype(float)
        if self.pure:
            return Rate(self, counts, None)
        rows = betting.BoundedRows.counted(self.possible, _shuffled(which, columns))
        return Rate(self, counts, rows)

    def along(self, sweep: Sweep, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, n) of a pure rate at candidates of a sweep.

        N = k N₁ + m N₂ and D = k D₁ + m D₂ with n = k + m.
        """
        top, bottom = (_along(form, sweep, places) for form in (self.top, self.bottom))
        (n1, d1), (n2, d2) = self._two()
        det = n1 * d2 - n2 * d1
        if det == 0:  # every row that has a say is alike
            k = bottom / d1 if d1 else top / n1
            return k, k
        k, m = (top * d2 - n2 * bottom) / det, (n1 * bottom - top * d1) / det
        return k, k + m


def rate_claim(name: str, top: Form, bottom: Form, population: Population) -> RateClaim | None:
    """The claim on N / D, or None where it has no certified reading."""
    if None in top or None in bottom:
        return None  # a count: it grows with the rows, and says nothing of others
    states = states_of([*top, *bottom], population)  # type: ignore[list-item]
    if states is None or (population.weighted and population.weight_bound is None):
        return None
    possible = np.stack([shares(top, states), shares(bottom, states)], axis=1)
    has_say: np.ndarray = possible.any(1)  # type: ignore[assignment]
    if (possible[:, 1] < 0).any() or not has_say.any():
        return None
    distinct = np.unique(possible[has_say], axis=0)
    with np.errstate(divide="ignore"):
        distinct = distinct[np.argsort(-distinct[:, 0] / distinct[:, 1], kind="stable")]
    return RateClaim(
        name=name,
        top=top,
        bottom=bottom,
        possible=distinct,
        who=who_has_say(states, has_say),
        weight_bound=population.weight_bound,
    )


def _along(form: Form, sweep: Sweep, places: np.ndarray) -> np.ndarray:
    whole = np.zeros(places.size)
    for total, coefficient in form.items():
        if total is not None:
            whole = whole + coefficient * sweep.at(total, places)
    return whole


@dataclass(frozen=True, eq=False)
class Rate:
    """A linear-fractional metric on some rows, with what can be said of it on all rows.

    Parameters
    ----------
    claim : RateClaim
    counts : numpy.ndarray of shape (m,) or None
        Rows that have each possible pair; None where rows are weighted.
    rows : betting.BoundedRows or None
        In the order of the bets; None for a pure rate, which needs no order.
    """

    claim: RateClaim
    counts: np.ndarray | None
    rows: betting.BoundedRows | None

    exact = True

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Itself."""
        return (self,)

    @property
    def pure(self) -> bool:
        """Whether it is a share of rows, so that binomial tests are exact."""
        return self.rows is None

    @property
    def span(self) -> tuple[float, float]:
        """The values it can take."""
        return self.claim.span

    @property
    def how(self) -> str:
        """The kind of bound, in words."""
        return "exact binomial" if self.pure else "betting"

    @property
    def k(self) -> int | None:
        """Rows that speak for a high value, where it is a pure rate."""
        return int(self.counts[0]) if self.rows is None and self.counts is not None else None

    @property
    def n(self) -> int:
        """Rows that have a say."""
        return int(self.counts.sum()) if self.rows is None else self.rows.size  # type: ignore[union-attr]

    @property
    def value(self) -> float | None:
        """N / D on these rows; None where D is 0."""
        if self.counts is not None:
            top, bottom = self.counts @ self.claim.possible
        else:
            top, bottom = self.rows.pairs.sum(0)  # type: ignore[union-attr]
        return float(top / bottom) if bottom > 0 else None

    @cached_property
    def likely(self) -> np.ndarray:
        """Values of a pure rate, dense where its p-values move."""
        ends = bounds.lower(self.k, self.n, _LEVELS), bounds.upper(self.k, self.n, _LEVELS)
        return self.claim.at(np.concatenate(ends))

    # --- tests -------------------------------------------------------------------------------

    def p_above(self, value: Any) -> Any:
        """The p-value of "M <= value", for a pure rate: small where M is above."""
        return bounds.p_above(self.k, self.n, self.claim.share(value))

    def p_below(self, value: Any) -> Any:
        """The p-value of "M >= value", for a pure rate: small where M is below."""
        return bounds.p_below(self.k, self.n, self.claim.share(value))

    def proves(self, op: str, bound: float, delta: float) -> bool:
        """Whether the rows prove ``M op bound`` at level δ."""
        if self.n == 0:
            return False
        if self.pure:
            low, high = self.span
            if low == high:
                return low >= bound if op == ">=" else low <= bound
            p = self.p_above(bound) if op == ">=" else self.p_below(bound)
            return bool(p <= delta)
        sign = 1 if op == ">=" else -1
        return bool(self._wins(np.array([bound]), sign, delta)[0])

    def lower(self, delta: float) -> float:
        """M is at least this, with error at most δ."""
        low, high = self.span
        if self.n == 0 or low == high:
            return low
        if self.pure:
            return max(low, float(self.claim.at(bounds.lower(self.k, self.n, delta))))
        return self._edge(low, high, 1, delta)

    def upper(self, delta: float) -> float:
        """M is at most this, with error at most δ."""
        low, high = self.span
        if self.n == 0 or low == high:
            return high
        if self.pure:
            return min(high, float(self.claim.at(bounds.upper(self.k, self.n, delta))))
        return self._edge(high, low, -1, delta)

    def _edge(self, start: float, end: float, sign: int, delta: float) -> float:
        """From the end that is sure towards the other: the last bound before the first unproven."""
        if not np.isfinite(start):
            start = self._sure(sign, delta)
            if not np.isfinite(start):
                return start
        end = end if np.isfinite(end) else self._beyond(start, sign, delta)
        for _ in range(_ROUNDS):
            points = np.linspace(start, end, _POINTS)
            proven = self._wins(points, sign, delta)
            proven[0] = True
            if proven.all():
                return float(end)
            first = int(np.argmin(proven))
            start, end = float(points[first - 1]), float(points[first])
        return start

    def _sure(self, sign: int, delta: float) -> float:
        """A finite value on the sure side that is proven; infinite where there is none."""
        for power in range(0, 60, 2):
            value = -sign * 2.0**power * max(1.0, abs(self.value or 0.0))
            if self._wins(np.array([value]), sign, delta)[0]:
                return value
        return -sign * float("inf")

    def _beyond(self, start: float, sign: int, delta: float) -> float:
        """A value of an unbounded ratio that is surely not proven."""
        step = max(1.0, abs(self.value or 0.0))
        while self._wins(np.array([start + sign * step]), sign, delta)[0]:
            step *= 2
        return start + sign * step

    def _wins(self, points: np.ndarray, sign: int, delta: float) -> np.ndarray:
        possible = self.claim.possible
        z = sign * (possible[:, 0] - np.multiply.outer(points, possible[:, 1]))
        loss = self.claim.reach * np.maximum(-z.min(1), 0.0)
        assert self.rows is not None
        return betting.wins(self.rows, points, sign, loss, delta)


def _shuffled(rows: np.ndarray, columns: Columns) -> np.ndarray:
    """The rows in the order of the bets, which must not depend on what they are.

    Rows that differ in their scores are sorted, then shuffled by a seed drawn from all of them: the
    same order for the same rows, however their file is sorted. Where scores have few values such a
    seed would follow from the counts alone; there the order given is shuffled by a fixed seed,
    unless it is plainly not the order in which rows were drawn.
    """
    marks = row_marks(columns)
    seed = 0
    if np.unique(marks).size > 0.9 * marks.size or _is_sorted(rows):
        seed = int(np.sum(marks, dtype=np.uint64))
        rows = rows[np.lexsort(rows.reshape(len(rows), -1).T)]
    return rows[np.random.default_rng(seed).permutation(len(rows))]


def _is_sorted(rows: np.ndarray) -> bool:
    """Whether equal rows stand together far more than in a random order (Wald–Wolfowitz runs).

    With cⱼ rows of kind j the number of runs has mean (n(n+1) − Σ c²) / n; five standard deviations
    below it are no accident.
    """
    kinds = rows if rows.ndim == 1 else rows[:, 0] > 0
    n = float(len(kinds))
    if n < 20:
        return False
    c = np.unique(kinds, return_counts=True)[1].astype(float)
    squares, cubes = float((c**2).sum()), float((c**3).sum())
    mean = (n * (n + 1) - squares) / n
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1))
    runs = 1 + np.count_nonzero(kinds[1:] != kinds[:-1])
    return variance > 0 and runs < mean - 5 * np.sqrt(variance)


def apart(a: RateClaim, b: RateClaim, population: Population) -> bool:
    """Whether no row can have a say in both, so that they are independent."""
    totals = [total for form in (a.top, a.bottom, b.top, b.bottom) for total in form]
    states = states_of(totals, population)  # type: ignore[arg-type]
    if states is None:
        return False
    return not (a.has_say(states) & b.has_say(states)).any()


def shares(form: Form, columns: Columns) -> np.ndarray:
    """Each row's share in a weighted sum of totals."""
    whole = np.zeros(columns.size)
    for total, coefficient in form.items():
        if total is None:
            continue
        member = columns.membership(total.event)
        whole += coefficient * (1.0 if member is None else np.asarray(member, float))
    return whole
