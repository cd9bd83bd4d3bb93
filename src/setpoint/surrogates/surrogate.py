"""Base of the surrogates of the step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from setpoint._core.errors import KindError
from setpoint._core.options import number


class Surrogate(ABC):
    """H(p) in place of 1{p >= τ}, for a probability p in [0, 1]; a frozen dataclass.

    The membership of an example in *decided* is H(p). All counts follow from that one number, so
    soft TP + soft FN = P whatever H is.

    Attributes
    ----------
    threshold : float
        τ, in (0, 1).
    side : {"between", "above"}
        Where H lies: between 0 and 1 and half of each at τ, or nowhere below the step.
    """

    side: ClassVar[str]
    threshold: float

    @abstractmethod
    def value(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        """H(p), elementwise; at a temperature, that of the sharpened surrogate."""

    @abstractmethod
    def derivative(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        """H′(p), elementwise; at a knot the slope to its right."""

    @abstractmethod
    def at(self, threshold: float) -> Self:
        """The same surrogate at another threshold."""

    @abstractmethod
    def limit(self, temperature: Any) -> Self:
        """The surrogate sharpened: at temperature 1 itself, towards 0 the step."""


class PiecewiseLinear(Surrogate):
    """A surrogate that is linear between knots; any number of thresholds costs one pass.

    Subclasses give their knots; between them lie straight lines.
    """

    @abstractmethod
    def knots(self, temperature: Any = 1.0) -> tuple[tuple[Any, Any], ...]:
        """Points (p, H(p)) in increasing p, the first at p = 0 and the last at p = 1.

        At a temperature, a number or a 0-dimensional tensor, those of the sharpened surrogate.
        """

    def value(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        borders, intercepts, slopes = self.pieces(p, temperature)
        piece = torch.bucketize(p, borders, right=True)
        return intercepts[piece] + slopes[piece] * p

    def derivative(self, p: Tensor, temperature: Any = 1.0) -> Tensor:
        borders, _, slopes = self.pieces(p, temperature)
        return slopes[torch.bucketize(p, borders, right=True)]

    def pieces(self, like: Tensor, temperature: Any = 1.0) -> tuple[Tensor, Tensor, Tensor]:
        """Inner borders (J − 1,), intercepts (J,) and slopes (J,) of the J straight pieces."""
        zero = like.new_zeros(())  # numbers are added to it, not copied to its device
        x, h = (
            torch.stack([zero + c for c in part])
            for part in zip(*self.knots(temperature), strict=True)
        )
        slopes = (h[1:] - h[:-1]) / (x[1:] - x[:-1])
        return x[1:-1], h[:-1] - slopes * x[:-1], slopes


def check_open(kind: Surrogate, option: str, low: float, high: float) -> None:
    """Refuse an option that is not strictly between two bounds."""
    name, x = f"{type(kind).__name__}.{option}", getattr(kind, option)
    number(name, x, low, high, open_low=True, open_high=True, error=KindError)
