"""Interval arithmetic: which values an expression can take at all."""

from __future__ import annotations

import math

Interval = tuple[float, float]
WHOLE: Interval = (-math.inf, math.inf)
UNIT: Interval = (0.0, 1.0)
NONNEGATIVE: Interval = (0.0, math.inf)


def add(a: Interval, b: Interval) -> Interval:
    """Sums of an element of ``a`` and one of ``b``."""
    return a[0] + b[0], a[1] + b[1]


def multiply(a: Interval, b: Interval) -> Interval:
    """Products of an element of ``a`` and one of ``b``, with 0 · ∞ = 0 at the ends."""
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def power(a: Interval, exponent: float) -> Interval:
    """Powers of an element of ``a``, for ``a`` without negative numbers; else the whole line."""
    if a[0] < 0 or exponent < 0:
        return WHOLE
    return a[0] ** exponent, a[1] ** exponent


def absolute(a: Interval) -> Interval:
    """Absolute values of the elements of ``a``."""
    low = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def hull(*intervals: Interval) -> Interval:
    """The smallest interval around all of them."""
    return min(a for a, _ in intervals), max(b for _, b in intervals)
