"""The three-piece linear step that is flat nowhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from setpoint.surrogates.surrogate import PiecewiseLinear, check_open


@dataclass(frozen=True)
class Linear(PiecewiseLinear):
    """Straight lines through (0, 0), (τ − w, δ), (τ + w, 1 − δ), (1, 1); w = width · τ_m.

    τ_m = min(τ, 1 − τ), so H(0) = 0, H(τ) = ½ and H(1) = 1 at every threshold, and the slope is
    positive everywhere: a confident mistake still moves. With temperature T it becomes
    w T and δ T, and the step as T → 0.

    Parameters
    ----------
    threshold : float
        τ.
    delta : float
        δ, the share of the rise left to each outer piece, in (0, ½).
    width : float
        Half the width of the steep middle in units of τ_m, in (0, 1).

    References
    ----------
    Tsoi, Candon, Li, Milkessa, Vázquez: Bridging the Gap: Unifying the Training and Evaluation of
    Neural Network Binary Classifiers, NeurIPS 2022, Eq. 5.
    """

    threshold: float = 0.5
    delta: float = 0.2
    width: float = 0.5

    side: ClassVar[str] = "between"

    def __post_init__(self) -> None:
        check_open(self, "threshold", 0, 1)
        check_open(self, "delta", 0, 0.5)
        check_open(self, "width", 0, 1)

    def knots(self, temperature: Any = 1.0) -> tuple[tuple[Any, Any], ...]:
        w = temperature * (self.width * min(self.threshold, 1 - self.threshold))
        delta = temperature * self.delta
        return (
            (0.0, 0.0),
            (self.threshold - w, delta),
            (self.threshold + w, 1 - delta),
            (1.0, 1.0),
        )

    def at(self, threshold: float) -> Linear:
        return replace(self, threshold=threshold)

    def limit(self, temperature: Any) -> Linear:
        return replace(self, delta=self.delta * temperature, width=self.width * temperature)
