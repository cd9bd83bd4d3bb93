"""The sigmoid step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from setpoint.surrogates.surrogate import Surrogate, check_open


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
        return ((self.sharpness / temperature) * (p - self.threshold)).sigmoid()

    def derivative(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        h = self.value(p, temperature)
        return (self.sharpness / temperature) * h * (1 - h)

    def at(self, threshold: float) -> Sigmoid:
        return replace(self, threshold=threshold)

    def limit(self, temperature: Any) -> Sigmoid:
        return replace(self, sharpness=self.sharpness / temperature)
