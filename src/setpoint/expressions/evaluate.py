"""From an expression and rows to a value, in three steps that each stand alone.

    ground  = expression.expand(columns)     names and "by=" resolved into totals
    totals  = measure(ground, columns)       one state per leaf; states of shards merge
    reading = ground.read(totals)            arithmetic only

Totals are what crosses a process boundary; metrics are never averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from setpoint._core.errors import DataError
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.domain import Domain
from setpoint.expressions.rows.task import Task

if TYPE_CHECKING:
    from setpoint.expressions.leaf import Leaf
    from setpoint.expressions.node import Node


class Reading(NamedTuple):
    """A value and where it is defined; an undefined rate (0/0) carries its conventional value."""

    value: Any
    defined: Any = True


@dataclass(frozen=True, eq=False)
class Totals(Mapping["Leaf", Any]):
    """The states of the leaves of a ground expression; ``a + b`` merges two shards.

    Examples
    --------
    >>> import setpoint as sp
    >>> first = sp.precision.totals([1, 0], [1, 1])
    >>> second = sp.precision.totals([1, 1], [1, 0])
    >>> (first + second).value()
    0.6666666666666666
    """

    ground: Node
    states: dict[Leaf, Any]
    task: Task

    def __getitem__(self, leaf: Leaf) -> Any:
        return self.states[leaf]

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)

    def __add__(self, other: Totals) -> Totals:
        if not isinstance(other, Totals):
            return NotImplemented
        if self.ground.key() != other.ground.key() or self.task != other.task:
            raise DataError(
                "these totals speak of different labels, bins or groups and cannot be merged; "
                "declare them in the task: Task.multiclass(classes), Task.regression(edges), "
                "Task.binary(positive, groups={column: values})"
            )
        merged = {leaf: leaf.merge(a, other.states[leaf]) for leaf, a in self.states.items()}
        return Totals(self.ground, merged, self.task)

    def __radd__(self, other: object) -> Totals:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def value(self) -> Any:
        """The value of the expression: a float, or a 0-dimensional tensor for tensors."""
        value = self.ground.read(self).value
        return (
            float(value) if isinstance(value, int | float) or not hasattr(value, "ndim") else value
        )

    def defined(self) -> bool:
        """Whether the value is more than a convention: no rate in it is empty (0/0)."""
        return bool(self.ground.read(self).defined)


def measure(expression: Node, columns: Columns) -> Totals:
    """Expand the expression over the columns' classes and groups and take its totals."""
    ground = expression.expand(Domain(columns))
    states = {leaf: leaf.measure(columns) for leaf in ground.leaves()}
    return Totals(ground, states, columns.task)
