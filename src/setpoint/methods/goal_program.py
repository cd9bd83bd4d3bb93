"""Base of the programs of all goals: cells, a base loss, the sentences they may have to say."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import total
from setpoint.expressions import Domain, Total
from setpoint.methods.confusion.batch import (
    Batch,
    batch_mass,
    check_values,
    cross_entropy,
    take_batch,
)
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.programs import Priced, StreamProgram

RARE = 0.1  #: a class with a smaller share of the rows is rare


class GoalProgram(StreamProgram):
    """A goal's program over cells: abstract in how a batch fills them and is pulled by prices.

    Parameters
    ----------
    lowered : Lowered or Area
    reader : torch.nn.Module
        Fills the cells: ``read(batch, step) -> (T, cells), memory``.
    start : sequence of float
        Multipliers to start from.
    """

    _reader: Any
    steepness: float = 1.0  #: greatest slope of a soft decision, per p (1 − p) of the logit
    charges_held: bool = False  #: whether what holds softly is charged too, by hard counts

    def __init__(self, lowered: Any, reader: Any, start: Any) -> None:
        super().__init__()
        self.lowered = lowered
        self.reader = reader
        object.__setattr__(self, "_reader", reader)  # found without the search through submodules
        self.cells: Cells = lowered.cells
        self._classes = self.cells.columns.classes
        self.labels = self.cells.labels
        self.shape = (reader.count, int(np.prod(self.cells.shape)))
        self.register_buffer(
            "start", torch.as_tensor(start, dtype=torch.get_default_dtype()).reshape(-1), False
        )

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Batch:
        return take_batch(self.cells, outputs, target, weight, group)

    def mass(self, rows: Batch) -> tuple[Any, int]:
        return batch_mass(rows, self.cells)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        return self._reader.read(rows, step)

    def base(self, rows: Batch) -> Any:
        return cross_entropy(rows) / self.labels

    def check(self, rows: Batch) -> None:
        check_values(rows, self.cells)

    def whole(self, totals: Any) -> Any:
        return total(totals[0]) / self.labels

    def dual_state(self, prices: Any) -> Any:
        """Multipliers at prices in units of the objective; None where only a dual moves them."""
        return prices

    def presence(self, totals: Any) -> Any:
        return (self._actual(totals) > 0) * 1.0

    def _actual(self, totals: Any) -> Any:
        """Mass of the rows of each class; of each label, positive rows only."""
        table = totals[0].reshape(-1, self.cells.labels, self.cells.side, self.cells.side)
        mass = table.sum(0).sum(-1)  # (labels, side)
        return mass[:, 1] if self.cells.several else mass[0]

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        names = self._classes
        sentences = []
        positive = range(1, 2) if self.cells.task.kind == "binary" else range(len(names))
        for k in positive:
            share = float(unseen[k])
            if share > 0.2:
                sentences.append(
                    f"{share:.0%} of the batches hold no row of class {names[k]!r}: shuffle the "
                    "rows if they are sorted, or use larger batches (10 rows of the class or more) "
                    "for the same number of steps"
                )
        mass = self._actual(totals)
        share = float(mass.min()) / max(float(mass.sum()), 1e-12)
        if not self.cells.several and share < RARE and self._counts_errors():
            sentences.append(
                f'"{self.lowered.goal}" weighs every row alike, and the rarest class has '
                f"{share:.1%} of them: deciding the common class always is nearly the best. Name "
                "what the rare class is worth: f1, balanced_accuracy, or a floor on its recall"
            )
        return sentences

    def _counts_errors(self) -> bool:
        """Whether the objective counts errors, each the same, and nothing bounds it."""
        goal = self.lowered.goal
        leaves = goal.objective.expand(Domain(self.cells.columns)).leaves()
        if goal.constraints or not all(isinstance(leaf, Total) for leaf in leaves):
            return False
        return {literal.column for leaf in leaves for literal in leaf.event.literals} <= {"correct"}


class MixedProgram(GoalProgram):
    """A goal's program with a share of the base loss mixed in.

    Parameters
    ----------
    lowered, reader, start
        As for ``GoalProgram``.
    mix : float
        The share.
    """

    def __init__(self, lowered: Any, reader: Any, start: Any, mix: float) -> None:
        super().__init__(lowered, reader, start)
        self.mix = float(mix)

    def shares(self, on: Any, scale: Any) -> tuple[Any, Any]:
        """Of the goal, and of the base loss with its scale."""
        share = on * (1 - self.mix)
        return share, (1 - share) * scale / self.labels

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self.mix)
        return share * priced.value + (1 - share) * base
