"""Pairwise: a ranking goal as a loss over all pairs of a batch, by sorting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setpoint._core.errors import KindError
from setpoint._core.options import number
from setpoint.expressions import Auroc, Curve, PrecisionOverRecall
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import EVERYTHING
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
from setpoint.methods.method import Method, Recovered, ready
from setpoint.methods.pair_sums import (
    auroc_and_gradient,
    auroc_loss,
    average_precision_and_gradient,
)
from setpoint.programs import GathersRows, Priced, StreamProgram
from setpoint.programs.column_rules import Checked


@dataclass(frozen=True)
class Pairwise(Method):
    """Train on auroc, whole or inside bounds of both rates, or on average precision.

    Parameters
    ----------
    surrogate : {"squared-hinge", "laplace", "logistic"}
        Of a pair's order, for auroc; see :func:`setpoint.methods.pair_sums.auroc_loss`.
    margin : float
        Of the squared hinge.
    temperature : float, optional
        Of the other surrogates (1 by default), and of the smooth ranks of average precision (0.1).
    cross_entropy : float
        Share of cross-entropy mixed in, in [0, 1].
    """

    surrogate: str = "squared-hinge"
    margin: float = 1.0
    temperature: float | None = None
    cross_entropy: float = 0.0

    name = "pairwise"
    summary = "auroc and average precision over all pairs of a batch, in O(n log n)"

    def __post_init__(self) -> None:
        number("cross_entropy", self.cross_entropy, 0, 1, error=KindError)
        one = torch.zeros(2)
        t = self.temperature
        options: dict[str, Any] = {} if t is None else {"temperature": t}
        auroc_loss(one, one, surrogate=self.surrogate, margin=self.margin, **options)  # or refuses

    def objection(self, goal: Goal, task: Task) -> str | None:
        if task.kind != "binary":
            return f'method="pairwise" ranks one class; a {task.kind} task has none of its own'
        leaf = _curve(goal)
        if leaf is None or goal.constraints or goal.sign < 0:
            return (
                f'"{goal}": method="pairwise" maximizes auroc or average_precision, without '
                "constraints"
            )
        if leaf.where != EVERYTHING or leaf.label is not None or leaf.by is not None:
            return f'"{goal}" is taken over some of the rows; method="pairwise" ranks all of them'
        if isinstance(leaf, PrecisionOverRecall) and leaf.min_recall:
            return f'"{goal}": only the whole curve, average_precision, has a pairwise loss'
        return None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        ready(self, goal, task)
        return PairwiseProgram(Cells(Task.binary(task.positive)), _curve(goal), self)

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        raise KindError("a pairwise loss keeps no totals of the goal; evaluate auroc on rows")


class Ranked(NamedTuple):
    """A batch with the loss of its pairs and the gradient of that."""

    batch: Batch
    loss: Any
    gradient: Tensor

    @property
    def logits(self) -> Tensor:
        """The batch's logits."""
        return self.batch.logits

    @property
    def host(self) -> bool:
        """As for the batch."""
        return self.batch.host

    @property
    def checked(self) -> Checked:
        """As for the batch."""
        return self.batch.checked

    def small(self, x: Any) -> Any:
        """As for the batch."""
        return self.batch.small(x)


class PairwiseProgram(GathersRows, StreamProgram):
    """The mean over pairs of a batch; a batch of one class has no pair and pulls nothing."""

    def __init__(self, cells: Cells, leaf: Any, method: Pairwise) -> None:
        super().__init__()
        self.cells = cells
        self.leaf = leaf
        self.method = method
        self.shape = (1, 2)
        self.register_buffer("start", torch.zeros(0), persistent=False)

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Ranked:
        del group
        batch = take_batch(self.cells, outputs, target, weight, None)
        loss, gradient = self._loss(batch.logits, batch.actual, batch.weight)
        return Ranked(batch, batch.small(loss), gradient)

    def mass(self, rows: Ranked) -> tuple[Any, int]:
        return batch_mass(rows.batch, self.cells)

    def measure(self, rows: Ranked, step: Tensor) -> tuple[Any, Any]:
        del step
        positive = rows.batch.weighed(rows.batch.actual).sum()
        pair = torch.stack([positive * 0 + self.mass(rows)[0] - positive, positive])
        return rows.small(pair[None]), None

    def _loss(self, z: Tensor, y: Tensor, w: Tensor | None) -> Any:
        method, t = self.method, self.method.temperature
        if not isinstance(self.leaf, Auroc):
            return average_precision_and_gradient(z, y, w, temperature=0.1 if t is None else t)
        return auroc_and_gradient(
            z,
            y,
            w,
            surrogate=method.surrogate,
            margin=method.margin,
            temperature=1.0 if t is None else t,
            max_fpr=self.leaf.max_fpr,
            min_tpr=self.leaf.min_tpr,
        )

    def price(self, totals: Any, multipliers: Any) -> Priced:
        return Priced(0.0, multipliers, totals)

    def pull(
        self, rows: Ranked, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory, prices, on, step
        c, batch = self.method.cross_entropy, rows.batch
        gradient = rows.gradient * ((1 - c) * scale * self.mass(rows)[0])
        if not c:
            return gradient
        return gradient.add_(batch.weighed(cross_entropy_pull(batch)).mul_(c * scale))

    def base(self, rows: Ranked) -> Any:
        c = self.method.cross_entropy
        pairs = (1 - c) * rows.loss * self.mass(rows)[0]
        return pairs + c * cross_entropy(rows.batch) if c else pairs

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        del priced, on
        return base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        del violations, share
        return multipliers

    def check(self, rows: Ranked) -> None:
        check_values(rows.batch, self.cells)

    def whole(self, totals: Any) -> Any:
        return totals.sum()

    def presence(self, totals: Any) -> Any:
        return (totals[0] > 0) * 1.0

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        share = float(unseen.max())
        if share <= 0.2:
            return []
        return [
            f"{share:.0%} of the batches hold rows of one class only, and so no pair: take larger "
            "batches"
        ]


def _curve(goal: Goal) -> Curve | None:
    body = unnamed(goal.objective)
    return body if isinstance(body, Auroc | PrecisionOverRecall) else None
