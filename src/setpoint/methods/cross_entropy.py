"""Cross-entropy, plain and class-weighted: the baseline that every comparison includes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import SMALL, inverse, is_tensor, tally, total, where
from setpoint._core.errors import KindError
from setpoint._core.options import numbers
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import (
    Batch,
    batch_mass,
    check_values,
    cross_entropy,
    cross_entropy_pull,
    take_batch,
)
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.soft_decisions import by_class
from setpoint.methods.method import Method, Recovered, not_totals, ready
from setpoint.methods.training_hints import FitSize, Phase, TrainingHints, TreeGradient
from setpoint.programs import Priced, StreamProgram

#: powers of the inverse class frequencies that a search tries: none, their root, the full balance
POWERS = (0.0, 0.5, 1.0)


def frequency_weights(size: FitSize, task: Task, power: float) -> tuple[float, ...]:
    """(1 / frequency)^power of each class, of mean 1 before; of a label, negatives to positives.

    >>> size = FitSize(rows=8, tune_rows=2, class_rows=(6, 2), steps=1)
    >>> frequency_weights(size, Task.binary(), 1.0)
    (0.5, 1.5)
    """
    counts = torch.tensor(size.class_rows, dtype=torch.float64)
    if task.kind == "multilabel":
        share = (counts / size.rows).clamp(1 / size.rows, 1 - 1 / size.rows)
        u = (1 - share) / share
    else:
        u = 1 / counts.clamp(min=1)
        u = u / u.mean()
    return tuple((u**power).tolist())


@dataclass(frozen=True)
class CrossEntropy(Method):
    """Σ wᵢ u[yᵢ] CEᵢ / Σ wᵢ u[yᵢ]; the goal only chooses the threshold afterwards.

    That is what the gradient descends; the value shown is the plain mean, which can be compared
    between weights.

    Parameters
    ----------
    class_weight : None, "balanced", "search" or sequence of float
        u, one weight per class, or per label that of its positives. "balanced": rows / (classes ·
        rows of the class), from the running totals. "search": the power of it that is best on the
        tune rows, which only an estimator has.
    """

    class_weight: str | Sequence[float] | None = None

    name = "cross-entropy"
    summary = "plain or class-weighted cross-entropy; the goal chooses the threshold afterwards"
    hints = TrainingHints(goal_driven=False, tree_gradient=TreeGradient.LOG_LOSS)

    def __post_init__(self) -> None:
        u = self.class_weight
        if u is None or (isinstance(u, str) and u in ("balanced", "search")):
            return
        each = 'one per class; or None, "balanced" or "search"'
        u = numbers("class_weight", u, 0, open_low=True, each=each, error=KindError)
        object.__setattr__(self, "class_weight", u)

    def objection(self, goal: Goal, task: Task) -> str | None:
        if self.class_weight == "search":
            return (
                'class_weight="search" needs tune rows to search on: it is for GoalClassifier; a '
                'loss takes None, "balanced" or one number per class'
            )
        if task.kind in ("ranking", "regression") or (
            task.kind != "binary" and task.classes is None
        ):
            return not_totals(goal, task)
        if isinstance(self.class_weight, tuple):
            width = 2 if task.kind == "binary" else len(task.classes or ())
            if len(self.class_weight) != width:
                return f"class_weight holds {len(self.class_weight)} weights for {width} classes"
        return None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        ready(self, goal, task)
        return CrossEntropyProgram(Cells(replace(task, groups=())), goal, self.class_weight)

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        del multipliers
        raise KindError("cross-entropy pursues no goal of its own; tune a threshold and evaluate")

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        if self.class_weight != "search":
            return super().schedule(goal, task, size)
        return tuple(
            Phase(
                method=CrossEntropy(frequency_weights(size, task, power) if power else None),
                name=f"cross-entropy, weights^{power:g}",
                hints=self.hints,
                note=f"class weights: (1 / frequency)^{power:g} was best on the tune rows",
            )
            for power in POWERS
        )

    def classifier_objection(self, goal: Goal, classifier: str) -> str | None:
        if self.class_weight is None:
            return None
        return (
            f"class_weight={self.class_weight!r} is for networks; give {classifier} its own "
            'class_weight, or say method="costs"'
        )


class CrossEntropyProgram(StreamProgram):
    """(Class-weighted) cross-entropy; its totals are the rows of each class, its prices weights."""

    def __init__(
        self, cells: Cells, goal: Goal, class_weight: str | Sequence[float] | None
    ) -> None:
        super().__init__()
        self.cells = cells
        self.goal = goal
        self.kind = class_weight
        self.shape = (1, cells.labels * cells.side)
        self.register_buffer("start", torch.zeros(0), persistent=False)
        u = torch.ones(cells.labels, cells.side)
        if isinstance(class_weight, tuple) and cells.several:
            u[:, 1] = torch.tensor(class_weight)
        elif isinstance(class_weight, tuple):
            u[0] = torch.tensor(class_weight)
        self.register_buffer("fixed", u.view(1, -1), persistent=False)
        self._fixed = u.view(1, -1).double().numpy()

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Batch:
        return take_batch(self.cells, outputs, target, weight, None)

    def mass(self, rows: Batch) -> tuple[Any, int]:
        return batch_mass(rows, self.cells)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        if self.cells.task.kind == "binary":
            positive = rows.total(rows.y)
            pair = [rows.mass - positive, positive]
            return np.array([pair]) if rows.host else torch.stack(pair)[None], None
        like = rows.p if rows.logits.ndim == 1 else rows.p[:, 0]
        return rows.small(tally(rows.place, rows.w, self.shape[1], like)[None]), None

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self.kind is None:
            return Priced(0.0, multipliers, totals)
        if self.kind == "balanced" and isinstance(totals, np.ndarray) and totals.size <= SMALL:
            masses = totals[0].tolist()
            share = self.cells.labels * inverse(sum(x > 0 for x in masses))
            return Priced(0.0, multipliers, np.array([[share * inverse(x) for x in masses]]))
        if self.kind == "balanced":  # Σ u · totals is the number of classes that have a row
            mean, u = total(totals > 0) / self.cells.labels, inverse(totals)
        else:
            u = self.fixed if is_tensor(totals) else self._fixed
            mean = total(u * totals) / self.cells.labels
        return Priced(0.0, multipliers, u * inverse(mean))

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory, step
        scale = scale / self.cells.labels
        if self.kind is not None:
            u = where(on > 0, prices[0] * scale, 0 * prices[0] + scale)
        if rows.logits.ndim == 1:
            slope = rows.p - rows.y
            slope *= scale if self.kind is None else by_class(rows, u)
            return rows.gradient(slope)
        plain = rows.weighed(cross_entropy_pull(rows))
        if self.kind is None:
            return plain.mul_(scale)
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
        return total(totals) / self.cells.labels

    def presence(self, totals: Any) -> Any:
        mass = totals.reshape(self.cells.labels, self.cells.side)
        return ((mass[:, 1] if self.cells.several else mass[0]) > 0) * 1.0

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        return []
