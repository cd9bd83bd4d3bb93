"""A bootstrap, for what has no exact bound: a figure, labelled so, and never a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions.quantities.quantity import Bounds
from setpoint.expressions import Columns, Expression

DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Resampled(Bounds):
    """Percentiles of a bootstrap: how far the figure would move on rows drawn from these.

    No guarantee of any kind, so it proves nothing.
    """

    value: float | None
    draws: np.ndarray
    how: str = "bootstrap, not a guarantee"

    exact = False
    rates = ()

    def lower(self, delta: float) -> float:
        return float(np.quantile(self.draws, delta)) if self.draws.size else float("-inf")

    def upper(self, delta: float) -> float:
        return float(np.quantile(self.draws, 1 - delta)) if self.draws.size else float("inf")

    def proves(self, op: str, bound: float, delta: float) -> bool:
        return False


def resampled(ground: Expression, columns: Columns, value: float | None) -> Resampled:
    """Measure a ground expression on rows drawn with replacement (queries, where there are any)."""
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
    return Resampled(value, np.array(draws))
