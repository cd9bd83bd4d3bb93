"""A problem with a known answer: the record that the tables are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

INF = math.inf


def of(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def rows(*values: Tensor) -> Tensor:
    return torch.stack(values)


@dataclass(frozen=True)
class Known:
    """A problem, its start and the value at its optimum."""

    name: str
    f: Callable[[Tensor], Tensor]
    x0: tuple[float, ...]
    best: float
    c: Callable[[Tensor], Tensor] | None = None
    e: Callable[[Tensor], Tensor] | None = None
    low: Any = None
    high: Any = None
    others: tuple[float, ...] = ()

    @property
    def start(self) -> Tensor:
        return of(*self.x0)

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """Bounds as ``solve`` takes them; a tuple becomes a tensor."""
        if self.low is None and self.high is None:
            return None
        return tuple(of(*b) if isinstance(b, tuple) else b for b in (self.low, self.high))

    @property
    def constraints(self) -> dict[str, Any]:
        """The keywords of ``solve``."""
        sides = {"inequalities": self.c, "equalities": self.e, "bounds": self.bounds}
        return {name: side for name, side in sides.items() if side is not None}
