"""The rows that are still running: what each carries from call to call."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from setpoint.solvers.batched.line_search import Search
from setpoint.solvers.batched.steering import Place, Step


@dataclass(frozen=True, eq=False)
class Best:
    """The best point each row has seen: feasible before infeasible, then by f, or by violation."""

    x: Tensor  # (B, n)
    f: Tensor  # (B,)
    violation: Tensor  # (B,)

    def against(self, x: Tensor, f: Tensor, violation: Tensor, feasibility: float) -> Best:
        """The better of this and another point, row by row; what is not finite is never better."""
        holds, held = violation <= feasibility, self.violation <= feasibility
        better = torch.where(
            holds == held,
            torch.where(holds, f < self.f, violation < self.violation),
            holds,
        )
        better = better & f.isfinite() & violation.isfinite()
        return Best(
            torch.where(better[:, None], x, self.x),
            torch.where(better, f, self.f),
            torch.where(better, violation, self.violation),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """The state of the running rows, (B, …) each."""

    index: Tensor  # (B,) long: which problem a row is
    at: Place
    step: Step
    search: Search
    level: Tensor  # (B,) long: how far a row has fallen back, see ``steer``
    best: Best
    code: Tensor  # (B,) long: an End
    iterations: Tensor  # (B,) long
    stalls: Tensor  # (B,) long: steps in a row that changed φ by nothing

    def take(self, index: Tensor) -> Rows:
        """Some of the rows."""
        return _taken(self, index)

    def merged(self, where: Tensor, other: Rows) -> Rows:
        """The other's rows ``where`` (B,), these elsewhere."""
        return _merged(self, where, other)

    def ended(self, where: Tensor, end: int) -> Rows:
        """The rows ``where`` (B,) end, unless they have."""
        running = self.code == 0
        return replace(self, code=torch.where(where & running, int(end), self.code))


def _taken(record, index: Tensor):  # noqa: ANN001, ANN202 - any record of tensors and records
    parts = {f.name: getattr(record, f.name) for f in fields(record)}
    return type(record)(
        **{
            k: a.index_select(0, index) if isinstance(a, Tensor) else _taken(a, index)
            for k, a in parts.items()
        }
    )


def _merged(mine, where: Tensor, theirs):  # noqa: ANN001, ANN202 - any record of tensors and records
    parts = {}
    for f in fields(mine):
        a, b = getattr(mine, f.name), getattr(theirs, f.name)
        if isinstance(a, Tensor):
            mask = where.reshape(-1, *(1,) * (a.ndim - 1))
            parts[f.name] = torch.where(mask, b, a)
        else:
            parts[f.name] = _merged(a, where, b)
    return type(mine)(**parts)
