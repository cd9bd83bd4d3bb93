"""A bootstrap, for what has no exact bound: a figure, labelled so, and never a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions.quantities.quantity import Bounds, value_on
from setpoint.expressions import Columns, Expression

DRAWS = 1000
HOW = "bootstrap, not a guarantee"


@dataclass(frozen=True, eq=False, kw_only=True)
class Resampled(Bounds):
    """Percentiles of a bootstrap: how far the figure would move on rows drawn from these.

    No guarantee of any kind, so it proves nothing.
    """

    value: float | None
    draws: np.ndarray
    how: str

    exact = False
    rates = ()

    def lower(self, delta: float) -> float:
        return float(np.quantile(self.draws, delta)) if self.draws.size else float("-inf")

    def upper(self, delta: float) -> float:
        return float(np.quantile(self.draws, 1 - delta)) if self.draws.size else float("inf")

    def proves(self, op: str, bound: float, delta: float) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class ResampledClaim:
    """An expression of which nothing can be proven."""

    ground: Expression
    how: str = HOW

    exact = False

    def on(self, columns: Columns) -> Resampled:
        return Resampled(
            value=value_on(self.ground, columns),
            draws=_drawn_values(self.ground, columns),
            how=self.how,
        )


def _drawn_values(ground: Expression, columns: Columns) -> np.ndarray:
    """The expression on rows drawn with replacement (queries, where there are any)."""
    random = np.random.default_rng(0)
    draws = []
    units = None
    if columns.query is not None:
        units = [np.flatnonzero(columns.query == q) for q in np.unique(columns.query)]
    count = DRAWS if columns.size <= 20_000 else max(50, 20_000_000 // columns.size)
    for _ in range(count):
        if units is None:
            rows = random.integers(0, columns.size, columns.size)
        else:
            rows = np.concatenate([units[i] for i in random.integers(0, len(units), len(units))])
        part = columns.take(rows)
        try:
            reading = ground.read({leaf: leaf.measure(part) for leaf in ground.leaves()})
        except DataError:
            continue  # rows without one of the classes
        if bool(reading.defined):
            draws.append(float(reading.value))
    return np.array(draws)
