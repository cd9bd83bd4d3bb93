"""A pool: the newest rows' scores, from which thresholds are taken.

Few rows of a batch lie beyond an extreme operating point: a threshold at fpr 1 % from 50 negatives
has an fpr of 2 % in the mean. So rows are pooled, newest first, until the tail holds
:data:`ENOUGH` of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from setpoint.methods.confusion.batch import Batch

ENOUGH = 25.0  #: rows wanted in the tail beyond a threshold
LEAST, LARGEST = 8192, 65536  #: rows of a pool


class Rows(NamedTuple):
    """Scores (n,) or (n, K), index of (table, actual) and weight (n,) of rows."""

    scores: Tensor
    place: Tensor
    weight: Tensor


class Ring:
    """The arrays of a pool of plain scores on the host."""

    __slots__ = ("at", "place", "scores", "size", "weight")

    def __init__(
        self, scores: np.ndarray, place: np.ndarray, weight: np.ndarray, at: np.ndarray
    ) -> None:
        self.scores, self.place, self.weight, self.at = scores, place, weight, at
        self.size = len(scores)

    def push(self, scores: np.ndarray, actual: np.ndarray) -> None:
        """Take rows of one table in, each of weight 1."""
        at, n = int(self.at) % self.size, len(scores)
        first = min(n, self.size - at)
        for old, new in ((self.scores, scores), (self.place, actual)):
            old[at : at + first] = new[:first]
            if first < n:
                old[: n - first] = new[first:]
        self.weight[at : at + first] = 1.0
        self.weight[: n - first] = 1.0
        self.at[...] = (at + n) % self.size


class Pool(nn.Module):
    """The newest rows, in buffers, so that a run can be taken up.

    Parameters
    ----------
    size : int
        Rows at most.
    width : int
        Classes; 0 for one score per row.
    """

    scores: Tensor
    place: Tensor
    weight: Tensor
    at: Tensor

    def __init__(self, size: int, width: int = 0) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("scores", torch.zeros((size, width) if width else (size,)))
        self.register_buffer("place", torch.zeros(size, dtype=torch.long))
        self.register_buffer("weight", torch.zeros(size))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    def push(self, new: Rows, size: int) -> None:
        """Take rows in, at most ``size`` in all; the oldest fall out."""
        n = min(len(new.weight), size)
        if self.at.is_cpu and not torch.compiler.is_compiling():
            at = int(self.at) % size
            first = min(n, size - at)
            for name in Rows._fields:
                old, rows = getattr(self, name), getattr(new, name)
                old[at : at + first] = rows[:first]
                if first < n:
                    old[: n - first] = rows[first:n]
            self.at.fill_((at + n) % size)
            return
        where = (self.at + torch.arange(n, device=self.at.device)) % size
        for name in Rows._fields:
            old = getattr(self, name)
            old.index_copy_(0, where, getattr(new, name)[:n].to(old.dtype))
        self.at.copy_((self.at + n) % size)

    def ring(self) -> Ring:
        """The buffers as arrays that share their memory."""
        held = self.scores, self.place, self.weight, self.at
        return Ring(*(x.numpy() for x in held))

    def rows(self, size: int) -> Rows:
        """The rows so far; those that are missing have weight 0."""
        return Rows(self.scores[:size], self.place[:size], self.weight[:size])


def pool_size(tail: float) -> int:
    """Rows of a pool whose thresholds cut off this share of a class that has a quarter of them."""
    return int(min(max(4 * ENOUGH / max(tail, 1e-9), LEAST), LARGEST))


def rows_of(batch: Batch) -> Rows:
    """The rows of a batch; what is not finite has no weight."""
    place, weight = torch.as_tensor(batch.place), batch.weight
    weight = torch.ones_like(place, dtype=batch.logits.dtype) if weight is None else weight
    finite = batch.logits.isfinite()
    here = finite if finite.ndim == 1 else finite.all(1)
    scores = torch.where(finite, batch.logits, 0.0)
    return Rows(scores, place.long(), torch.where(here & weight.isfinite(), weight, 0.0))
