"""What fresh rows would prove, at each of some candidate rules.

Rows already labelled do not fix the truth. Of a pure rate, with k of n here and n' fresh rows that
will have a say, it is drawn from Beta(k + ½, n − k + ½), and

    power(b)   = mean over the truth p of P(Bin(n', p) >= k*),   k* the least proof of "rate >= b"
    reach      = the bound that k proves, k the greatest with mean P(Bin(n', p) >= k) >= power

Other quantities are taken as normal around their value, with bounds that close in as 1/√n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from setpoint._core import scipy_special as special
from setpoint.decisions.quantities.from_expression import ConstraintClaim
from setpoint.decisions.quantities.quantity import Quantity
from setpoint.decisions.quantities.rate import Rate, RateClaim
from setpoint.expressions import Columns, Sweep
from setpoint.statistics import binomial as bounds

_QUANTILES = ((np.arange(15) + 0.5) / 15)[:, None]


class ProspectPart(Protocol):
    """One quantity that has to keep a bound, at each candidate."""

    def power(self, bound: float, rows: float) -> np.ndarray:
        """The probability that so many fresh rows prove the bound."""
        ...

    def as_seen(self, bound: float, rows: float) -> np.ndarray:
        """The same, if the truth is what was seen."""
        ...

    def reach(self, rows: float, power: float) -> np.ndarray:
        """The tightest bound that so many fresh rows prove with the power."""
        ...


@dataclass(frozen=True, eq=False)
class Counted:
    """A pure rate: k of n rows at each candidate, of ``size`` rows in all.

    With ``curves``, values of the rate in other draws (draws, candidates), both those and k of n
    must have the power.
    """

    rate: RateClaim
    op: str
    k: np.ndarray
    n: np.ndarray
    size: int
    delta: float
    curves: np.ndarray | None = None

    @cached_property
    def _right(self) -> np.ndarray:
        """Rows that speak for the bound."""
        return np.clip(self.k if self.op == ">=" else self.n - self.k, 0, self.n)

    @cached_property
    def _truths(self) -> list[np.ndarray]:
        """Shares that speak for the bound, as the rows leave them open: (draws, candidates)."""
        right = self._right
        found = [special.betaincinv(right + 0.5, self.n - right + 0.5, _QUANTILES)]
        if self.curves is not None:
            known = np.isfinite(self.curves)
            share = self.rate.share(np.where(known, self.curves, 0.0))
            found.append(np.where(known, share if self.op == ">=" else 1 - share, 0.0))
        return found

    def _fresh(self, rows: float) -> np.ndarray:
        """Fresh rows that will have a say, one standard deviation short of what is expected."""
        share = np.clip(self.n / self.size, 0.0, 1.0)
        expected = rows * share
        return np.floor(np.maximum(expected - np.sqrt(expected * (1 - share)), 0.0) + 1e-9)

    def _least(self, bound: float, n: np.ndarray) -> np.ndarray:
        """The least number of rows that is proof."""
        share = float(self.rate.share(bound))
        return bounds.least_proof(n, share if self.op == ">=" else 1 - share, self.delta)

    def _likely(self, k: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The probability of k of n or more."""
        return np.minimum.reduce([bounds.p_above(k, n, t).mean(0) for t in self._truths])

    def power(self, bound: float, rows: float) -> np.ndarray:
        n = self._fresh(rows)
        return self._likely(self._least(bound, n), n)

    def as_seen(self, bound: float, rows: float) -> np.ndarray:
        n = self._fresh(rows)
        share = (self._right + 0.5) / (self.n + 1)
        if self.curves is not None:
            share = np.minimum(share, self._truths[-1].mean(0))
        return bounds.p_above(self._least(bound, n), n, share)

    def reach(self, rows: float, power: float) -> np.ndarray:
        n = self._fresh(rows)
        low, high = np.zeros_like(n), n.copy()
        while (low < high).any():
            middle = np.ceil((low + high) / 2)
            enough = self._likely(middle, n) >= power
            low, high = np.where(enough, middle, low), np.where(enough, high, middle - 1)
            high = np.maximum(low, high)
        share = bounds.lower(low, n, self.delta)
        found = self.rate.at(share if self.op == ">=" else 1 - share)
        worst = -np.inf if self.op == ">=" else np.inf
        return np.where(low > 0, found, worst)


@dataclass(frozen=True, eq=False)
class Around:
    """Any other quantity: its value and how far its bound lies from it, at each candidate."""

    op: str
    value: np.ndarray
    here: np.ndarray
    size: int
    delta: float

    @property
    def _z(self) -> float:
        return max(float(special.ndtri(1 - self.delta)), 0.1)

    def _widths(self, rows: float) -> tuple[np.ndarray, np.ndarray]:
        there = self.here * math.sqrt(self.size / rows)
        return there, np.hypot(self.here, there) / self._z

    def power(self, bound: float, rows: float) -> np.ndarray:
        there, spread = self._widths(rows)
        room = self.value - bound if self.op == ">=" else bound - self.value
        with np.errstate(invalid="ignore"):
            found = special.ndtr((room - there) / spread)
        return np.where(np.isfinite(self.here) & np.isfinite(self.value), found, 0.0)

    def as_seen(self, bound: float, rows: float) -> np.ndarray:
        there = self.here * math.sqrt(self.size / rows)
        room = self.value - bound if self.op == ">=" else bound - self.value
        with np.errstate(invalid="ignore"):
            found = special.ndtr((room - there) / (there / self._z))
        return np.where(np.isfinite(self.here) & np.isfinite(self.value), found, 0.0)

    def reach(self, rows: float, power: float) -> np.ndarray:
        there, spread = self._widths(rows)
        away = there + float(special.ndtri(power)) * spread
        sign = 1 if self.op == ">=" else -1
        found = self.value - sign * away
        return np.where(np.isfinite(found), found, -sign * np.inf)


def counted_along(
    claim: ConstraintClaim, sweep: Sweep, places: np.ndarray, size: int, delta: float
) -> list[Counted]:
    """The pure rates of one constraint along a threshold."""
    parts: list[Counted] = []
    for rate in claim.pure_rates:
        k, n = (np.round(np.broadcast_to(x, places.shape)) for x in rate.along(sweep, places))
        parts.append(Counted(rate=rate, op=claim.op, k=k, n=n, size=size, delta=delta))
    return parts


def parts_of(
    claim: ConstraintClaim, decided: Sequence[Columns], delta: float
) -> list[ProspectPart]:
    """What has to keep the bound of a constraint, on rows as each candidate decides them."""
    parts = claim.parts or (claim.claim,)
    return [
        _part([part.on(columns) for columns in decided], claim.op, decided[0].size, delta)
        for part in parts
    ]


def _part(each: list[Quantity], op: str, size: int, delta: float) -> ProspectPart:
    """One part at each candidate."""
    rates = [q for q in each if isinstance(q, Rate) and q.pure]
    if len(rates) == len(each):
        k = np.array([float(r.k or 0) for r in rates])
        n = np.array([float(r.n) for r in rates])
        return Counted(rate=rates[0].claim, op=op, k=k, n=n, size=size, delta=delta)
    value = np.array([np.nan if q.value is None else q.value for q in each])
    edge = np.array([q.lower(delta) if op == ">=" else q.upper(delta) for q in each])
    here = np.maximum(np.abs(value - edge), 1e-12)
    return Around(op=op, value=value, here=here, size=size, delta=delta)
