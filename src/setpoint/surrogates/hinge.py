"""The hinge: the convex bound above the step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from setpoint._core.errors import KindError
from setpoint.surrogates.surrogate import PiecewiseLinear, check_open


@dataclass(frozen=True)
class Hinge(PiecewiseLinear):
    """max(0, 1 + (p − τ) / margin), nowhere below 1{p >= τ}.

    An upper bound of a count of decided examples (false positives held below a bound), and with
    p and τ mirrored a lower bound of one. It exceeds 1 above τ, so it is no membership: FN = P − TP
    may become negative, and it has no step as a limit.
    """

    threshold: float = 0.5
    margin: float = 0.25

    side: ClassVar[str] = "above"

    def __post_init__(self) -> None:
        check_open(self, "threshold", 0, 1)
        check_open(self, "margin", 0, self.threshold)

    def knots(self, temperature: Any = 1.0) -> tuple[tuple[Any, Any], ...]:
        self.limit(temperature)
        foot = self.threshold - self.margin
        return (0.0, 0.0), (foot, 0.0), (1.0, (1 - foot) / self.margin)

    def at(self, threshold: float) -> Hinge:
        return replace(self, threshold=threshold)

    def limit(self, temperature: Any) -> Hinge:
        if temperature == 1:
            return self
        raise KindError("Hinge grows without bound as it sharpens; anneal Linear, Ramp or Sigmoid")
