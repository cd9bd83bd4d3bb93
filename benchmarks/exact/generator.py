"""Rows that a linear head cannot fit: two kinds of positives, apart in two directions.

    y ~ Bernoulli(share),  x ~ N(0, I);  of the positives some are shifted by 3.2 along x₀, the
    others by 1.6 along x₁;  the negatives' x₁ is scaled by 1.6 (and x₀ by .9 in the small table).

Cross-entropy spreads its weight over both kinds; recall at a high precision is had by giving up
the second.
"""

from __future__ import annotations

import numpy as np

CHUNK = 1_000_000


def large(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 20) float32 and labels, 2 % positive; drawn in pieces of a million rows."""
    x, y = np.empty((n, 20), np.float32), np.empty(n, np.int64)
    for at in range(0, n, CHUNK):
        piece = slice(at, min(at + CHUNK, n))
        size = piece.stop - at
        random = np.random.default_rng((seed, at // CHUNK))
        y[piece] = random.random(size, np.float32) < 0.02
        random.standard_normal(dtype=np.float32, out=x[piece])
        _shift(x[piece], y[piece] > 0, random.random(size, np.float32) < 0.5)
    return x, y


def small(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 6) float32 and labels, 10 % positive."""
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.1).astype(np.int64)
    x = random.standard_normal((n, 6), np.float32)
    x[y == 0, 0] *= np.float32(0.9)
    _shift(x, y > 0, random.random(n) < 0.45)
    return x, y


def _shift(x: np.ndarray, positive: np.ndarray, first: np.ndarray) -> None:
    x[positive & first, 0] += np.float32(3.2)
    x[positive & ~first, 1] += np.float32(1.6)
    x[~positive, 1] *= np.float32(1.6)
