"""What an attack found: one point for each image, and how good it is by its own measures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Found:
    """The points an attack ends with. It says nothing about success: that is the judge's.

    Attributes
    ----------
    x : Tensor (B, *shape)
        The points, inside the box.
    stationarity : Tensor (B,)
        How far each point is from a stationary one of its problem; 0 is stationary. Max-loss:
        ‖x − Π(x + τ ∇ℓ/‖∇ℓ‖)‖₂ / τ, between 0 and 1. Min-radius: the same for a least distance on
        the linearised decision surface, so it is 0 where the point is the nearest one of it.
    violation : Tensor (B,)
        By how much the problem's constraint is missed after clipping to the box: max-loss the
        excess of the distance over eps, min-radius the margin that is missing. 0 is none.
    iterations : Tensor (B,) of int64
        Gradients taken for each image.
    forwards : int
        Images put through the model, over all of them.
    """

    x: Tensor
    stationarity: Tensor
    violation: Tensor
    iterations: Tensor
    forwards: int
