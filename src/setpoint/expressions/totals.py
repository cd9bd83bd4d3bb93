"""Totals: sums over rows, the leaves that every metric of decisions is made of.

Total(q) = Σᵢ wᵢ qᵢ          Rate(q | e) = Total(q ∧ e) / Total(e)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from setpoint._core.arrays import namespace
from setpoint.expressions.arithmetic import Expression, Ratio
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.leaf import Leaf
from setpoint.expressions.node import ATOM
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    CORRECT,
    DECIDED,
    EVERYTHING,
    KEPT,
    Event,
    Side,
)
from setpoint.expressions.value_intervals import NONNEGATIVE, Interval


@dataclass(frozen=True, eq=False, repr=False)
class Total(Leaf):
    """Σᵢ wᵢ qᵢ membershipᵢ(event), with q = 1 or an error of regression."""

    event: Event = EVERYTHING
    quantity: str = "one"

    merges = "sum"

    @property
    def need(self) -> str:
        """Decisions, unless none enters."""
        return "rows" if self.threshold_free() else "decisions"

    def of(self, side: Side) -> Total:
        return Total(self.event.of(side), self.quantity)

    def within(self, event: Event) -> Total:
        return Total(self.event & event, self.quantity)

    def measure(self, columns: Columns) -> Any:
        return columns.total(self.event, self.quantity)

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def reading(self, state: Any) -> Reading:
        return Reading(state)

    def text(self) -> tuple[str, int]:
        amount = "" if self.quantity == "one" else f"{self.quantity} of "
        return f"[{amount}{self.event}]", ATOM

    def latex(self) -> str:
        return rf"\#[\text{{{self.text()[0][1:-1]}}}]"

    def key(self) -> tuple:
        """Written out, since every reading looks its totals up by it."""
        return self._key

    @cached_property
    def _key(self) -> tuple:
        return ("Total", self.event.key(), self.quantity)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Total):
            return self.quantity == other.quantity and self.event == other.event
        return super().__eq__(other)

    def interval(self) -> Interval:
        return NONNEGATIVE

    def threshold_free(self) -> bool:
        """Whether no decision enters it."""
        return self.quantity == "one" and not self.event.about(DECIDED, CORRECT, KEPT)

    def speaks_of_one_class(self) -> bool:
        """Whether it counts "the class in question" without saying which."""
        return any(literal.value is None for literal in self.event.about(DECIDED, ACTUAL))


@dataclass(frozen=True, eq=False, repr=False)
class Spread(Leaf):
    """Σᵢ wᵢ (yᵢ − ȳ)² of the targets in an event.

    The state is (W, ȳ, S). Two shards merge as in Chan, Golub & LeVeque (1983), which keeps the
    digits that Σ w y² − (Σ w y)²/W would cancel:

        S = S₁ + S₂ + (ȳ₁ − ȳ₂)² W₁ W₂ / (W₁ + W₂)
    """

    event: Event = EVERYTHING

    merges = "moments"

    @property
    def need(self) -> str:
        """The targets alone."""
        return "rows"

    def of(self, side: Side) -> Spread:
        return self

    def within(self, event: Event) -> Spread:
        return Spread(self.event & event)

    def measure(self, columns: Columns) -> Any:
        y = columns.actual
        xp = namespace(y)
        weight = xp.ones_like(y) if columns.weight is None else columns.weight
        member = columns.membership(self.event)
        weight = weight if member is None else weight * member
        mass = weight.sum()
        # Seen from one of its own rows the mean of equal targets is exact, and their spread 0.
        pivot = y[weight > 0][:1].sum()
        mean = pivot + (weight * (y - pivot)).sum() / _divisor(mass)
        return mass, mean, (weight * (y - mean) ** 2).sum()

    def merge(self, a: Any, b: Any) -> Any:
        mass = a[0] + b[0]
        apart, share = b[1] - a[1], b[0] / _divisor(mass)
        return mass, a[1] + apart * share, a[2] + b[2] + apart**2 * a[0] * share

    def reading(self, state: Any) -> Reading:
        return Reading(state[2])

    def text(self) -> tuple[str, int]:
        return f"[spread of targets where {self.event}]", ATOM

    def latex(self) -> str:
        return r"\sum_i w_i (y_i - \bar{y})^2"

    def interval(self) -> Interval:
        return NONNEGATIVE


def _divisor(mass: Any) -> Any:
    return namespace(mass).where(mass > 0, mass, mass + 1)


def rate(of: Event, given: Event = EVERYTHING, empty: float = 0.0) -> Expression:
    """Rate(of | given) = Total(of ∧ given) / Total(given); ``empty`` is its value where 0/0."""
    return Ratio(Total(of & given), Total(given), empty)
