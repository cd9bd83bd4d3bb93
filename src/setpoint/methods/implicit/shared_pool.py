"""A pool of the newest rows that is the same on any number of processes.

Each process keeps its own rows. Shares of a batch differ in size, so the newest rows of all are not
the newest n / world of each: a process with smaller shares would look back further. So every row
remembers the step that brought it, and the newest n of all processes are counted together; of the
oldest step that fits in part, rows count in the order in which a sampler deals them out, the first
of every process before the second ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.methods.guard.recent_rows import Pool, TrackedRows
from setpoint.programs import Exchange


class SharedPool(Pool):
    """The newest rows of all processes, each keeping its own.

    Parameters
    ----------
    size, width : int
        As for ``Pool``.

    Attributes
    ----------
    turn : torch.Tensor
        (size,) the step that brought a row, from 1; 0 where that is not known.
    """

    turn: Tensor

    def __init__(self, size: int, width: int = 0) -> None:
        super().__init__(size, width)
        self.register_buffer("turn", torch.zeros(size, dtype=torch.int32))

    def take(self, new: TrackedRows, turn: Tensor) -> None:
        """Take the rows of a step in; a process has room for those of all."""
        size, n = self.size, min(len(new.weight), self.size)
        if self.at.is_cpu and not torch.compiler.is_compiling():
            at, turns = int(self.at), self.turn.numpy()
            first = min(n, size - at)
            turns[at : at + first] = turns[: n - first] = int(turn)
        else:
            where = (self.at + torch.arange(n, device=self.at.device)) % size
            self.turn.index_copy_(0, where, turn.to(self.turn).expand(n))
        self.push(new, size)

    def newest(self, turn: Tensor, exchange: Exchange | None) -> TrackedRows:
        """The newest ``size`` rows of all processes that this one holds; others weigh 0.

        Parameters
        ----------
        turn : torch.Tensor
            The latest step, the same on all processes.
        exchange : Exchange or None
        """
        rows = self.rows(self.size)
        if exchange is None:
            return rows
        order = (int(self.at) + np.arange(self.size)) % self.size  # the oldest first
        brought = self.turn.cpu().numpy()[order]
        there = (brought > 0) | (rows.weight.cpu().numpy()[order] > 0)
        # a step brings a row to each process at least
        steps = min(int(turn), self.size // exchange.world) + 2
        age = np.minimum(int(turn) - brought, steps - 1)
        own = np.bincount(age[there], minlength=steps)
        (all_,) = exchange.rows(torch.as_tensor(own, device=self.at.device)[None])
        keep = np.zeros(self.size, dtype=bool)
        keep[order] = there & self._fits(age, there, all_.cpu().numpy(), exchange.rank)
        kept = torch.as_tensor(keep, device=self.at.device)
        return rows._replace(weight=torch.where(kept, rows.weight, 0.0))

    def _fits(
        self, age: np.ndarray, there: np.ndarray, counts: np.ndarray, rank: int
    ) -> np.ndarray:
        """Which of this process's rows, oldest first, are among the newest of all.

        Parameters
        ----------
        age : numpy.ndarray
            (size,) steps since a row came.
        there : numpy.ndarray
            (size,) whether there is a row.
        counts : numpy.ndarray
            (world, steps) rows of each process by age.
        rank : int
        """
        whole = counts.sum(0)
        room = np.clip(self.size - (whole.cumsum() - whole), 0, whole)
        fits = (room == whole)[age]
        for a in np.flatnonzero((room > 0) & (room < whole)):
            n, j = counts[:, a], np.arange(counts[rank, a])
            dealt = np.minimum(n[:, None], j).sum(0) + (n[:rank, None] > j).sum(0)
            fits[there & (age == a)] = dealt >= whole[a] - room[a]
        return fits

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        """Version 1 did not write which step brought a row."""
        super()._load_from_state_dict(state_dict, prefix, *more)
        missing, name = more[2], f"{prefix}turn"
        if name in missing:
            missing.remove(name)
            self.turn.zero_()
