"""True bounds: low <= x <= high holds at every point that is tried.

A coordinate *rests* on a bound where the force r = μ g + J'y would push it out; it is held, and the
step is taken among the others. A step that meets a bound goes on along it: x(t) = clip(x + t d).

References
----------
Bertsekas, Projected Newton methods for optimization problems with simple constraints, 1982.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError


@dataclass(frozen=True, eq=False)
class BatchedBox:
    """low and high, (B, n) or (1, n)."""

    low: Tensor
    high: Tensor

    def take(self, index: Tensor) -> BatchedBox:
        """The bounds of some rows."""
        return BatchedBox(
            *(a if len(a) == 1 else a.index_select(0, index) for a in (self.low, self.high))
        )

    def clip(self, x: Tensor) -> Tensor:
        """The nearest point of the box."""
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, n) which coordinates are at their low, and at their high."""
        return x <= self.low, x >= self.high

    def free(self, x: Tensor, force: Tensor) -> Tensor:
        """(B, n) which coordinates the force does not press against a bound they are at."""
        at_low, at_high = self.sides(x)
        return ~((at_low & (force > 0)) | (at_high & (force < 0)))

    def inward(self, x: Tensor, d: Tensor) -> Tensor:
        """(B, n) which coordinates the step d does not lead out of the box at once."""
        at_low, at_high = self.sides(x)
        return ~((at_low & (d < 0)) | (at_high & (d > 0)))


def box_for(bounds: Any, x0: Tensor) -> BatchedBox | None:
    """The box of ``bounds``: (low, high), each None, a number or a tensor that broadcasts to x0.

    Raises
    ------
    DataError
        A bound does not fit, or the least is greater than the greatest.
    KindError
        What is given is no pair.
    """
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise KindError(f"bounds={bounds!r}: a pair (low, high), each None, a number or a tensor")
    if bounds[0] is None and bounds[1] is None:
        return None
    sides = []
    for bound, name, none in zip(bounds, ("low", "high"), (-torch.inf, torch.inf), strict=True):
        side = torch.as_tensor(none if bound is None else bound, dtype=x0.dtype, device=x0.device)
        side = side.detach()
        try:
            side = side.broadcast_to(x0.shape)
        except RuntimeError:
            raise DataError(
                f"{name} of shape {tuple(side.shape)} for x0 of shape {tuple(x0.shape)}: it must "
                "broadcast to x0"
            ) from None
        if bool(side.isnan().any()):
            raise DataError(f"{name} holds nan: use None where there is no bound")
        sides.append(side.reshape(len(x0), -1))
    if not bool((sides[0] <= sides[1]).all()):
        raise DataError("a low is above its high: no value is between them")
    return BatchedBox(*sides)
