"""What can be proven of an expression: bounds for trees of rates.

    a rate                exact binomial, or bets                           (rate)
    the least of several  its lower bound is the least of theirs, each at the full level δ
    a·M₁ + b·M₂ + c       of two rates on separate rows: p-values joined    (two_rates)
    mcc, kappa            three rates and where they are least              (mcc_kappa)
    anything else         its rates each at a share of δ, by monotonicity   (overlapping_rates)
    no rate at all        a bootstrap, a figure and never a proof           (bootstrap)

Each begins as a *claim*, which follows from the goal and the population alone;
``claim.on(columns)`` is the quantity of some rows. That has ``value``, ``lower(δ)``, ``upper(δ)``
(one-sided, error at most δ), ``how`` in words, the ``rates`` behind it, and ``exact``: whether its
bounds are a guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from setpoint.decisions.quantities.rate import Rate
from setpoint.expressions import Columns, Expression


class Quantity(Protocol):
    """A value on these rows, and what holds of it on all rows."""

    @property
    def value(self) -> float | None: ...
    @property
    def how(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def rates(self) -> tuple[Rate, ...]: ...
    def lower(self, delta: float) -> float: ...
    def upper(self, delta: float) -> float: ...
    def proves(self, op: str, bound: float, delta: float) -> bool: ...


class Claim(Protocol):
    """A quantity before its rows; ``exact``: whether its bounds will be a guarantee."""

    @property
    def exact(self) -> bool: ...
    def on(self, columns: Columns) -> Quantity: ...


@dataclass(frozen=True, eq=False)
class Bounds(ABC):
    """What follows from the two bounds."""

    def proves(self, op: str, bound: float, delta: float) -> bool:
        """Whether the bound lies beyond the one asked for."""
        if op == ">=":
            return self.lower(delta) >= bound
        return self.upper(delta) <= bound

    @abstractmethod
    def lower(self, delta: float) -> float:
        """The quantity is at least this, with error at most δ."""

    @abstractmethod
    def upper(self, delta: float) -> float:
        """The quantity is at most this, with error at most δ."""


@dataclass(frozen=True, eq=False)
class ConstantQuantity(Bounds):
    """A number: a claim and a quantity at once."""

    value: float
    how = "constant"
    exact = True
    rates = ()

    def on(self, columns: Columns) -> ConstantQuantity:
        return self

    def lower(self, delta: float) -> float:
        return self.value

    def upper(self, delta: float) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class ExtremeClaim:
    """The least (sign 1) or the greatest (sign −1) of several claims."""

    sign: int
    items: tuple[Claim, ...]

    @property
    def exact(self) -> bool:
        return all(item.exact for item in self.items)

    def on(self, columns: Columns) -> Extreme:
        return Extreme(self.sign, tuple(item.on(columns) for item in self.items))


@dataclass(frozen=True, eq=False)
class Extreme(Bounds):
    """The least (sign 1) or the greatest (sign −1) of several quantities.

    With i the one that is least on all rows, Lᵢ alone must hold for min L to hold: no division of
    δ (intersection–union). That *some* one is low needs a share of δ for each.
    """

    sign: int
    items: tuple[Quantity, ...]

    @property
    def value(self) -> float | None:
        values = [item.value for item in self.items]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            return None
        return min(known) if self.sign > 0 else max(known)

    @property
    def _varying(self) -> int:
        return max(1, sum(not isinstance(item, ConstantQuantity) for item in self.items))

    @property
    def how(self) -> str:
        return said(self.items) + ", part by part"

    @property
    def exact(self) -> bool:
        return all(item.exact for item in self.items)

    @property
    def rates(self) -> tuple[Rate, ...]:
        return _rates(self.items)

    def lower(self, delta: float) -> float:
        if self.sign > 0:
            return self._end(">=", min, delta)
        return max(item.lower(delta / self._varying) for item in self.items)

    def upper(self, delta: float) -> float:
        if self.sign > 0:
            return min(item.upper(delta / self._varying) for item in self.items)
        return self._end("<=", max, delta)

    def _end(self, op: str, pick: Callable[..., float], delta: float) -> float:
        """The bound of the item that sets it; one test tells those that do not."""
        known: list[float] = []
        order = sorted(self.items, key=lambda i: self.sign * (0.0 if i.value is None else i.value))
        for item in order:
            if not known or not item.proves(op, pick(known), delta):
                known.append(item.lower(delta) if op == ">=" else item.upper(delta))
        return pick(known)

    def proves(self, op: str, bound: float, delta: float) -> bool:
        every = (op == ">=") == (self.sign > 0)
        share = delta if every else delta / self._varying
        proven = [item.proves(op, bound, share) for item in self.items]
        return all(proven) if every else any(proven)


def value_on(ground: Expression, columns: Columns) -> float | None:
    """A ground expression on some rows; None where it is empty."""
    reading = ground.read({leaf: leaf.measure(columns) for leaf in ground.leaves()})
    return float(reading.value) if bool(reading.defined) else None


def _rates(items: tuple[Quantity, ...]) -> tuple[Rate, ...]:
    return tuple(dict.fromkeys(r for item in items for r in item.rates))


def said(items: tuple[Any, ...]) -> str:
    """How several quantities are bounded, each way once."""
    bounded = (item for item in items if not isinstance(item, ConstantQuantity))
    return " and ".join(dict.fromkeys(item.how for item in bounded))
