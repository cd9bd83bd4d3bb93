"""Exact nearest points: of a ball cut by the box, and of a half-space cut by the box.

    project:  argmin ½‖u − v‖₂²   s.t.  ‖u‖_p ≤ ε,   low ≤ u ≤ high          (low ≤ 0 ≤ high)
    reach:    argmin ‖u‖_p        s.t.  g·u ≥ c,     low ≤ u ≤ high

Both keep signs (u_i has the sign of v_i, or of g_i), so with a_i = |v_i| and b_i the bound on that
side the size t_i = |u_i| is

    project   p = ∞   min(a_i, b_i, ε)
              p = 2   min(a_i √q, b_i),               Σ min(a_i² q, b_i²) = ε²
              p = 1   min(max(a_i − λ, 0), b_i),      Σ t_i = ε
              else    min(t, b_i) with t + λ p t^{p−1} = a_i,      Σ t_i^p = ε^p
    reach     p > 1   min(s |g_i|^{1/(p−1)}, b_i),    Σ |g_i| t_i = c      (exponent 0 for p = ∞)
              p = 1   filled up to b_i in the order of |g_i|, the last one in part

with one multiplier per row (``multipliers``). Nothing is folded, penalised or rounded to feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.robustness.attacks.distances import norms

# One unknown number per row: the multiplier a projection is known up to.
#
# Every exact projection of this room is known up to one multiplier s per image, the root of an
# increasing (or decreasing) function that is a sum over pixels. Two searches find it for all rows
# at once, in a fixed number of passes:
#
# - ``fill``: Σ_i w_i min(s r_i, b_i) = c. Concave and piecewise linear in s, so Newton's method
# from
#   s = 0 never passes the root and ends on it after finitely many steps;
# - ``root``: any decreasing function with its slope. Newton inside a bracket that at least halves.
#
# On a CPU a search ends when no row moves any more; on a GPU asking waits for the device, so it is
# asked every eight passes.


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
    bracketed = torch.zeros_like(at, dtype=torch.bool)
    rounding = 4.0 * torch.finfo(at.dtype).eps
    for turn in range(passes):
        value, slope = function(at)
        low = torch.where(value >= 0, at, low)
        high = torch.where(value <= 0, at, high)
        newton = at - value / torch.where(slope < 0, slope, -torch.inf)
        near = (slope < 0) & ((newton - at).abs() <= rounding * at.abs())
        bracketed = bracketed | (value == 0) | near | (high - low <= rounding * high.abs())
        inside = (slope < 0) & (newton > low) & (newton < high)
        if turn % 3 == 2 and turn > _TRUSTED:  # three passes have not halved the bracket: halve it
            inside = inside & (high - low <= 0.5 * width)
            width = high - low
        after = torch.where(inside, newton, 0.5 * (low + high))
        at = torch.where(bracketed, at, after)
        if settled(~bracketed, turn):
            break
    return at


#: Newton steps for one pixel of the general power, from a point to the right of the root.
_INNER = 12


def project(v: Tensor, low: Tensor, high: Tensor, eps: Tensor, p: float) -> Tensor:
    """The point of {‖u‖_p ≤ ε, low ≤ u ≤ high} nearest to v in the 2-norm, for each row.

    Parameters
    ----------
    v, low, high : Tensor (B, n)
        The points and the box around 0: ``low ≤ 0 ≤ high``.
    eps : Tensor (B,)
        Radii, not negative.
    p : float
        The power of the norm, 1 ≤ p ≤ ∞.

    Examples
    --------
    >>> import torch
    >>> v, box = torch.tensor([[3.0, 4.0]]), torch.tensor([[9.0, 9.0]])
    >>> project(v, -box, box, torch.tensor([1.0]), 2.0)
    tensor([[0.6000, 0.8000]])
    >>> project(v, -box, box, torch.tensor([1.0]), 1.0)
    tensor([[0., 1.]])
    """
    if math.isinf(p):
        limit = eps[:, None]
        return torch.minimum(torch.maximum(v, torch.maximum(low, -limit)), high.minimum(limit))
    size = v.abs()
    caps = torch.where(v > 0, high, -low)
    boxed = torch.minimum(size, caps)
    outside = norms(boxed, p) > eps
    if p == 1.0:
        sizes = _onto_l1(size, caps, eps)
    elif p == 2.0:
        sizes = _onto_l2(size, caps, eps)
    else:
        sizes = _onto_lp(size, caps, eps, p)
    # units that were divided out may have rounded over the box
    return torch.where(outside[:, None], sizes.minimum(caps), boxed) * v.sign()


def _onto_l2(size: Tensor, caps: Tensor, eps: Tensor) -> Tensor:
    square = size.square()
    share = fill(torch.ones_like(square), square, caps.square(), eps.square())
    return torch.minimum(size * share.clamp(max=1.0).sqrt()[:, None], caps)


def _onto_l1(size: Tensor, caps: Tensor, eps: Tensor) -> Tensor:
    def excess(price: Tensor) -> tuple[Tensor, Tensor]:
        left = size - price[:, None]
        sizes = torch.minimum(left.clamp(min=0.0), caps)
        free = (left > 0) & (left < caps)
        return sizes.sum(1) - eps, -free.sum(1).to(size.dtype)

    price = root(excess, torch.zeros_like(eps), size.amax(1))
    moved = torch.minimum((size - price[:, None]).clamp(min=0.0), caps)
    # what rounding leaves outside the ball
    return (
        moved * (eps / moved.sum(1).clamp(min=torch.finfo(eps.dtype).tiny)).clamp(max=1.0)[:, None]
    )


def _onto_lp(size: Tensor, caps: Tensor, eps: Tensor, p: float) -> Tensor:
    """Powers other than 1, 2, ∞, in units of ε, so that the ball is the unit ball."""
    unit = eps.clamp(min=torch.finfo(eps.dtype).tiny)[:, None]
    size, caps = size / unit, caps / unit

    def sizes(price: Tensor) -> Tensor:
        return torch.minimum(_shrunk(size, price[:, None] * p, p), caps)

    def excess(price: Tensor) -> tuple[Tensor, Tensor]:
        now = sizes(price)
        floor = now.clamp(min=torch.finfo(now.dtype).tiny)
        bend = 1.0 + price[:, None] * p * (p - 1.0) * floor.pow(p - 2.0)
        slope = torch.where((now < caps) & (now > 0), (p * floor.pow(p - 1.0)).square() / bend, 0.0)
        return now.pow(p).sum(1) - 1.0, -slope.sum(1)

    dual = p / (p - 1.0)
    price = root(excess, torch.zeros_like(eps), norms(size, dual) / p, passes=2 * PASSES)
    moved = sizes(price)
    return moved / norms(moved, p).clamp(min=1.0)[:, None] * eps[:, None]


def _shrunk(size: Tensor, price: Tensor, p: float) -> Tensor:
    """The t ≥ 0 with t + c t^{p−1} = a: Newton from the right on a convex form of it.

    For p < 2 the unknown is s = t^{p−1}, for which s^{1/(p−1)} + c s is convex.
    """
    power = p - 1.0 if p > 2.0 else 1.0 / (p - 1.0)
    # p > 2: t + c t^power = a.   p < 2: s^power + c s = a.
    if p > 2.0:
        at = torch.minimum(size, (size / price.clamp(min=1e-30)).pow(1.0 / power))
    else:
        at = torch.minimum(size.pow(1.0 / power), size / price.clamp(min=1e-30))
    rounding = 4.0 * torch.finfo(size.dtype).eps
    linear, curved = (1.0, price) if p > 2.0 else (price, 1.0)
    for turn in range(_INNER):
        tangent = curved * at.pow(power - 1.0)
        value = linear * at + tangent * at - size
        slope = linear + power * tangent
        after = torch.where(slope > 0, at - value / slope, at).clamp(min=0.0)
        moved, at = at - after > rounding * at, after
        if settled(moved, turn):
            break
    return at if p > 2.0 else at.pow(power)


def reach(g: Tensor, low: Tensor, high: Tensor, wanted: Tensor, p: float) -> Tensor:
    """The u least in ‖·‖_p with g·u ≥ c in the box, for each row.

    Where no point of the box gives c, the point with the greatest g·u is returned.

    Parameters
    ----------
    g, low, high : Tensor (B, n)
        Gradients and the box around 0: ``low ≤ 0 ≤ high``.
    wanted : Tensor (B,)
        c; where it is not positive, u = 0.
    p : float
        The power of the norm, 1 ≤ p ≤ ∞.

    Examples
    --------
    >>> import torch
    >>> g, box = torch.tensor([[3.0, 4.0]]), torch.tensor([[9.0, 9.0]])
    >>> reach(g, -box, box, torch.tensor([25.0]), 2.0)
    tensor([[3., 4.]])
    >>> reach(g, -box, box, torch.tensor([7.0]), float("inf"))
    tensor([[1., 1.]])
    >>> reach(g, -box, box, torch.tensor([8.0]), 1.0)
    tensor([[0., 2.]])
    """
    size = g.abs()
    caps = torch.where(g > 0, high, -low) * (size > 0)
    if p == 1.0:
        return _in_order(size, caps, wanted) * g.sign()
    # the gradient's unit is divided out: a power of it must not overflow
    top = size.amax(1, keepdim=True).clamp(min=torch.finfo(size.dtype).tiny)
    share = size / top
    rates = torch.ones_like(share) if math.isinf(p) else share.pow(1.0 / (p - 1.0))
    level = fill(share, rates, caps, wanted / top[:, 0])
    return torch.minimum(torch.nan_to_num(level[:, None] * rates, nan=0.0), caps) * g.sign()


def _in_order(size: Tensor, caps: Tensor, wanted: Tensor) -> Tensor:
    """Pixels filled to their caps in the order of ``size`` until Σ size·t = wanted."""
    order = size.argsort(1, descending=True)
    ranked = size.gather(1, order)
    gain = ranked * caps.gather(1, order)
    before = gain.cumsum(1) - gain
    left = (wanted[:, None] - before).clamp(min=0.0)
    part = torch.minimum(left, gain) / ranked.clamp(min=torch.finfo(size.dtype).tiny)
    part = torch.where(ranked > 0, part, 0.0)
    return torch.zeros_like(size).scatter(1, order, part).minimum(caps)
