"""Sums over pairs of rows, read off the sorted scores.

With the rows sorted, x₁ ≤ … ≤ xₙ, a sum over the rows below (or above) each row is a running sum:

* ``mass_beyond``: Σ_{j<k} vⱼ or Σ_{j>k} vⱼ;
* ``Decay``: Σ_{j≤k} vⱼ e^{−(xₖ − xⱼ)} and Σ_{j≥k} vⱼ e^{−(xⱼ − xₖ)}.

They work on the gaps between neighbours rather than on the scores, so that every sum adds terms of
one sign: nothing cancels, and the relative error is that of float64 wherever the scores lie. Shapes
never depend on values and nothing is read back to the host, so no accelerator is waited for.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 16
"""Rows of one block of ``Decay``; BLOCK × FAR / 2 = 640 stays below log(1e308) = 709."""
FAR = 80.0
"""A longer gap counts as this one: e⁻⁸⁰ = 2e-35 of a weight is lost beside any other."""


class Rows(NamedTuple):
    """Rows sorted by key, rising; each is of one class, its weight in the other class is 0."""

    key: Tensor  # (n,) float64
    order: Tensor  # (n,) int64: the row's place before sorting
    positive: Tensor  # (n,) float64: weights of positives
    negative: Tensor  # (n,) float64

    @property
    def gaps(self) -> Tensor:
        """From each row to the next, (n - 1,)."""
        return self.key[1:] - self.key[:-1]


def sorted_rows(key: Tensor, positive: Tensor, weight: Tensor | None) -> Rows:
    """Sort; ``positive`` is boolean, ``key`` of any real dtype, weights default to 1."""
    key, order = key.sort()
    hit = positive.index_select(0, order).double()
    miss = 1.0 - hit
    if weight is None:
        return Rows(key.double(), order, hit, miss)
    weight = weight.index_select(0, order).double()
    return Rows(key.double(), order, hit * weight, miss * weight)


def over(values: Tensor, total: Tensor) -> Tensor:
    """``values / total``, and 0 / 0 = 0."""
    return values / torch.where(total == 0, 1.0, total)


def mass_beyond(values: Tensor) -> Tensor:
    """Σ_{j<k} vⱼ along the last dimension; (..., n) -> (..., n). Flip for the rows above."""
    return pad(values.cumsum(-1)[..., :-1], (1, 0))


class _Level(NamedTuple):
    """Exponentials of one level of blocks."""

    rise: Tensor  # (..., blocks, BLOCK)
    fall: Tensor  # 1 / rise
    drop: Tensor  # (..., blocks, 1): from the middle of the block to its start


class Decay:
    """Sums over all rows that fade with the distance, in both directions.

    Upwards Dₖ = Σ_{j≤k} vⱼ e^{−(xₖ − xⱼ)}, downwards Eₖ = Σ_{j≥k} vⱼ e^{−(xⱼ − xₖ)}, for v ≥ 0.

    Inside a block of 16 rows, D = e^{−r} cumsum(v eʳ), r the distance from the middle of the
    block, |r| ≤ 640, so that no exponential leaves float64. The sums at the ends of the blocks are
    the same problem on n / 16 rows. (``logcumsumexp`` takes five times as long on a CPU; a single
    cumsum of v eˣ overflows where scores are far apart.)

    Parameters
    ----------
    gaps : (..., n - 1) float64 tensor
        From each row to the next; several sets of gaps, as g, 2g, 3g, are summed over at once.
    """

    def __init__(self, gaps: Tensor) -> None:
        self.levels: list[_Level] = []
        reach = torch.stack((pad(gaps, (1, 0)), pad(gaps.flip(-1), (1, 0)))).unsqueeze(-2)
        while True:
            size = min(reach.shape[-1], BLOCK)
            reach = _blocks(reach.clamp(max=FAR), size).cumsum(-1)  # (2, ..., 1, blocks, size)
            half = 0.5 * reach[..., -1:]
            rise = (reach - half).exp_()
            self.levels.append(_Level(rise, rise.reciprocal(), (-half).exp_()))
            reach = reach[..., -1]
            if reach.shape[-1] == 1:
                return

    def sums(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """D and E of each signal; (signals, n) -> (..., signals, n) twice."""
        both = torch.stack((values, values.flip(-1)))
        sets = self.levels[0].rise.ndim - 4
        both = self._sums(both[(slice(None), *(None,) * sets)], 0)
        return both[0], both[1].flip(-1)

    def _sums(self, values: Tensor, depth: int) -> Tensor:
        rise, fall, drop = self.levels[depth]
        sums = (_blocks(values, rise.shape[-1]) * rise).cumsum_(
            -1
        )  # (2, ..., signals, blocks, size)
        if depth + 1 < len(self.levels):
            ends = self._sums(sums[..., -1] * fall[..., -1], depth + 1)  # (2, ..., signals, blocks)
            sums += pad(ends[..., :-1], (1, 0)).unsqueeze(-1) * drop
        sums *= fall
        return sums.flatten(-2)[..., : values.shape[-1]]


def _blocks(values: Tensor, size: int) -> Tensor:
    """Cut the last dimension into blocks, the last of them filled up with 0."""
    spare = -values.shape[-1] % size
    if spare:
        values = pad(values, (0, spare))
    return values.unflatten(-1, (-1, size))
