"""Events: what an example must satisfy to be counted.

An event is a conjunction of literals over named columns. Its membership is one number in [0, 1]
per example, the product of its literals' memberships:

    membership(decided ∧ actual)ᵢ = sᵢ · yᵢ
    membership(¬decided ∧ actual)ᵢ = (1 − sᵢ) · yᵢ

so that TP + FN = Σ wᵢ yᵢ = P holds by construction, for hard decisions and for soft ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from setpoint._core.errors import GoalError
from setpoint._core.options import is_real

DECIDED = "decided"
ACTUAL = "actual"
CORRECT = "correct"
KEPT = "kept"
BIN = "bin"
RESERVED = (DECIDED, ACTUAL, CORRECT, KEPT, BIN, "class", "query")  #: no names of group columns

Label = str | int | float | bool | None


@dataclass(frozen=True)
class Not:
    """All classes but one, as a class: the other side of one against the rest."""

    label: Label


Side = Label | Not


def other_side(side: Side) -> Side:
    """The rest, seen from a class; the class, seen from the rest."""
    return side.label if isinstance(side, Not) else Not(side)


def label_of(x: Any, what: str = "a label") -> Label:
    """A label as plain data: text, a number or a truth value; 1.0 is 1, numpy scalars are Python's.

    >>> label_of(1.0), label_of("a")
    (1, 'a')
    """
    item = x.item() if hasattr(x, "item") and getattr(x, "ndim", 1) == 0 else x
    if isinstance(item, str):
        return str(item)
    if isinstance(item, bool):
        return item
    if is_real(item) and math.isfinite(item):
        return int(item) if item == int(item) else float(item)
    raise GoalError(f"{what} is text, a finite number or a truth value; got {x!r}")


@dataclass(frozen=True)
class Literal:
    """One condition on one column: ``column = value``, or its negation.

    For the columns ``decided``, ``actual`` and ``correct`` the value None stands for *the class in
    question*: the positive class of a binary task, or the class that ``of`` fills in. ``correct``
    of a class means decided and actual agree on whether a row is of that class; of none, that
    they agree altogether.
    """

    column: str
    value: Label = None
    holds: bool = True

    def of(self, side: Side) -> Literal:
        """Fill in the class in question."""
        if self.column not in (DECIDED, ACTUAL, CORRECT) or self.value is not None:
            return self
        if not isinstance(side, Not):
            return Literal(self.column, side, self.holds)
        same = self.column == CORRECT  # seen from the rest, agreement is the same thing
        return Literal(self.column, side.label, self.holds if same else not self.holds)

    def __str__(self) -> str:
        name = self.column if self.value is None else f"{self.column}={self.value}"
        return name if self.holds else f"not {name}"


@dataclass(frozen=True)
class Event:
    """A conjunction of literals; the empty one holds for every example."""

    literals: frozenset[Literal] = frozenset()

    def __and__(self, other: Event) -> Event:
        return Event(self.literals | other.literals)

    def of(self, side: Side) -> Event:
        """Fill in the class in question in every literal."""
        return Event(frozenset(literal.of(side) for literal in self.literals))

    def about(self, *columns: str) -> tuple[Literal, ...]:
        """The literals on the given columns."""
        return tuple(literal for literal in self.literals if literal.column in columns)

    def without(self, *columns: str) -> Event:
        """The event without its literals on the given columns."""
        return Event(frozenset(x for x in self.literals if x.column not in columns))

    def key(self) -> tuple:
        """A sortable, hashable form."""
        return self._key

    @cached_property
    def _key(self) -> tuple:
        return tuple(sorted((x.column, repr(x.value), x.holds) for x in self.literals))

    def __str__(self) -> str:
        return " and ".join(sorted(map(str, self.literals))) or "all"


def event(*literals: Literal) -> Event:
    """The conjunction of the given literals."""
    return Event(frozenset(literals))


EVERYTHING = Event()
decided = event(Literal(DECIDED))
not_decided = event(Literal(DECIDED, holds=False))
actual = event(Literal(ACTUAL))
not_actual = event(Literal(ACTUAL, holds=False))
correct = event(Literal(CORRECT))
incorrect = event(Literal(CORRECT, holds=False))
kept = event(Literal(KEPT))
