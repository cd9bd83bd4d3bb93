"""Batches of whole queries: rows that are ranked against each other come together.

Each epoch is one permutation of the queries, a function of (seed, epoch) alone, cut into batches
whose numbers of queries differ by one at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.training.batches import Batches, TrainingRows, mixed, taken


@dataclass(frozen=True, eq=False)
class ByQuery(Batches):
    """Rows held as tensors on one device, in batches of whole queries.

    Parameters
    ----------
    rows : TrainingRows
        ``group`` holds the code of each row's query, or is a mapping with "query" among its names.
    queries : int
        Queries of a batch, at most.
    share : (int, int)
        Rank and number of processes: each takes its queries of every batch, none is divided.

    Examples
    --------
    >>> query = torch.tensor([7, 7, 3, 3, 3])
    >>> rows = TrainingRows(torch.zeros(5, 2), torch.tensor([1, 0, 0, 2, 1]), None, query)
    >>> [sorted(set(batch.group.tolist())) for batch in ByQuery(rows, queries=1).epoch(0, 0)]
    [[7], [3]]
    """

    rows: TrainingRows
    queries: int
    share: tuple[int, int] = (0, 1)
    order: Tensor = field(init=False)  #: (n,) rows by query
    starts: Tensor = field(init=False)  #: (Q,) where each query begins in it
    sizes: Tensor = field(init=False)  #: (Q,)

    def __post_init__(self) -> None:
        group = self.rows.group
        codes = group.get("query") if isinstance(group, Mapping) else group
        if not isinstance(codes, Tensor):
            raise KindError(
                'batches by query need Rows(group=…), a tensor of query codes or {"query": codes}; '
                f"got {type(codes).__name__}"
            )
        if codes.shape != (len(self.rows.target),):
            raise DataError(
                f"there are {len(self.rows.target)} rows and query codes of shape "
                f"{tuple(codes.shape)}; give one code per row"
            )
        if self.queries < 1:
            raise DataError(f"a batch of {self.queries} queries is empty; take 1 or more")
        sizes = torch.unique(codes, return_counts=True)[1]
        derived = {
            "order": torch.argsort(codes, stable=True),
            "sizes": sizes,
            "starts": torch.cumsum(sizes, 0) - sizes,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        least, world = len(sizes) // self.count(), self.share[1]
        if least < world:
            raise DataError(
                f"a batch of {least} queries cannot be shared by {world} processes; take "
                f"queries={world} or more"
            )

    def count(self) -> int:
        return max(1, -(-len(self.sizes) // self.queries))

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[TrainingRows]:
        generator = torch.Generator().manual_seed(mixed(seed, epoch))
        n, k = len(self.sizes), self.count()
        turn = torch.randperm(n, generator=generator).to(self.order.device)
        rank, world = self.share
        for i in range(start, k):
            part = self._rows_of(turn[i * n // k : (i + 1) * n // k][rank::world])
            yield TrainingRows(*(taken(column, part) for column in self.rows))

    def _rows_of(self, queries: Tensor) -> Tensor:
        """The rows of some queries, one query behind the other."""
        sizes = self.sizes[queries]
        ends = torch.cumsum(sizes, 0)
        shift = torch.repeat_interleave(self.starts[queries] - (ends - sizes), sizes)
        return self.order[torch.arange(len(shift), device=shift.device) + shift]
