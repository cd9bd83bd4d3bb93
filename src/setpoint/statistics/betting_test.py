"""Bets: a test of the sign of a bounded mean, for whatever is no pure rate.

Rows z₁ … zₙ ≥ −B, one after another in an order fixed in advance. A gambler who starts with 1 and
stakes λₜ on each row, chosen before the row is seen and 0 ≤ λₜ < 1/B, has

    Wₜ = Wₜ₋₁ (1 + λₜ zₜ),        and if E[z] ≤ 0:    P(some Wₜ ≥ 1/δ) ≤ δ     (Ville)

so wealth of 1/δ proves E[z] > 0 (Waudby-Smith & Ramdas 2023). Rows with z = 0 move nothing and are
left out. The stake is what would just reach 1/δ with the last row, if the rows went on at the pace
that this needs (recalculated as one goes, as in Vořáček & Orabona 2025):

    λₜ = √( 2 ln(1 / (δ Wₜ₋₁)) / (V (n − t + 1)) ),    V: second moment of the rows so far
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint._core.arrays import Array
from setpoint._core.errors import DataError

BLOCKS = 400  #: times the stake is recalculated
BOLD = 0.95  #: the largest stake, as a share of what can be lost


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """Rows of (N, D) in the order of the bets, as blocks; z = N − c D for a bound c.

    Attributes
    ----------
    pairs : numpy.ndarray of shape (m, 2)
        Distinct pairs, where rows count once; else the pair of every row.
    counts : numpy.ndarray of shape (blocks, m), or None
        How many rows of each block have each pair; None where every row has a pair of its own.
    edges : numpy.ndarray of shape (blocks + 1,)
        Where blocks begin and end.
    """

    pairs: np.ndarray
    counts: np.ndarray | None
    edges: np.ndarray

    @classmethod
    def counted(cls, pairs: np.ndarray, which: np.ndarray) -> BoundedRows:
        """Rows that are one of a few pairs; ``which`` says which, in order."""
        edges = _edges(which.size)
        block = np.repeat(np.arange(edges.size - 1), np.diff(edges))
        flat = np.bincount(block * len(pairs) + which, minlength=(edges.size - 1) * len(pairs))
        return cls(pairs, flat.reshape(edges.size - 1, len(pairs)).astype(float), edges)

    @classmethod
    def single(cls, pairs: np.ndarray) -> BoundedRows:
        """Rows that each have a pair of their own."""
        return cls(pairs, None, _edges(len(pairs)))

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.edges[-1])


def _edges(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n, min(n, BLOCKS) + 1).round().astype(np.int64))


def wins(rows: BoundedRows, c: Array, sign: int, loss: Array, delta: float) -> np.ndarray:
    """For each bound c, whether the bets prove sign · (E[N] − c E[D]) > 0 at level δ.

    Parameters
    ----------
    rows : BoundedRows
    c : array of shape (m,)
    sign : {1, −1}
    loss : array of shape (m,)
        B: the most that one row can lose, sign · (N − c D) ≥ −B for every row there can be.
    delta : float
    """
    c = np.asarray(c, float)
    loss = np.maximum(
        np.asarray(loss, float), 1e-9 * max(1.0, float(np.abs(rows.pairs).max(initial=0.0)))
    )
    wealth, target = np.zeros_like(c), np.log(1 / delta)  # logarithms
    moment = 0.25 * loss**2  # as if one row had been seen: a stake of half of what can be lost
    best = np.zeros_like(c)
    n, seen = rows.size, 0
    for b in range(rows.edges.size - 1):
        start, stop = rows.edges[b], rows.edges[b + 1]
        lacking = np.maximum(target - wealth, 0.0)
        spread = moment / (seen + 1)
        stake = np.minimum(np.sqrt(2 * lacking / (spread * (n - start))), BOLD / loss)
        part = rows.pairs if rows.counts is not None else rows.pairs[start:stop]
        z = sign * (part[:, 0] - np.multiply.outer(c, part[:, 1]))  # (m, pairs)
        stakes = stake[:, None] * z
        if stakes.size and stakes.min() <= -1:
            raise DataError("a row loses more than the bound on its weight allows; state a larger")
        gains = np.log1p(stakes)
        if rows.counts is not None:
            wealth = wealth + gains @ rows.counts[b]
            moment = moment + (z * z) @ rows.counts[b]
        else:
            wealth = wealth + gains.sum(1)
            moment = moment + (z * z).sum(1)
        best = np.maximum(best, wealth)
        seen += int(stop - start)
    return best >= target
