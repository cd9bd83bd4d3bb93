"""The ramp: 0, then a straight rise around the threshold, then 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from setpoint.surrogates.surrogate import PiecewiseLinear, check_open


@dataclass(frozen=True)
class Ramp(PiecewiseLinear):
    """clip(½ + (p − τ) / (2 w), 0, 1) with w = width · min(τ, 1 − τ).

    Outside the rise it is flat: examples decided with confidence, rightly or wrongly, are left
    alone. The truncated loss that an exact reformulation ends in has this shape.
    """

    threshold: float = 0.5
    width: float = 0.5

    side: ClassVar[str] = "between"

    def __post_init__(self) -> None:
        check_open(self, "threshold", 0, 1)
        check_open(self, "width", 0, 1)

    def knots(self, temperature: Any = 1.0) -> tuple[tuple[Any, Any], ...]:
        w = temperature * self.width * min(self.threshold, 1 - self.threshold)
        return (0.0, 0.0), (self.threshold - w, 0.0), (self.threshold + w, 1.0), (1.0, 1.0)

    def at(self, threshold: float) -> Ramp:
        return replace(self, threshold=threshold)

    def limit(self, temperature: Any) -> Ramp:
        return replace(self, width=self.width * temperature)
