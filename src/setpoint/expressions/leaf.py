"""Leaves: the parts of an expression that look at rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from setpoint.expressions.arithmetic import Expression
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import Event, Side


class Leaf(Expression):
    """A part of an expression that is measured on rows and then merged over shards.

    ``merges`` says how: ``"sum"`` (totals), ``"moments"`` or ``"concatenate"`` (ranking metrics).
    """

    merges: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()  #: fields a user may set by keyword

    @abstractmethod
    def of(self, side: Side) -> Self:
        """The leaf with the class in question filled in."""

    @abstractmethod
    def within(self, event: Event) -> Self:
        """The leaf restricted to the rows of an event."""

    @abstractmethod
    def measure(self, columns: Columns) -> Any:
        """The leaf's state on these rows."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """The state on the rows of ``a`` and ``b`` together."""

    @abstractmethod
    def reading(self, state: Any) -> Reading:
        """The leaf's value from its state."""

    def read(self, env: Mapping[Any, Any]) -> Reading:
        """Look the state up and read it."""
        return self.reading(env[self])

    def children(self) -> tuple[Expression, ...]:
        """A leaf has none, whatever its fields hold."""
        return ()

    def rebuild(self, children: tuple[Expression, ...]) -> Expression:
        """A leaf stays as it is."""
        del children
        return self
