"""Columns: the rows of a problem, checked at the door and ready to be counted.

``Columns`` knows the membership of every row in a literal; everything above asks it only that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import Argument, DataError, Phrase, Spelling
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    BIN,
    CORRECT,
    DECIDED,
    KEPT,
    Event,
    Label,
    Literal,
)
from setpoint.expressions.rows.task import Task

ABSOLUTE_ERROR = "absolute error"  #: what a total adds up of each row; other amounts: squared error


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows under their columns' names; arrays have one entry (or row) per example.

    Parameters
    ----------
    task : Task
        With its classes filled in.
    actual : array
        Binary: bool (n,). Multiclass: class index (n,), −1 for none. Multilabel: bool (n, L).
        Ranking and regression: float (n,).
    decided : array, optional
        Like ``actual`` for hard decisions; memberships in [0, 1], (n,) or (n, K), for soft ones;
        float (n,) predictions for regression.
    scores : array, optional
        (n,), or (n, K) for multiclass and multilabel.
    weight : array, optional
        (n,), non-negative; None counts every row once.
    groups : mapping of str to numpy.ndarray
        Group columns, (n,) each.
    query : numpy.ndarray, optional
        (n,) query of each row.
    abstained : array, optional
        (n,) bool; rows on which no decision was taken.
    """

    task: Task
    actual: Array
    decided: Array | None = None
    scores: Array | None = None
    weight: Array | None = None
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    query: np.ndarray | None = None
    abstained: Array | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.actual.shape[0])

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes in order; of a binary task the negative one first."""
        return self.task.sides

    @property
    def abstains(self) -> bool:
        """Whether rows may be left undecided."""
        return self.abstained is not None

    def group_values(self, column: str) -> tuple[Label, ...]:
        """The values of a group column: the declared ones, else those seen, sorted."""
        declared = self.task.group_values(column)
        if declared is not None:
            return declared
        return tuple(np.unique(self.group(column)).tolist())

    def group(self, column: str) -> np.ndarray:
        """A group column by name."""
        if column not in self.groups:
            names = list(self.groups)
            python = "group=…" if column == "group" else f'group={{"{column}": …}}'
            hint = did_you_mean(column, names, f"given: {listing(names)}") if names else ""
            hint = f"; {hint}" if hint else ""
            raise DataError(
                'the goal speaks of the column "{column}": {way}{hint}',
                column=column,
                way=Spelling(
                    f"pass it as {python}", Phrase("add {group}", group=Argument("group", column))
                ),
                hint=hint,
            )
        return self.groups[column]

    def on_host(self) -> Columns:
        """The same rows as numpy arrays, for whatever sorts."""
        return self._map(to_numpy)

    def take(self, rows: np.ndarray) -> Columns:
        """Some of the rows, by mask or index; columns on the host."""
        return self._map(lambda column: column[rows])

    def sample(self, size: int, seed: int = 0) -> Columns:
        """Some rows of a binary task, in their order; all of them where a class would be lost."""
        if self.size <= size:
            return self
        rows = np.random.default_rng(seed).choice(self.size, size, replace=False)
        part = self.take(np.sort(rows))
        return part if 0 < np.count_nonzero(part.actual) < part.size else self

    def _map(self, change: Callable[[Array], Array]) -> Columns:
        def changed(column: Array | None) -> Array | None:
            return None if column is None else change(column)

        return Columns(
            task=self.task,
            actual=change(self.actual),
            decided=changed(self.decided),
            scores=changed(self.scores),
            weight=changed(self.weight),
            groups={name: change(column) for name, column in self.groups.items()},
            query=changed(self.query),
            abstained=changed(self.abstained),
        )

    # --- memberships -------------------------------------------------------------------------

    def membership(self, event: Event) -> Array | None:
        """Membership of each row in the event, bool or float (n,); None where all rows belong."""
        members = [self._member(literal) for literal in sorted(event.literals, key=str)]
        members = [m for m in members if m is not None]
        if not members:
            return None
        return reduce(lambda a, b: a & b if _is_bool(a) and _is_bool(b) else a * b, members)

    def _member(self, literal: Literal) -> Array | None:
        if literal.column == ACTUAL:
            return _side(self._column(self.actual, literal.value), literal.holds)
        if literal.column == DECIDED:
            return self._kept(_side(self._column(self._decisions(), literal.value), literal.holds))
        if literal.column == CORRECT:
            return self._kept(_side(self._correct(literal.value), literal.holds))
        if literal.column == KEPT:
            return None if self.abstained is None else ~self.abstained
        if literal.column == BIN:
            return self._like(np.digitize(to_numpy(self.actual), self.task.edges or ()), literal)
        return self._like(self.group(literal.column), literal)

    def _decisions(self) -> Array:
        if self.decided is None:
            raise DataError("this needs decisions, and only scores were given")
        return self.decided

    def _kept(self, member: Array) -> Array:
        if self.abstained is None:
            return member
        kept = ~self.abstained
        return member & kept if _is_bool(member) else member * kept

    def _column(self, values: Array, label: Label) -> Array:
        """Membership in one class of a column of labels."""
        if self.task.kind == "binary":
            if label is None or label == self.classes[1]:
                return values
            self._index(label)
            return _side(values, False)
        index = self._index(label)
        return values[:, index] if values.ndim == 2 else values == index

    def _index(self, label: Label) -> int:
        if label in self.classes:
            return self.classes.index(label)
        hint = did_you_mean(label, self.classes, f"the classes are {listing(self.classes)}.")
        raise DataError(f"there is no class {label!r}: {hint}")

    def _correct(self, label: Label) -> Array:
        """1{decided = actual}; soft: y s + (1 − y)(1 − s), for all labels their product."""
        actual, decided = self.actual, self._decisions()
        if label is not None:
            actual, decided = self._column(actual, label), self._column(decided, label)
        elif self.task.kind == "multiclass":
            if decided.ndim == 1:
                return decided == actual
            own = decided[namespace(decided).arange(self.size), actual]
            return own * (actual >= 0)  # nothing is right about a row of none of the classes
        if _is_bool(decided):
            same = decided == actual
        else:
            y = actual * 1.0
            same = y * decided + (1 - y) * (1 - decided)
        if same.ndim == 1:
            return same
        return same.all(1) if _is_bool(same) else same.prod(1)

    def _like(self, column: np.ndarray, literal: Literal) -> Array:
        """The mask ``column = value`` on the device of the other columns."""
        mask = column == literal.value
        mask = np.broadcast_to(np.asarray(mask), column.shape)
        mask = mask if literal.holds else ~mask
        if not is_tensor(self.actual):
            return mask
        return namespace(self.actual).as_tensor(mask.copy(), device=self.actual.device)

    # --- sums --------------------------------------------------------------------------------

    def total(self, event: Event, quantity: str = "one") -> Any:
        """Σ wᵢ qᵢ membershipᵢ, as a float or a 0-dimensional tensor."""
        factors = self._factors(event, quantity)
        if not factors:
            return float(self.size)
        if is_tensor(self.actual):
            torch = namespace(self.actual)
            exact = [f.to(_wide(torch, f)) for f in factors]
            return reduce(lambda a, b: a * b, exact).sum()
        if len(factors) == 1 and _is_bool(factors[0]):
            return float(np.count_nonzero(factors[0]))
        return float(np.sum(reduce(lambda a, b: a * b, factors), dtype=np.float64))

    def amounts(self, event: Event, quantity: str = "one") -> np.ndarray:
        """wᵢ qᵢ membershipᵢ of each row, whose sum is :meth:`total`; columns on the host."""
        return reduce(lambda a, b: a * b, self._factors(event, quantity), np.ones(self.size))

    def _factors(self, event: Event, quantity: str) -> list[Array]:
        """Weight, membership and quantity of each row, as far as they are not all 1."""
        parts = (self.weight, self.membership(event), self._amount(quantity))
        return [part for part in parts if part is not None]

    def _amount(self, quantity: str) -> Array | None:
        if quantity == "one":
            return None
        error = self._decisions() - self.actual
        return abs(error) if quantity == ABSOLUTE_ERROR else error * error


def _is_bool(x: Array) -> bool:
    return str(x.dtype) in ("bool", "torch.bool")


def _side(member: Array, holds: bool) -> Array:
    if holds:
        return member
    return ~member if _is_bool(member) else 1 - member


def _wide(torch: Any, x: Array) -> Any:
    """float64 where the device has it, so that counts stay exact."""
    if x.is_floating_point() and x.requires_grad:
        return x.dtype
    return torch.float32 if x.device.type == "mps" else torch.float64
