"""Events: what an example must satisfy to be counted.

An event is a conjunction of literals over named columns. Its membership is one number in [0, 1]
per example, the product of its literals' memberships:

    membership(decided ∧ actual)ᵢ = sᵢ · yᵢ
    membership(¬decided ∧ actual)ᵢ = (1 − sᵢ) · yᵢ

so that TP + FN = Σ wᵢ yᵢ = P holds by construction, for hard decisions and for soft ones.
"""

from __future__ import annotations

from dataclasses import dataclass

DECIDED = "decided"
ACTUAL = "actual"
CORRECT = "correct"
KEPT = "kept"
BIN = "bin"
RESERVED = (DECIDED, ACTUAL, CORRECT, KEPT, BIN)

Label = str | int | float | bool | None


@dataclass(frozen=True)
class Literal:
    """One condition on one column: ``column = value``, or its negation.

    For the columns ``decided`` and ``actual`` the value None stands for *the class in question*:
    the positive class of a binary task, or the class that ``of`` fills in.
    """

    column: str
    value: Label = None
    holds: bool = True

    def of(self, label: Label) -> Literal:
        """Fill in the class in question."""
        if self.column in (DECIDED, ACTUAL) and self.value is None:
            return Literal(self.column, label, self.holds)
        return self

    def __str__(self) -> str:
        name = self.column if self.value is None else f"{self.column}={self.value}"
        return name if self.holds else f"not {name}"


@dataclass(frozen=True)
class Event:
    """A conjunction of literals; the empty one holds for every example."""

    literals: frozenset[Literal] = frozenset()

    def __and__(self, other: Event) -> Event:
        return Event(self.literals | other.literals)

    def of(self, label: Label) -> Event:
        """Fill in the class in question in every literal."""
        return Event(frozenset(literal.of(label) for literal in self.literals))

    def about(self, *columns: str) -> tuple[Literal, ...]:
        """The literals on the given columns."""
        return tuple(literal for literal in self.literals if literal.column in columns)

    def without(self, *columns: str) -> Event:
        """The event without its literals on the given columns."""
        return Event(frozenset(x for x in self.literals if x.column not in columns))

    def key(self) -> tuple:
        """A sortable, hashable form."""
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
kept = event(Literal(KEPT))
