"""The sigmoid step: the logistic function of a distance, and its slope.

:class:`Sigmoid` applies it to probabilities; :func:`logistic` is the same step for methods whose
thresholds lie on logits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from setpoint.surrogates.surrogate import Surrogate, check_open


def logistic(distance: Tensor, sharpness: Any) -> Tensor:
    """H = 1 / (1 + exp(−k d)) of a distance d from the threshold, k the sharpness."""
    return (sharpness * distance).sigmoid()


def logistic_slope(h: Tensor, sharpness: Any) -> Tensor:
    """∂H/∂d = k H (1 − H), from H."""
    return sharpness * h * (1 - h)


@dataclass(frozen=True)
class Sigmoid(Surrogate):
    """1 / (1 + exp(−k (p − τ))); with temperature T, k / T.

    H(0) and H(1) miss 0 and 1 where τ is near an end; far from τ the slope vanishes as k grows.

    Parameters
    ----------
    threshold : float
        τ.
    sharpness : float
        k.
    """

    threshold: float = 0.5
    sharpness: float = 10.0

    side: ClassVar[str] = "between"

    def __post_init__(self) -> None:
        check_open(self, "threshold", 0, 1)
        check_open(self, "sharpness", 0, float("inf"))

    def value(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        return logistic(p - self.threshold, self.sharpness / temperature)

    def derivative(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        return logistic_slope(self.value(p, temperature), self.sharpness / temperature)

    def at(self, threshold: float) -> Sigmoid:
        return replace(self, threshold=threshold)

    def limit(self, temperature: Any) -> Sigmoid:
        return replace(self, sharpness=self.sharpness / temperature)
