"""How many labelled rows a proof takes.

For a pure rate the power of n rows is exact: with k* the least k of n that is proof,

    power(n) = P(Bin(n, p) >= k*)

For other quantities the bound is taken to close in on the value as 1/√n.
"""

from __future__ import annotations

import math

import numpy as np

from setpoint._core import scipy_special as special
from setpoint.decisions.quantities.quantity import ConstantQuantity, Extreme, Quantity
from setpoint.decisions.quantities.rate import Rate
from setpoint.statistics import binomial as bounds

POWER = 0.8
MOST = 1e7  #: rows beyond which a plan is no plan


def rows_needed(
    quantity: Quantity, op: str, bound: float, delta: float, size: int, power: float = POWER
) -> int | None:
    """Fresh rows, drawn like these, that prove ``quantity op bound``; None where none would.

    Parameters
    ----------
    quantity : Quantity
        On some rows; its value is taken to be the truth.
    op : {">=", "<="}
    bound : float
    delta : float
        1 − confidence.
    size : int
        How many rows it was measured on.
    power : float
        The probability that they prove it.
    """
    value = quantity.value
    if isinstance(quantity, ConstantQuantity) or value is None or not quantity.exact or size == 0:
        return None
    if (value <= bound) if op == ">=" else (value >= bound):
        return None
    if isinstance(quantity, Extreme) and (op == ">=") == (quantity.sign > 0):
        each = [
            rows_needed(item, op, bound, delta, size, power)
            for item in quantity.items
            if not isinstance(item, ConstantQuantity)
        ]
        return None if any(n is None for n in each) else max(n for n in each if n is not None)
    if isinstance(quantity, Rate) and quantity.pure:
        return _for_rate(quantity, op, bound, delta, size, power)
    edge = quantity.lower(delta) if op == ">=" else quantity.upper(delta)
    if not math.isfinite(edge) or edge == value:
        return None
    reach = abs(value - edge) * (1 + special.ndtri(power) / _z(delta))
    rows = size * (reach / abs(value - bound)) ** 2
    if isinstance(quantity, Rate):  # bets take a while to learn how far rows vary
        rows *= 1 + 6 / math.sqrt(max(rows * quantity.n / size, 1.0))
    return math.ceil(rows) if rows <= MOST else None


def _for_rate(r: Rate, op: str, bound: float, delta: float, size: int, power: float) -> int | None:
    if r.k is None or r.n == 0:
        return None
    share, floor = r.k / r.n, float(r.claim.share(bound))
    if op == "<=":
        share, floor = 1 - share, 1 - floor
    if share <= floor:
        return None
    n = least_rows(share, floor, delta, power)
    return None if n is None or n * size / r.n > MOST else math.ceil(n * size / r.n)


def power_at(
    quantity: Quantity, op: str, bound: float, delta: float, size: int, rows: int
) -> float:
    """The probability that so many fresh rows prove ``quantity op bound``.

    The truth is not taken to be the value itself: for a pure rate the power is averaged over
    Beta(k + ½, n − k + ½), which keeps a rate seen on few rows from looking sure.

    Parameters
    ----------
    quantity : Quantity
        On ``size`` rows.
    op, bound, delta
        As for :func:`rows_needed`.
    rows : int
    """
    value = quantity.value
    if isinstance(quantity, ConstantQuantity):
        return float(quantity.proves(op, bound, delta))
    if value is None or not quantity.exact or size == 0:
        return 0.0
    if isinstance(quantity, Extreme) and (op == ">=") == (quantity.sign > 0):
        return min(power_at(item, op, bound, delta, size, rows) for item in quantity.items)
    if isinstance(quantity, Rate) and quantity.pure:
        return _rate_power(quantity, op, bound, delta, rows / size)
    edge = quantity.lower(delta) if op == ">=" else quantity.upper(delta)
    room = value - bound if op == ">=" else bound - value
    if not math.isfinite(edge):
        return 0.0
    here = max(abs(value - edge), 1e-12)
    there = here * math.sqrt(size / rows)
    spread = math.hypot(here, there) / _z(delta)
    return float(special.ndtr((room - there) / spread))


