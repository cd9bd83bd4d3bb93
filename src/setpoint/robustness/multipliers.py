"""One unknown number per row: the multiplier a projection is known up to.

Every exact projection of this room is known up to one multiplier s per image, the root of an
increasing (or decreasing) function that is a sum over pixels. Two searches find it for all rows at
once, in a fixed number of passes:

- ``fill``: Σ_i w_i min(s r_i, b_i) = c. Concave and piecewise linear in s, so Newton's method from
  s = 0 never passes the root and ends on it after finitely many steps;
- ``root``: any decreasing function with its slope. Newton inside a bracket that at least halves.

On a CPU a search ends when no row moves any more; on a GPU asking waits for the device, so it is
asked every eight passes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: Passes of a search; rows with n pixels need at most n + 1 in ``fill`` and rarely more than ten.
PASSES = 40
#: Passes on a device that has to be waited for, until it is asked whether all rows are done.
ASKED = 8
#: Passes in which Newton is trusted; from one side it converges without closing its bracket.
_TRUSTED = 9

Slope = Callable[[Tensor], tuple[Tensor, Tensor]]


def settled(moves: Tensor, turn: int) -> bool:
    """Whether no row moves, asked where asking is free, and now and then where it is not."""
    return (moves.device.type == "cpu" or turn % ASKED == ASKED - 1) and not bool(moves.any())


def fill(weights: Tensor, rates: Tensor, caps: Tensor, wanted: Tensor) -> Tensor:
    """The least s ≥ 0 with Σ_i w_i min(s r_i, b_i) ≥ c for each row; ∞ where no s gives it.

    Parameters
    ----------
    weights, rates, caps : Tensor (B, n)
        w, r and b, none negative.
    wanted : Tensor (B,)
        c.

    Returns
    -------
    Tensor (B,)
        s; 0 where c ≤ 0.

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(1, 2)
    >>> fill(one, one, torch.tensor([[1.0, 5.0]]), torch.tensor([4.0]))
    tensor([3.])
    """
    level = torch.zeros_like(wanted)
    caps = torch.where(rates > 0, caps, 0.0)  # what does not rise is never filled
    gains, held = weights * rates, weights * caps
    ends = caps / rates.clamp(min=torch.finfo(caps.dtype).tiny)
    for turn in range(PASSES):
        rising = ends > level[:, None]
        slope = (gains * rising).sum(1)
        missing = wanted - (held * (~rising)).sum(1)
        after = torch.where(slope > 0, missing / slope, torch.inf)
        # the root lies to the right, whatever rounding says; nothing to fill is level 0
        after = torch.where(wanted > 0, torch.maximum(after, level), 0.0)
        after = torch.where((missing <= 0) & (slope <= 0), level, after)
        moved, level = after != level, after
        if settled(moved, turn):
            break
    return level


def root(function: Slope, low: Tensor, high: Tensor, passes: int = PASSES) -> Tensor:
    """The root of a decreasing function in a bracket, for each row.

    Parameters
    ----------
    function : callable
        s (B,) -> values (B,) and slopes (B,); values ≥ 0 at ``low`` and ≤ 0 at ``high``.
    low, high : Tensor (B,)
        The bracket.
    passes : int
        At most so many values.

    Returns
    -------
    Tensor (B,)
        The root, up to rounding.

    Examples
    --------
    >>> import torch
    >>> root(lambda s: (2.0 - s, -torch.ones_like(s)), torch.zeros(1), torch.full((1,), 9.0))
    tensor([2.])
    """
    at, width = low, high - low
    found = torch.zeros_like(at, dtype=torch.bool)
    rounding = 4.0 * torch.finfo(at.dtype).eps
    for turn in range(passes):
        value, slope = function(at)
        low = torch.where(value >= 0, at, low)
        high = torch.where(value <= 0, at, high)
        newton = at - value / torch.where(slope < 0, slope, -torch.inf)
        near = (slope < 0) & ((newton - at).abs() <= rounding * at.abs())
        found = found | (value == 0) | near | (high - low <= rounding * high.abs())
        inside = (slope < 0) & (newton > low) & (newton < high)
        if turn % 3 == 2 and turn > _TRUSTED:  # three passes have not halved the bracket: halve it
            inside = inside & (high - low <= 0.5 * width)
            width = high - low
        after = torch.where(inside, newton, 0.5 * (low + high))
        at = torch.where(found, at, after)
        if settled(~found, turn):
            break
    return at
