"""Real targets: read, parted, standardised, binned, and weighed by how rare they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite, column_or_1d

from setpoint._core.errors import DataError, KindError
from setpoint.datasets import Split, split
from setpoint.expressions import Columns
from setpoint.expressions.rows.row_events import BIN
from setpoint.goals import Goal, Task

BINS = 10
_QUARTERS = 4  #: parts by target that a split has its share of, where there are no bins


@dataclass(frozen=True)
class Scale:
    """How targets are standardised for a model: y = mean + spread · z."""

    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray | None) -> Scale:
        """Mean and standard deviation; the size of targets that do not vary, or 1."""
        mean = float(np.average(y, weights=weight))
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        tiny = 1e-12 * abs(mean)
        return cls(mean, spread if spread > tiny else abs(mean) or 1.0)

    def standardise(self, y: np.ndarray) -> np.ndarray:
        """Targets in units of the model."""
        return (y - self.mean) / self.spread

    def to_units(self, z: np.ndarray) -> np.ndarray:
        """Outputs of a model in the user's units."""
        return self.mean + self.spread * z


def read_targets(y: Any, rows: int) -> np.ndarray:
    """Targets as (n,) finite numbers."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None")
    column = column_or_1d(y, warn=True)
    if column.dtype.kind not in "biufO" and not np.issubdtype(column.dtype, np.number):
        raise DataError(f"y holds {column.dtype}; a regression needs numbers")
    if column.dtype.kind == "c":
        raise DataError("Complex data not supported: y holds complex numbers")
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must hold numbers: {error}") from error
    assert_all_finite(values, input_name="y")
    if len(values) != rows:
        raise DataError(f"X has {rows} rows and y has {len(values)}; they must agree")
    if rows and float(np.abs(values).max()) > 1e100:
        raise DataError("y reaches beyond 1e100; scale the targets down")
    return values


def real_task(
    goal: Goal, task: Any, edges: Any, y: np.ndarray, groups: dict[str, np.ndarray]
) -> tuple[Task, tuple[str, ...]]:
    """The task with its bins and groups, and what should be known about how they came about."""
    declared = Task.regression() if task is None else Task.make(task)
    if declared.kind != "regression":
        raise KindError(f"a {declared.kind} task has no real targets; say task=Task.regression(…)")
    if edges is not None:
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise KindError(f"edges={edges!r}: the inner edges of the target bins, rising numbers")
        made = Task.regression(edges, declared.groups)  # or refuses
        if declared.edges not in (None, made.edges):
            raise KindError("edges are declared twice, in the task and as edges=, and differ")
        declared = made
    notes: tuple[str, ...] = ()
    found = declared.edges
    parts = [goal.objective, *(side for c in goal.constraints for side in c.sides)]
    if found is None and any(getattr(n, "by", None) == BIN for p in parts for n in p.walk()):
        low, high = float(y.min()), float(y.max())
        found = tuple(np.linspace(low, high, BINS + 1)[1:-1].tolist()) if high > low else ()
        ends = f"{low:g} to {high:g}"
        notes = (
            f"target bins: ten of equal width over the targets fitted, {ends}, since none were "
            "declared; say edges=[…] for your own",
        )
    if found:
        counts = np.bincount(np.digitize(y, found), minlength=len(found) + 1)
        empty = int((counts == 0).sum())
        few = f"{empty} of {len(counts)} target bins hold no row that is fitted; "
        notes += (f"{few}edges={list(found)!r}, targets {y.min():g} to {y.max():g}",) * (empty > 0)
    values = {name: np.unique(groups[name]).tolist() for name in goal.columns}
    return Task.regression(found, values), notes


def columns_of(
    task: Task,
    y: np.ndarray,
    predicted: np.ndarray,
    weight: np.ndarray | None,
    groups: dict[str, np.ndarray],
    rows: np.ndarray | slice = slice(None),
) -> Columns:
    """Rows with predictions, as the language takes them."""
    return Columns(
        task,
        y[rows],
        predicted,
        weight=None if weight is None else weight[rows],
        groups={name: groups[name][rows] for name, _ in task.groups},
    )


def places_of(y: np.ndarray, task: Task) -> np.ndarray:
    """The bin of each target: the task's, else ten of equal width over these targets."""
    edges = task.edges
    if not edges:
        edges = np.linspace(float(y.min()), float(y.max()), BINS + 1)[1:-1] if len(y) else ()
    return np.digitize(y, edges)


def rarity(y: np.ndarray, task: Task, weight: np.ndarray | None) -> np.ndarray:
    """Inverse-density weights: each row by 1 / (rows of its target bin), times its own weight."""
    place = places_of(y, task)
    own = np.ones(len(y)) if weight is None else weight
    mass = np.bincount(place, own)
    found = own / np.where(mass > 0, mass, 1.0)[place]
    return found / found.mean()


def parted(y: np.ndarray, task: Task, share: float, seed: int, least: int = 2) -> Split:
    """Part rows so that each part has its share of every bin, or of every quarter of the targets.

    A bin of fewer than four rows is joined to the rest.
    """
    if task.edges:
        place = np.digitize(y, task.edges)
    else:
        cuts = np.quantile(y, np.arange(1, _QUARTERS) / _QUARTERS) if len(y) else ()
        place = np.searchsorted(cuts, y)
    few = np.bincount(place)[place] < 2 * least
    place = np.where(few, -1, place)
    if len(y) < 2 * least or ((place == place[0]).all() and len(y) < 4 * least):
        everything = np.arange(len(y))
        return Split(everything, everything, True)
    return split(place, share, seed, least)
