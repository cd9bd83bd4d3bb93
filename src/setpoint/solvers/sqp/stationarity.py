"""How far a point is from the conditions of an optimum, kinks included.

    r = Σₖ αₖ ∇f(xₖ) + Σⱼ λⱼ ∇vⱼ + z,     α >= 0,  Σ α = 1,  λ of an inequality >= 0,  z of bounds

    kkt = min ‖r‖   over α, λ and z

over the constraints and bounds that are active at x, and gradients at points xₖ no further than a
small radius from it. A smooth problem needs one of them, x itself, and λ are its multipliers. At a
kink the gradients on its sides stand together for the subgradients, and a constraint with a kink has
a λ for each xₖ, whose sum is its multiplier. What the least norm is made of is returned, so that
anybody can check it.

References
----------
Burke, Lewis, Overton, A robust gradient sampling algorithm for nonsmooth, nonconvex optimization,
2005; Curtis, Mitchell, Overton, 2017, section 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setpoint.solvers.sqp import quadratic
from setpoint.solvers.sqp.steering import Box

RADIUS = 1e-4  #: of the points whose gradients are taken together, relative to 1 + |x|
MOST = 100  #: of them
KINK = 1e-3  #: share by which a constraint's gradients differ, within the radius, at a kink
SIZE = 600  #: of the quadratic program, at most


@dataclass(frozen=True, eq=False)
class Near:
    """An iterate that is remembered, with its gradients."""

    x: Tensor
    f: float
    v: Tensor
    g: Tensor
    J: Tensor


@dataclass(frozen=True, eq=False)
class Stationarity:
    """The conditions of an optimum at a point.

    Attributes
    ----------
    kkt : float
        ‖r‖.
    gap : float
        By how much the tangents at xₖ miss the values at x, weighed as the gradients are: about
        what can still be gained, where the kinks are not quite at x.
    r : torch.Tensor
        (n,) in units of f.
    multipliers : torch.Tensor
        (m,) λ, equations first.
    low, high : torch.Tensor
        (n,) z of the bounds, >= 0.
    points, weights : torch.Tensor
        (l, n) xₖ and (l, 1 + m) what their gradients of f and of the constraints count.
    """

    kkt: float
    gap: float
    r: Tensor
    multipliers: Tensor
    low: Tensor
    high: Tensor
    points: Tensor
    weights: Tensor


class Memory:
    """The last iterates and their gradients, for as long as they are near."""

    def __init__(self, most: int = MOST) -> None:
        self.kept: deque[Near] = deque(maxlen=most)

    def add(self, near: Near) -> None:
        self.kept.append(near)

    def near(self, x: Tensor, radius: float = RADIUS) -> list[Near]:
        """Those within the radius of x, the nearest first; x itself is among them."""
        if not self.kept:
            return []
        apart = torch.stack([near.x for near in self.kept]).sub_(x).norm(dim=1)
        within = radius * (1 + float(x.norm()))
        order = torch.argsort(apart).tolist()
        return [self.kept[k] for k in order if float(apart[k]) <= within]


def stationarity(
    near: Sequence[Near],
    v: Tensor,
    equations: int,
    box: Box | None,
    tolerance: float,
    solver: str = "auto",
) -> Stationarity:
    """The least ‖r‖ at the first of the points.

    Parameters
    ----------
    near : sequence of Near
        x first, and other points near it.
    v : torch.Tensor
        (m,) values of the constraints at x.
    equations : int
    box : Box, optional
    tolerance : float
        An inequality or a bound with no more slack is active.
    solver : str
        Of the quadratic program.
    """
    x, m = near[0].x, len(v)
    active = v >= -tolerance
    active[:equations] = True
    index = active.nonzero().reshape(-1)
    kinked = _kinked(near, index)
    room = SIZE - len(index)
    near = near[: max(1, room // max(1, 1 + len(kinked)))]
    columns = [torch.stack([p.g for p in near])]  # (l, n)
    owner = []  # (point, constraint) of each further column
    for j in index.tolist():
        for k in range(len(near) if j in kinked else 1):
            columns.append(near[k].J[j : j + 1])
            owner.append((k, j))
    lows, highs = _resting(x, box, tolerance)
    eye = torch.arange(len(x), device=x.device)
    rest = lows | highs
    free = ~rest
    A = torch.cat(columns)  # (cols, n)
    bound_columns = int(rest.sum())
    # a bound's z takes any r of its sign: least squares over the others, and one-sided on these
    l, q = len(near), len(owner)
    if bound_columns:
        E = torch.zeros((bound_columns, len(x)), dtype=x.dtype, device=x.device)
        spots = eye[rest]
        both = (lows & highs)[spots]
        sign = torch.where(highs[spots], 1.0, -1.0).to(x)
        E[torch.arange(bound_columns, device=x.device), spots] = sign
        A = torch.cat([A, E])
    del free
    low = np.zeros(len(A))
    high = np.full(len(A), np.inf)
    high[:l] = 1.0
    for at, (_, j) in enumerate(owner):
        if j < equations:
            low[l + at] = -np.inf
    if bound_columns:
        low[l + q :][both.cpu().numpy()] = -np.inf
    top, side = _off(near)
    cost = torch.zeros(len(A), dtype=x.dtype, device=x.device)
    cost[:l] = top
    for at, (k, j) in enumerate(owner):
        cost[l + at] = side[k, j]
    y = quadratic.hull(A.double().cpu().numpy(), cost.cpu().numpy(), low, high, l, solver)
    weight = torch.as_tensor(y).to(x)
    r = weight @ A
    weights = x.new_zeros((l, 1 + m))
    weights[:, 0] = weight[:l]
    for at, (k, j) in enumerate(owner):
        weights[k, 1 + j] = weight[l + at]
    z_low, z_high = torch.zeros_like(x), torch.zeros_like(x)
    if bound_columns:
        force = sign * weight[l + q :]
        z_low[spots], z_high[spots] = (-force).clamp(min=0), force.clamp(min=0)
    points = torch.stack([p.x for p in near])
    paid = weights[:, 1:].sum(0)
    gap = float(cost @ weight.abs())
    return Stationarity(float(r.norm()), gap, r, paid, z_low, z_high, points, weights)


def _off(near: Sequence[Near]) -> tuple[Tensor, Tensor]:
    """By how much each point's tangents miss the values at the first, (l,) and (l, m)."""
    x = near[0].x
    step = torch.stack([x - p.x for p in near])
    top = torch.stack([near[0].f - p.f - s @ p.g for p, s in zip(near, step, strict=True)]).abs()
    side = torch.stack([near[0].v - p.v - p.J @ s for p, s in zip(near, step, strict=True)]).abs()
    return top, side


def _kinked(near: Sequence[Near], index: Tensor) -> set[int]:
    """Active constraints whose gradients differ from point to point."""
    if len(near) < 2 or not len(index):
        return set()
    rows = torch.stack([p.J[index] for p in near])  # (l, a, n)
    apart = (rows - rows[:1]).norm(dim=2).amax(0)
    size = rows[0].norm(dim=1).clamp(min=1e-300)
    return set(index[apart > KINK * size].tolist())


def _resting(x: Tensor, box: Box | None, tolerance: float) -> tuple[Tensor, Tensor]:
    """Which coordinates rest on their lower, and on their upper bound."""
    if box is None:
        none = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        return none, none
    slack = tolerance * (1 + x.abs())
    return x <= box.low + slack, x >= box.high - slack
