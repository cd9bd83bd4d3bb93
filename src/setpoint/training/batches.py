"""Batches: rows in memory, sliced without a loader.

The order of an epoch is a function of (seed, epoch) alone, so a run can be taken up in its middle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setpoint._core.errors import DataError


class TrainingRows(NamedTuple):
    """Some rows: what goes into the model, what should come out, and their numbers among all."""

    inputs: Any
    target: Tensor
    weight: Tensor | None = None
    group: Tensor | Mapping[str, Tensor] | None = None
    index: Tensor | None = None


class Batches(ABC):
    """The rows of an epoch, a batch at a time."""

    @abstractmethod
    def count(self) -> int:
        """Batches in an epoch."""

    @abstractmethod
    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[TrainingRows]:
        """The batches of an epoch from the given one on."""

    def in_memory(self) -> TrainingRows | None:
        """The rows of this process, where they are in memory."""
        return None


@dataclass(frozen=True, eq=False)
class InMemory(Batches):
    """Rows held as tensors on one device; each epoch is one permutation of them.

    The batches of an epoch differ in size by one row at most, so there is no small last one. Each
    knows its rows' numbers, which are those among all rows, whatever the share.

    Parameters
    ----------
    rows : TrainingRows
    size : int
        Rows of a batch, at most.
    share : (int, int)
        Rank and number of processes: each takes its rows of every batch.
    """

    rows: TrainingRows
    size: int
    share: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        if self.size < self.share[1]:
            raise DataError(
                f"a batch of {self.size} rows cannot be shared by {self.share[1]} processes"
            )

    def count(self) -> int:
        return max(1, -(-len(self.rows.target) // self.size))

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[TrainingRows]:
        generator = torch.Generator().manual_seed(mixed(seed, epoch))
        n, k = len(self.rows.target), self.count()
        order = torch.randperm(n, generator=generator).to(self.rows.target.device)
        rank, world = self.share
        for i in range(start, k):
            part = order[i * n // k : (i + 1) * n // k][rank::world]
            rows = TrainingRows(*(taken(column, part) for column in self.rows))
            yield rows if rows.index is not None else rows._replace(index=part)

    def in_memory(self) -> TrainingRows | None:
        rank, world = self.share
        if world == 1:
            return self.rows
        part = torch.arange(rank, len(self.rows.target), world, device=self.rows.target.device)
        return TrainingRows(*(taken(column, part) for column in self.rows))


def taken(column: Any, part: Tensor) -> Any:
    """Some rows of a column: a tensor, a mapping of tensors, or None."""
    if column is None:
        return None
    if isinstance(column, Mapping):
        return {name: taken(x, part) for name, x in column.items()}
    return column[part]


def mixed(seed: int, epoch: int) -> int:
    """One seed from two numbers, far from those of neighbouring epochs and runs."""
    x = (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & (2**64 - 1)
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    return (x ^ (x >> 27)) & (2**63 - 1)
