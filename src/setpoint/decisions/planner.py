"""How many labelled rows a proof takes.

For a pure rate the power of n rows is exact: with k* the least k of n that is proof,

    power(n) = P(Bin(n, p) >= k*)

For other quantities the bound is taken to close in on the value as 1/√n.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from setpoint.decisions import bounds
from setpoint.decisions.quantities import Constant, Extreme, Quantity
from setpoint.decisions.rates import Rate

POWER = 0.8
MOST = 1e9  #: rows beyond which a plan is no plan


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
    if isinstance(quantity, Constant) or value is None or not quantity.exact or size == 0:
        return None
    if (value <= bound) if op == ">=" else (value >= bound):
        return None
    if isinstance(quantity, Extreme) and (op == ">=") == (quantity.sign > 0):
        each = [
            rows_needed(item, op, bound, delta, size, power)
            for item in quantity.items
            if not isinstance(item, Constant)
        ]
        return None if any(n is None for n in each) else max(n for n in each if n is not None)
    if isinstance(quantity, Rate) and quantity.pure:
        return _for_rate(quantity, op, bound, delta, size, power)
    edge = quantity.lower(delta) if op == ">=" else quantity.upper(delta)
    if not math.isfinite(edge) or edge == value:
        return None
    reach = abs(value - edge) * (1 + special.ndtri(power) / special.ndtri(1 - delta))
    rows = size * (reach / abs(value - bound)) ** 2
    return math.ceil(rows) if rows <= MOST else None


def _for_rate(r: Rate, op: str, bound: float, delta: float, size: int, power: float) -> int | None:
    if r.k is None or r.n == 0:
        return None
    share, floor = r.k / r.n, float(r.share(bound))
    if op == "<=":
        share, floor = 1 - share, 1 - floor
    if share <= floor:
        return None
    n = least_rows(share, floor, delta, power)
    return None if n is None else math.ceil(n * size / r.n)


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
