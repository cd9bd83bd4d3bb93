"""The trade-off along the threshold: the objective against each constrained metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.json_codec import number_from, number_to


@dataclass(frozen=True)
class Frontier:
    """Points of the trade-off, thresholds descending.

    Attributes
    ----------
    objective : str
    constraints : tuple of str
    thresholds : tuple of float
    values : tuple of float or None
        The objective at each threshold; None where it is an empty rate.
    sides : tuple of tuples
        Per constraint its left side at each threshold.
    feasible : tuple of bool
    """

    objective: str
    constraints: tuple[str, ...]
    thresholds: tuple[float, ...]
    values: tuple[float | None, ...]
    sides: tuple[tuple[float | None, ...], ...]
    feasible: tuple[bool, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {
            "objective": self.objective,
            "constraints": list(self.constraints),
            "thresholds": [number_to(t) for t in self.thresholds],
            "values": [number_to(v) for v in self.values],
            "sides": [[number_to(v) for v in side] for side in self.sides],
            "feasible": list(self.feasible),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Frontier:
        """Read what :meth:`to_json` wrote."""
        return cls(
            data["objective"],
            tuple(data["constraints"]),
            tuple(number_from(t) for t in data["thresholds"]),
            tuple(number_from(v) for v in data["values"]),
            tuple(tuple(number_from(v) for v in side) for side in data["sides"]),
            tuple(data["feasible"]),
        )


def spread_over(size: int, points: int = 256) -> np.ndarray:
    """Indices that cover ``range(size)``: geometric from the top, and even; at most ~``points``."""
    if size <= points:
        return np.arange(size)
    geometric = np.geomspace(1, size - 1, points // 2)
    even = np.linspace(0, size - 1, points // 2)
    return np.unique(np.r_[0, geometric, even].astype(np.int64))
