"""Recent rows: the newest scores of a stream with their classes, in buffers that are saved."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from setpoint.methods.confusion.batch import Batch


class TrackedRows(NamedTuple):
    """Scores (n,) or (n, K), index of (table, actual) and weight (n,) of rows."""

    scores: Tensor
    place: Tensor
    weight: Tensor


class ObservedRows(NamedTuple):
    """Scores, classes, weights and tables (n,) of rows on the host, finite and of some weight.

    Of several classes the score is the class that is decided.
    """

    scores: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    table: np.ndarray


def no_rows() -> ObservedRows:
    """Rows of an empty window."""
    none = np.zeros(0)
    return ObservedRows(none, none, none, none.astype(np.intp))


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
        """Take rows in, at most ``size`` in all; the oldest fall out.

        Of more than ``size`` some are taken evenly, since rows may be sorted.
        """
        n = len(new.weight)
        if n > size:
            some = torch.arange(size, device=self.at.device) * n // size
            new, n = TrackedRows(*(x[some] for x in new)), size
        buffers = cast("dict[str, Tensor]", self._buffers)
        if not self.at.is_cpu or torch.compiler.is_compiling():
            where = (self.at + torch.arange(n, device=self.at.device)) % size
            for name in TrackedRows._fields:
                old = buffers[name]
                old.index_copy_(0, where, getattr(new, name).to(old.dtype))
            self.at.copy_((self.at + n) % size)
            return
        place = buffers["at"].numpy()
        at = int(place) % size
        first = min(n, size - at)
        for name in TrackedRows._fields:
            old, rows = buffers[name].numpy(), getattr(new, name).numpy()
            old[at : at + first] = rows[:first]
            if first < n:
                old[: n - first] = rows[first:n]
        place[...] = (at + n) % size

    def rows(self, size: int) -> TrackedRows:
        """The rows so far; those that are missing have weight 0."""
        return TrackedRows(self.scores[:size], self.place[:size], self.weight[:size])

    def in_order(self, size: int) -> TrackedRows:
        """The same, the oldest first."""
        at = int(self.at) % size
        return TrackedRows(*(torch.roll(x, -at, 0) for x in self.rows(size)))


def rows_of(batch: Batch) -> TrackedRows:
    """The rows of a batch; what is not finite has no weight."""
    if (
        batch.flat
        and math.isfinite(float(batch.logits.sum()))
        and (batch.weight is None or math.isfinite(float(batch.weight.sum())))
    ):
        return TrackedRows(batch.logits, *map(torch.from_numpy, (batch.place, batch.unit)))
    place, weight = torch.as_tensor(batch.place), batch.weight
    weight = torch.ones_like(place, dtype=batch.logits.dtype) if weight is None else weight
    here = batch.logits.isfinite()
    scores = torch.where(here, batch.logits, 0.0)
    here = here if here.ndim == 1 else here.all(1)
    return TrackedRows(scores, place.long(), torch.where(here & weight.isfinite(), weight, 0.0))
