"""Recent rows: the newest scores of a stream with their classes, in buffers that are saved."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from setpoint.methods.confusion.batch import Batch


class TrackedRows(NamedTuple):
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
    at: Tensor

    def __init__(self, size: int, width: int = 0) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("scores", torch.zeros((size, width) if width else (size,)))
        self.register_buffer("place", torch.zeros(size, dtype=torch.long))
        self.register_buffer("weight", torch.zeros(size))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    def push(self, new: TrackedRows, size: int) -> None:
        """Take rows in, at most ``size`` in all; the oldest fall out."""
        n = min(len(new.weight), size)
        if self.at.is_cpu and not torch.compiler.is_compiling():
            at = int(self.at) % size
            first = min(n, size - at)
            for name in TrackedRows._fields:
                old, rows = getattr(self, name), getattr(new, name)
                old[at : at + first] = rows[:first]
                if first < n:
                    old[: n - first] = rows[first:n]
            self.at.fill_((at + n) % size)
            return
        where = (self.at + torch.arange(n, device=self.at.device)) % size
        for name in TrackedRows._fields:
            old = getattr(self, name)
            old.index_copy_(0, where, getattr(new, name)[:n].to(old.dtype))
        self.at.copy_((self.at + n) % size)

    def rows(self, size: int) -> TrackedRows:
        """The rows so far; those that are missing have weight 0."""
        return TrackedRows(self.scores[:size], self.place[:size], self.weight[:size])


def rows_of(batch: Batch) -> TrackedRows:
    """The rows of a batch; what is not finite has no weight."""
    place, weight = torch.as_tensor(batch.place), batch.weight
    weight = torch.ones_like(place, dtype=batch.logits.dtype) if weight is None else weight
    finite = batch.logits.isfinite()
    here = finite if finite.ndim == 1 else finite.all(1)
    scores = torch.where(finite, batch.logits, 0.0)
    return TrackedRows(scores, place.long(), torch.where(here & weight.isfinite(), weight, 0.0))