def bound_at(
    quantity: Quantity, op: str, delta: float, size: int, rows: int, power: float = POWER
) -> float | None:
    """The tightest bound that so many fresh rows would prove with the power, at the value seen."""
    value = quantity.value
    if isinstance(quantity, ConstantQuantity) or value is None or not quantity.exact or size == 0:
        return None
    if isinstance(quantity, Extreme) and (op == ">=") == (quantity.sign > 0):
        varying = [item for item in quantity.items if not isinstance(item, ConstantQuantity)]
        each = [bound_at(item, op, delta, size, rows, power) for item in varying]
        known = [b for b in each if b is not None]
        if len(known) < len(each):
            return None
        return min(known) if op == ">=" else max(known)
    if isinstance(quantity, Rate) and quantity.pure:
        return _rate_bound(quantity, op, delta, rows / size, power)
    edge = quantity.lower(delta) if op == ">=" else quantity.upper(delta)
    if not math.isfinite(edge):
        return None
    reach = (edge - value) * (1 + special.ndtri(power) / _z(delta))
    return float(value + reach * math.sqrt(size / rows))


def _z(delta: float) -> float:
    """The normal quantile of 1 − δ, kept from 0."""
    return max(float(special.ndtri(1 - delta)), 0.1)


def _rate_bound(r: Rate, op: str, delta: float, scale: float, power: float) -> float:
    """With k* of n at the 1 − power quantile, the bound that k* of n proves."""
    n = math.floor(r.n * scale)
    share = (r.k or 0) / max(r.n, 1)
    if op == "<=":
        k = n - _low_count(n, 1 - share, power)
        return float(r.claim.at(bounds.upper(k, n, delta))) if n else r.span[1]
    k = _low_count(n, share, power)
    return float(r.claim.at(bounds.lower(k, n, delta))) if n else r.span[0]


def _low_count(n: int, share: float, power: float) -> int:
    """The greatest k with P(Bin(n, share) >= k) >= power."""
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        if bounds.p_above(middle, n, share) >= power:
            low = middle
        else:
            high = middle - 1
    return low


_QUANTILES = (np.arange(15) + 0.5) / 15


def _rate_power(r: Rate, op: str, bound: float, delta: float, scale: float) -> float:
    k, n, floor = float(r.k or 0), float(r.n), float(r.claim.share(bound))
    if op == "<=":
        k, floor = n - k, 1 - floor
    rates = special.betaincinv(k + 0.5, n - k + 0.5, _QUANTILES)
    expected = n * scale
    sizes = np.unique(
        np.maximum(np.round(expected + np.sqrt(expected) * np.array([-1.2, 0, 1.2])), 0)
    )
    return float(np.mean([bounds.power(m, rates, floor, delta) for m in sizes]))


def least_rows(share: float, floor: float, delta: float, power: float = POWER) -> int | None:
    """The least n from which on n rows prove "rate >= floor" with the power, at that true share.

    Examples
    --------
    >>> least_rows(0.9, 0.8, 0.05)
    94
    """
    if not 0 < floor < 1 or share <= floor:
        return None if share <= floor else 1
    high = 1.0
    while bounds.power(np.ceil(high), share, floor, delta) < power:
        high *= 1.3
        if high > MOST:
            return None
    high = math.ceil(high * 1.3)
    # power goes up and down with n in small teeth: the last n that lacks it, and one more
    low = max(1, int(high / 2.5))
    grid = (
        np.arange(low, high + 1)
        if high - low < 4000
        else np.unique(np.linspace(low, high, 4000).astype(int))
    )
    lacking = grid[bounds.power(grid, share, floor, delta) < power]
    return int(grid[0]) if lacking.size == 0 else int(lacking[-1]) + 1
