"""Cells: the confusion table that every total of decisions is a sum over.

One cell holds the weight of the rows of one group that are actually of class a and decided to be of
class d. A total counts some of the cells, so all totals of a goal are one 0/1 matrix times the
cells, whatever the goal says; and a method only has to fill the cells, with hard decisions or soft.

    binary       (groups, 2, 2)          cells[g, actual, decided]
    multiclass   (groups, K, K)
    multilabel   (groups × L, 2, 2)      one table per label
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from setpoint._core.errors import GoalError
from setpoint.expressions import Columns, Domain, Label, Task, Total
from setpoint.expressions.events import ACTUAL, CORRECT, DECIDED, Event


@dataclass(frozen=True)
class Cells:
    """The layout of the confusion table of a task.

    Parameters
    ----------
    task : Task
        With its classes, and the values of the group columns that count.
    """

    task: Task

    @cached_property
    def kind(self) -> str:
        """Kind of the task."""
        return self.task.kind

    @cached_property
    def several(self) -> bool:
        """Whether a row has several labels."""
        return self.task.kind == "multilabel"

    @cached_property
    def width(self) -> int:
        """Number of classes, or of labels."""
        return 2 if self.task.kind == "binary" else len(self.task.classes or ())

    @cached_property
    def labels(self) -> int:
        """Number of tables per group: the labels of a multilabel task, else 1."""
        return self.width if self.several else 1

    @cached_property
    def side(self) -> int:
        """Number of classes of one table."""
        return 2 if self.several else self.width

    @cached_property
    def groups(self) -> tuple[tuple[Label, ...], ...]:
        """The groups, each as one value per group column, in the order of their codes."""
        return tuple(product(*(values for _, values in self.task.groups)))

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """(tables, actual, decided)."""
        return len(self.groups) * self.labels, self.side, self.side

    @cached_property
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

    @property
    def domain(self) -> Domain:
        """The domain that goals of this task are expanded over."""
        return Domain(self.columns)

    def mask(self, total: Total) -> np.ndarray:
        """The cells that a total counts, (cells,) of 0 and 1."""
        size = int(np.prod(self.shape))
        counted = np.ones(size, bool)
        member = self.columns.membership(total.event)
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
        return self.columns.classes.index(named.pop()) if named else 0

    def settled(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients that read a sum over cells as if every decision were right.

        With the mass of cell (a, d) moved to (a, a), Σ weights · cells becomes Σ settled · cells.
        """
        table = weights.reshape(self.shape)
        right = np.diagonal(table, axis1=1, axis2=2)  # (tables, side)
        return np.broadcast_to(right[:, :, None], self.shape).reshape(-1).copy()
