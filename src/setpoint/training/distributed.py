"""Sums over processes. Totals are what crosses a process boundary, once per step."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.programs import Exchange

AVAILABLE = dist.is_available()


def world_size(group: Any = None) -> int:
    """Number of processes that train together; 1 without torch.distributed."""
    if not AVAILABLE or not dist.is_initialized():
        return 1
    return dist.get_world_size(group)


def rank(group: Any = None) -> int:
    """The number of this process among them."""
    if not AVAILABLE or not dist.is_initialized():
        return 0
    return dist.get_rank(group)


def agreed(value: Any) -> Any:
    """The first process's value, on every process."""
    if world_size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def summed(parts: list[Any], like: Tensor, group: Any = None) -> list[Any]:
    """The sum of each part over all processes, by one all-reduce of them joined.

    Parts are tensors on a device, or arrays and numbers on the host, and come back as they were.
    """
    host = like.device.type == "cpu"
    # a number of Python's would be narrowed to float32
    columns = [
        x
        if isinstance(x, Tensor)
        else torch.as_tensor(x, device=like.device, dtype=torch.float64 if host else None)
        for x in parts
    ]
    exact = columns[0].dtype == torch.float64  # totals that are never forgotten are kept so
    wide = torch.float64 if exact or host else like.dtype
    joined = torch.cat([part.reshape(-1).to(wide) for part in columns])
    dist.all_reduce(joined, group=group)
    whole = joined.split([part.numel() for part in columns])
    tensors = [x.view_as(p) for x, p in zip(whole, columns, strict=True)]
    if isinstance(parts[0], Tensor):
        return [tensors[0] if exact else tensors[0].to(like.dtype)] + [
            x.to(like.dtype) for x in tensors[1:]
        ]
    return [x.numpy() if x.ndim else x.item() for x in tensors]


def gathered(parts: list[Any], group: Any = None) -> tuple[slice, list[Any]]:
    """The rows of all processes, in order of rank, and where this process's own lie among them.

    Parts are tensors with one entry per row, or None on every process.
    """
    flat = [None if part is None else part.reshape(len(part)) for part in parts]
    sizes = _sizes(parts[0], group)
    start = sum(sizes[: rank(group)])
    joined = [None if part is None else _joined(part, sizes, group) for part in flat]
    return slice(start, start + len(parts[0])), joined


class Processes(Exchange):
    """Sums and rows over the processes of a group."""

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self.world = world_size(group)
        self.rank = rank(group)

    def summed(self, x: Tensor) -> Tensor:
        whole = x.detach().clone()
        dist.all_reduce(whole, group=self.group)
        return whole

    def rows(self, *columns: Tensor) -> list[Tensor]:
        sizes = _sizes(columns[0], self.group)
        return [_joined(column, sizes, self.group) for column in columns]


def _sizes(column: Tensor, group: Any) -> list[int]:
    """The number of rows of each process."""
    counts = [
        torch.zeros(1, dtype=torch.long, device=column.device) for _ in range(world_size(group))
    ]
    dist.all_gather(counts, torch.tensor([len(column)], device=column.device), group=group)
    return [int(c) for c in counts]


def _joined(column: Tensor, sizes: list[int], group: Any) -> Tensor:
    padded = column.new_zeros(max(sizes), *column.shape[1:])
    padded[: len(column)] = column.detach()
    pieces = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(pieces, padded, group=group)
    return torch.cat([piece[:n] for piece, n in zip(pieces, sizes, strict=True)])
