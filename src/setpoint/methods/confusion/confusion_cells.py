"""Cells: the confusion table that every total of decisions is a sum over.

One cell holds the weight of the rows of one group that are actually of class a and decided to be of
class d. A total counts some of the cells, so all totals of a goal are one 0/1 matrix times the
cells, whatever the goal says; and a method only has to fill the cells, with hard decisions or soft.

    binary       (groups, 2, 2)          cells[g, actual, decided]
    multiclass   (groups, K, K)
    multilabel   (groups × L, 2, 2)      one table per label
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from setpoint._core.errors import GoalError
from setpoint.expressions import Columns, Label, Task, Total
from setpoint.expressions.rows.row_events import ACTUAL, CORRECT, DECIDED, Event


@dataclass(frozen=True)
class Cells:
    """The layout of the confusion table of a task.

    Parameters
    ----------
    task : Task
        With its classes, and the values of the group columns that count.
    """

    task: Task
    kind: str = field(init=False)
    several: bool = field(init=False)  #: whether a row has several labels
    width: int = field(init=False)  #: number of classes, or of labels
    labels: int = field(init=False)  #: tables per group: the labels of a multilabel task, else 1
    side: int = field(init=False)  #: number of classes of one table
    groups: tuple[tuple[Label, ...], ...] = field(init=False)  #: in the order of their codes
    shape: tuple[int, int, int] = field(init=False)  #: (tables, actual, decided)

    def __post_init__(self) -> None:
        """Fill in what follows from the task; plain attributes, which torch.compile can follow."""
        task = self.task
        several, width = task.kind == "multilabel", len(task.classes or ())
        width = 2 if task.kind == "binary" else width
        labels, side = (width, 2) if several else (1, width)
        groups = tuple(product(*(values for _, values in task.groups)))
        derived = {
            "kind": task.kind,
            "several": several,
            "width": width,
            "labels": labels,
            "side": side,
            "groups": groups,
            "shape": (len(groups) * labels, side, side),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> Columns:
        """One row per cell, in order; for a multilabel task the rows of each label's own table."""
        tables, side, _ = self.shape
        table, actual, decided = (x.ravel() for x in np.indices((tables, side, side)))
        codes = np.array(self.groups, dtype=object).reshape(len(self.groups), -1)
        groups = {
            name: codes[table // self.labels, j] for j, (name, _) in enumerate(self.task.groups)
        }
        if not self.several:
            binary = self.task.kind == "binary"
            actual, decided = (x.astype(bool) if binary else x for x in (actual, decided))
        else:
            own = np.eye(self.labels, dtype=bool)[table % self.labels]
            actual, decided = (own & x.astype(bool)[:, None] for x in (actual, decided))
        return Columns(self.task, actual, decided, groups=groups)

    def mask(self, total: Total, columns: Columns) -> np.ndarray:
        """The cells that a total counts, (cells,) of 0 and 1; ``columns`` are the cells' own."""
        size = int(np.prod(self.shape))
        counted = np.ones(size, bool)
        member = columns.membership(total.event)
        if member is not None:
            counted &= member
        if self.several:
            label = self._label(total.event)
            table = np.repeat(np.arange(self.shape[0]), self.side**2)
            counted &= table % self.labels == label
        return counted.astype(np.float64)

    def _label(self, event: Event) -> int:
        """The label whose table an event of a multilabel task is counted in."""
        named = {literal.value for literal in event.about(ACTUAL, DECIDED, CORRECT)}
        if len(named) > 1 or None in named:
            raise GoalError(
                "accuracy over all labels at once is no total of single labels; say macro(accuracy)"
            )
        return (self.task.classes or ()).index(named.pop()) if named else 0

    def settled(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients that read a sum over cells as if every decision were right.

        With the mass of cell (a, d) moved to (a, a), Σ weights · cells becomes Σ settled · cells.
        """
        table = weights.reshape(self.shape)
        right = np.diagonal(table, axis1=1, axis2=2)  # (tables, side)
        return np.broadcast_to(right[:, :, None], self.shape).reshape(-1).copy()
