"""A walk of a linear layer on the goal itself: one exact line search after the other.

    W ← W + γ* e_c vᵀ,      γ* = argmin over γ of the goal, at hard decisions by Φ (W + γ e_c vᵀ)ᵀ

Φ are the rows' features with a 1 for the bias, c an output, v a direction: one feature, a random
combination, a row that is missed minus one that is wrongly decided, the bias alone. Each step
minimises the exact problem over s and γ together and is never worse than the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from setpoint.methods.exact.hard_decisions import HardRows, Rank


def walk(
    hard: HardRows,
    features: np.ndarray,
    weights: np.ndarray,
    steps: int,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[np.ndarray, Rank]:
    """The weights after so many line searches, and how good their decisions are.

    Parameters
    ----------
    hard : HardRows
    features : numpy.ndarray
        (n, h), without a column of ones.
    weights : numpy.ndarray
        (K, h + 1), the bias last; one output decides at 0.
    steps : int
        Line searches.
    seed : int
    stop : callable
        Asked before each: whether to end here.
    """
    mean, spread = features.mean(0), features.std(0)
    spread = np.where(spread > 1e-12, spread, 1.0)
    phi = np.concatenate([(features - mean) / spread, np.ones((len(features), 1))], 1)
    W = _inward(weights, mean, spread)
    z, size = phi @ W.T, max(float(np.linalg.norm(W)), 1e-6)
    best = hard.rank(hard.scores(z))
    for c, v in _directions(hard, phi, z, W, steps, np.random.default_rng(seed)):
        if stop():
            break
        q = np.zeros_like(z)
        q[:, c] = phi @ v
        gamma, rank = hard.along(hard.scores(z), hard.scores(q))
        if rank > best or not gamma:
            continue
        moved = W.copy()
        moved[c] += gamma * v
        scores = phi @ moved.T
        there = hard.rank(hard.scores(scores))  # as they are, not as the running sums say
        if there <= best:  # at the size it began with: decisions do not depend on it
            grown = max(float(np.linalg.norm(moved)), 1e-300) / size
            W[:], z[:], best = moved / grown, scores / grown, there
    return _outward(W, mean, spread), best


def _directions(
    hard: HardRows,
    phi: np.ndarray,
    z: np.ndarray,
    W: np.ndarray,
    steps: int,
    rng: np.random.Generator,
) -> Iterator[tuple[int, np.ndarray]]:
    """An output and a direction for each step; z and W are looked at as they have become."""
    h = phi.shape[1]
    for k in range(steps):
        c, v = int(rng.integers(len(W))), np.zeros(h)
        if k % 4 == 0:
            v[int(rng.integers(h))] = 1.0
        elif k % 4 == 1:
            v[:] = rng.normal(size=h)
        elif k % 4 == 2:
            v[-1] = 1.0
        else:
            missed, wrong = hard.mistakes(hard.scores(z), c, len(W))
            for rows, sign in ((missed, 1.0), (wrong, -1.0)):
                if len(rows):
                    v += sign * phi[int(rng.choice(rows))]
            if not v.any():
                v[:] = rng.normal(size=h)
        yield c, v * max(float(np.linalg.norm(W[c])), 1e-6) / float(np.linalg.norm(v))


def _inward(weights: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Weights of standardised features from weights of the features."""
    inner = weights[:, :-1] * spread
    return np.concatenate([inner, weights[:, -1:] + weights[:, :-1] @ mean[:, None]], 1)


def _outward(weights: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """And back."""
    outer = weights[:, :-1] / spread
    return np.concatenate([outer, weights[:, -1:] - outer @ mean[:, None]], 1)
