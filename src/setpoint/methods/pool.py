"""A pool: the newest rows' scores, from which thresholds are taken.

Few rows of a batch lie beyond an extreme operating point: a threshold at fpr 1 % from 50 negatives
has an fpr of 2 % in the mean. So rows are pooled, newest first, until the tail holds
:data:`ENOUGH` of them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from setpoint.methods.batch import Batch

ENOUGH = 25.0  #: rows wanted in the tail beyond a threshold
LEAST, LARGEST = 8192, 65536  #: rows of a pool


class Rows(NamedTuple):
    """Scores (n,) or (n, K), index of (table, actual) and weight (n,) of rows."""

    scores: Tensor
    place: Tensor
    weight: Tensor


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

    def __init__(self, size: int, width: int = 0) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("scores", torch.zeros((size, width) if width else (size,)))
        self.register_buffer("place", torch.zeros(size, dtype=torch.long))
        self.register_buffer("weight", torch.zeros(size))

    def push(self, new: Rows) -> None:
        """Take rows in; the oldest fall out."""
        n = min(len(new.weight), self.size)
        for name in Rows._fields:
            old, rows = getattr(self, name), getattr(new, name)[:n]
            rows = rows.to(old.dtype)
            old.copy_(rows if n == self.size else torch.cat([rows, old[: self.size - n]]))

    def newest(self, rows: int) -> Rows:
        """So many rows, or all."""
        n = min(max(rows, 1), self.size)
        return Rows(self.scores[:n], self.place[:n], self.weight[:n])


def pool_size(tail: float) -> int:
    """Rows of a pool whose thresholds cut off this share of a class that has a quarter of them."""
    return int(min(max(4 * ENOUGH / max(tail, 1e-9), LEAST), LARGEST))


def rows_of(batch: Batch) -> Rows:
    """The rows of a batch; on the host copies, since a model may reuse its outputs."""
    place = torch.as_tensor(batch.place).long()
    weight = batch.weight
    ones = torch.ones(len(place), dtype=batch.logits.dtype, device=batch.logits.device)
    return Rows(batch.logits.detach(), place, ones if weight is None else weight)
