"""Exact tests and bounds for a rate: k of n rows, each right with the same unknown probability.

    reject "rate <= p"   if  P(Bin(n, p) >= k) <= δ
    reject "rate >= p"   if  P(Bin(n, p) <= k) <= δ

Turned round they give the bounds of Clopper & Pearson (1934), which are quantiles of beta
distributions. Everything is exact given n, at any n; nothing is approximated by a normal law.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core import scipy_special as special
from setpoint._core.errors import DataError, Name
from setpoint._core.options import is_real


def check_confidence(confidence: Any) -> float:
    """δ = 1 − confidence, for a confidence from ½ to below 1."""
    if not is_real(confidence) or not 0.5 <= confidence < 1:
        hint = f"; did you mean {confidence / 100:g}?" if _percent(confidence) else ""
        raise DataError(
            "{argument} is a number from 0.5 to below 1; got {confidence!r}{hint}",
            argument=Name("confidence"),
            confidence=confidence,
            hint=hint,
        )
    return 1.0 - float(confidence)


def _percent(x: Any) -> bool:
    return is_real(x) and 50 <= x < 100


def p_above(k: Any, n: Any, p: Any) -> Any:
    """P(Bin(n, p) >= k): small where k of n is evidence that the rate is above p.

    Examples
    --------
    >>> round(float(p_above(9, 10, 0.5)), 6)
    0.010742
    """
    k, n, p = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float), np.asarray(p, float))
    inner = special.betainc(np.maximum(k, 1), np.maximum(n - k + 1, 1e-300), np.clip(p, 0, 1))
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, inner))[()]


def p_below(k: Any, n: Any, p: Any) -> Any:
    """P(Bin(n, p) <= k): small where k of n is evidence that the rate is below p."""
    return p_above(np.asarray(n) - k, n, 1 - np.asarray(p, float))


def lower(k: Any, n: Any, delta: float) -> Any:
    """The rate is at least this, with error at most δ; 0 where k is 0.

    Of weighted rows k and n need not be whole.

    Examples
    --------
    >>> round(float(lower(59, 59, 0.05)), 4)
    0.9505
    """
    k, n = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float))
    some = k > 1e-12  # a share times a number of rows can miss 0 by rounding
    inner = special.betaincinv(np.where(some, k, 1.0), np.maximum(n - k, 0) + 1, delta)
    return np.where(some, inner, 0.0)[()]


def upper(k: Any, n: Any, delta: float) -> Any:
    """The rate is at most this, with error at most δ; 1 where k is n."""
    return 1 - lower(np.asarray(n) - k, n, delta)


def interval(k: Any, n: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Both ends, each with error at most δ/2.

    Examples
    --------
    >>> [round(float(x), 4) for x in interval(8, 10)]
    [0.4439, 0.9748]
    """
    half = check_confidence(confidence) / 2
    return lower(k, n, half), upper(k, n, half)


def power(n: Any, rate: Any, floor: float, delta: float) -> Any:
    """The probability that n rows prove "rate >= floor" where the rate is what is given.

    With k* the least k that is proof, P(Bin(n, rate) >= k*).
    """
    n = np.asarray(n, float)
    return p_above(least_proof(n, floor, delta), n, rate)


def least_proof(n: Any, floor: float, delta: float) -> Any:
    """The least k of n that proves "rate >= floor"; n + 1 where none does."""
    n = np.asarray(n, float)
    low, high = np.zeros_like(n), n + 1
    for _ in range(64):
        middle = np.floor((low + high) / 2)
        proof = p_above(middle, n, floor) <= delta
        high = np.where(proof & (low < high), middle, high)
        low = np.where(~proof & (low < high), middle + 1, low)
        if (low >= high).all():
            break
    return high
