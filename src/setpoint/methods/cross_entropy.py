"""Cross-entropy, plain and class-weighted: the baseline that every comparison includes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import inverse, is_tensor
from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint.goals import Goal, Task
from setpoint.methods.batch import (
    Batch,
    batch_mass,
    check_values,
    cross_entropy,
    cross_entropy_pull,
    take_batch,
)
from setpoint.methods.cells import Cells
from setpoint.methods.method import Method, Recovered, not_totals, ready
from setpoint.methods.steps import by_class
from setpoint.programs import Priced, StreamProgram


@dataclass(frozen=True)
class CrossEntropy(Method):
    """Σ wᵢ u[yᵢ] CEᵢ / Σ wᵢ u[yᵢ]; the goal only chooses the threshold afterwards.

    Parameters
    ----------
    class_weight : None, "balanced" or sequence of float
        u, one weight per class, or per label that of its positives. "balanced": rows / (classes ·
        rows of the class), from the running totals.
    """

    class_weight: Any = None

    name = "cross-entropy"
    summary = "plain or class-weighted cross-entropy; the goal chooses the threshold afterwards"

    def __post_init__(self) -> None:
        u = self.class_weight
        if u is None or u == "balanced":
            return
        if not isinstance(u, Sequence) or not all(is_real(x) and x > 0 for x in u):
            raise KindError(
                f'class_weight={u!r}: None, "balanced", or one positive number per class'
            )
        object.__setattr__(self, "class_weight", tuple(float(x) for x in u))

    def refusal(self, goal: Goal, task: Task) -> str | None:
        if task.kind in ("ranking", "regression"):
            return not_totals(goal, task)
        if isinstance(self.class_weight, tuple):
            width = 2 if task.kind == "binary" else len(task.classes or ())
            if len(self.class_weight) != width:
                return f"class_weight holds {len(self.class_weight)} weights for {width} classes"
        return None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        ready(self, goal, task)
        return CrossEntropyProgram(Cells(task), goal, self.class_weight)

    def recover(self, program: StreamProgram, totals: Any, multipliers: Any) -> Recovered:
        del multipliers
        raise KindError("cross-entropy pursues no goal of its own; tune a threshold and evaluate")


class CrossEntropyProgram(StreamProgram):
    """(Class-weighted) cross-entropy; its totals are the rows of each class, its prices weights."""

    def __init__(self, cells: Cells, goal: Goal, class_weight: Any) -> None:
        super().__init__()
        self.cells, self.goal, self.kind = cells, goal, class_weight
        self.shape = (1, cells.labels * cells.side)
        self.register_buffer("start", torch.zeros(0), persistent=False)
        u = torch.ones(cells.labels, cells.side)
        if isinstance(class_weight, tuple) and cells.several:
            u[:, 1] = torch.tensor(class_weight)
        elif isinstance(class_weight, tuple):
            u[0] = torch.tensor(class_weight)
        self.register_buffer("fixed", u.view(1, -1), persistent=False)
        self._fixed = u.view(1, -1).numpy()

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Batch:
        return take_batch(self.cells, outputs, target, weight, None)

    def mass(self, rows: Batch) -> tuple[Any, int]:
        return batch_mass(rows, self.cells)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        if self.cells.kind == "binary":
            positive = rows.small(rows.weighed(rows.actual).sum())
            whole = rows.rows if rows.weight is None else rows.small(rows.weight.sum())
            pair = [whole - positive, positive]
            return np.array([pair]) if rows.host else torch.stack(pair)[None], None
        ones = torch.ones_like(rows.logits.view(len(rows.actual), -1)[:, 0])
        empty = ones.new_zeros(self.shape[1])
        return rows.small(empty.index_add_(0, rows.place, rows.weighed(ones))[None]), None

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self.kind is None:
            return Priced(0.0, multipliers, totals)
        u = self.fixed if is_tensor(totals) else self._fixed
        if self.kind == "balanced":
            u = inverse(totals) / self.cells.side
        mean = (u * totals).sum() / self.cells.labels
        return Priced(0.0, multipliers, u * inverse(mean))

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory, step
        plain = rows.weighed(cross_entropy_pull(rows))
        if self.kind is None:
            return plain.mul_(scale / self.cells.labels)
        u = (1 + on * (prices[0] - 1)) * (scale / self.cells.labels)
        if plain.ndim == 1:
            return plain.mul_(by_class(rows, u))
        return plain.mul_(torch.as_tensor(u).to(plain).index_select(0, rows.place)[:, None])

    def base(self, rows: Batch) -> Any:
        return cross_entropy(rows) / self.cells.labels

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        del priced, on
        return base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        del violations, share
        return multipliers

    def check(self, rows: Batch) -> None:
        check_values(rows, self.cells)

    def whole(self, totals: Any) -> Any:
        return totals.sum() / self.cells.labels

    def presence(self, totals: Any) -> Any:
        mass = totals.reshape(self.cells.labels, self.cells.side)
        return ((mass[:, 1] if self.cells.several else mass[0]) > 0) * 1.0

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        return []
