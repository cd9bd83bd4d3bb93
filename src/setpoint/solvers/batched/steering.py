"""Steering: the step of each row, with a penalty weight that lets feasibility come first.

    d = −H (μ g + J'y),   y = argmin ½ y'(J H J')y + (μ J H g − v)'y,   0 <= y_c <= 1, |y_e| <= 1

The step is taken if the linearised violation falls by a tenth of V; otherwise μ is lowered, by 0.9
and at most ten times, until it falls by a tenth of what the step for V alone (μ = 0) would bring.
All candidates of μ are solved at once: their duals share J H J', and what they promise is read from
p numbers.

References
----------
Curtis, Mitchell, Overton, A BFGS-SQP method for nonsmooth, nonconvex, constrained optimization and
its evaluation using relative minimization profiles, 2017, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.solvers.batched import merit
from setpoint.solvers.batched.bounds import BatchedBox
from setpoint.solvers.batched.box_dual import box_dual
from setpoint.solvers.batched.hessian import Memory

SHARE = 0.1  #: of the violation, or of what could be brought, that a step must promise
LOWER = 0.9
NEAR = 1e-6  #: an inequality nearer than this to its bound lets μ be lowered
NOTHING = 1e-8  #: a violation this small is round-off: μ is not lowered for it
FEW = 3  #: up to so many sides every power of 0.9 is a candidate, beyond a few of them
PASSES = 2  #: over the set of coordinates that rest on a bound


@dataclass(frozen=True, eq=False)
class Step:
    """A step for each row, and what it promises."""

    mu: Tensor  # (B,)
    y: Tensor  # (B, p)
    d: Tensor  # (B, n)
    force: Tensor  # (B, n) μ g + J'y, 0 where a bound takes it up
    drop: Tensor  # (B,) by how much the model of φ falls
    slope: Tensor  # (B,) derivative of φ along d
    lowered: Tensor  # (B,) whether μ was lowered for it


@dataclass(frozen=True, eq=False)
class BatchedPoint:
    """Where a row stands: the point, its values and its gradients."""

    x: Tensor  # (B, n)
    f: Tensor  # (B,)
    v: Tensor  # (B, p)
    g: Tensor  # (B, n)
    j: Tensor  # (B, p, n)


def steer(
    at: BatchedPoint,
    mu: Tensor,
    y: Tensor,
    level: Tensor,
    memory: Memory,
    box: BatchedBox | None,
    equal: Tensor,
) -> Step:
    """The step of each row.

    ``level`` (B,) is how a row has fallen back: 0 steering with H, 1 steering with the identity, 2
    down the gradient of φ by H, 3 by the identity. ``y`` is that of the step before: it says which
    coordinates rest on a bound.
    """
    vectors = torch.cat([at.g[:, None], at.j], dim=1)  # (B, 1 + p, n)
    plain = ((level == 1) | (level == 3))[:, None, None]
    start = mu
    free: Tensor | None = None
    d = at.g
    for _ in range(PASSES if box is not None else 1):
        if box is not None:
            now = box.free(at.x, merit.pulled(mu, at.g, y, at.j))
            if free is None:
                now = now | _released(at, box, equal)
            else:
                now = now & (box.inward(at.x, d) | ~free)
            free = now
        bent = memory.apply(vectors, free)
        bent = torch.where(plain, vectors if free is None else vectors * free[:, None], bent)
        bent = torch.where(bent.isfinite(), bent, vectors)  # a memory that broke down
        mu, y = _choose(mu, at, bent, equal)
        down = merit.weights(at.v, equal)
        y = torch.where((level >= 2)[:, None], down, y)
        mu = torch.where(level >= 2, start, mu)
        d = -merit.pulled(mu, bent[:, 0], y, bent[:, 1:])
    force = merit.pulled(mu, at.g, y, at.j)
    if box is not None:
        d = d * box.inward(at.x, d)
        force = force * box.free(at.x, force)
    gd, jd = (at.g * d).sum(-1), (at.j @ d[:, :, None])[:, :, 0]
    now = merit.total(at.v, equal)
    drop = -mu * gd + now - merit.total(at.v + jd, equal)
    slope = merit.slope(mu, gd, at.v, jd, equal)
    return Step(
        mu=mu,
        y=y,
        d=d,
        force=force,
        drop=drop,
        slope=slope,
        lowered=mu < start,
    )


def _released(at: BatchedPoint, box: BatchedBox, equal: Tensor) -> Tensor:
    """(B, n) coordinates whose way off their bound lowers a violation, though μ f may hold them."""
    pull = torch.einsum("bp,bpn->bn", merit.weights(at.v, equal), at.j)
    broken = merit.total(at.v, equal) > NEAR
    return broken[:, None] & (pull != 0) & box.free(at.x, pull)


def _choose(mu: Tensor, at: BatchedPoint, bent: Tensor, equal: Tensor) -> tuple[Tensor, Tensor]:
    """Find μ and y of the first candidate that promises enough."""
    powers = range(11) if at.v.shape[1] <= FEW else (0, 2, 5, 10)
    shares = torch.tensor([*(LOWER**k for k in powers), 0.0], dtype=mu.dtype, device=mu.device)
    candidates = mu[:, None] * shares  # (B, K + 1)
    if at.v.shape[1] == 0:
        return mu, at.v
    q = bent[:, 1:] @ at.j.mT  # (B, p, p)
    q = (q + q.mT) / 2
    cross = (bent[:, 1:] @ at.g[:, :, None])[:, :, 0]  # (B, p)
    linear = candidates[:, :, None] * cross[:, None] - at.v[:, None]
    low = -equal.to(mu.dtype)
    y = box_dual(q, linear, low, torch.ones_like(low))  # (B, K + 1, p)
    moved = -(candidates[:, :, None] * cross[:, None] + y @ q)  # J d
    now = merit.total(at.v, equal)
    drops = now[:, None] - merit.total(at.v[:, None] + moved, equal)
    size = candidates * cross.abs().sum(-1, keepdim=True) + (y.abs() @ q.abs()).sum(-1)
    noise = 10 * torch.finfo(mu.dtype).eps * (at.v.abs().sum(-1)[:, None] + size) + NOTHING
    near = (at.v >= -NEAR).any(-1) | equal.any()
    poor = (drops[:, 0] + noise[:, 0] < SHARE * now) & near
    enough = drops[:, :-1] + noise[:, :-1] >= SHARE * drops[:, -1:]
    enough[:, -1] = True
    first = torch.where(poor, enough.to(torch.uint8).argmax(1), 0)[:, None]
    chosen = y.gather(1, first[:, :, None].expand(-1, 1, y.shape[2]))[:, 0]
    return candidates.gather(1, first)[:, 0], chosen
