"""Residual of the conditions of Karush, Kuhn and Tucker, row by row.

    min over λ of ‖ P(∇f + J'λ) ‖₂,    λ >= 0 for inequalities, 0 where they are not active

P leaves out what a bound takes up: a coordinate at its low with a positive component, at its high
with a negative one. The multipliers are in units of f.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.solvers.batched import merit
from setpoint.solvers.batched.bounds import BatchedBox
from setpoint.solvers.batched.box_dual import box_dual
from setpoint.solvers.batched.steering import BatchedPoint

PASSES = 3


def least_force(
    at: BatchedPoint, mu: Tensor, y: Tensor, box: BatchedBox | None, equal: Tensor, near: float
) -> tuple[Tensor, Tensor]:
    """The force (B, n) that the best multipliers leave, which is the residual, and these (B, p).

    An inequality is active where c >= −near, or where the last step gave it a force y > 0.
    Multipliers are sought up to 2/μ: a penalty of weight 1/μ is exact for no greater ones.
    """
    one = torch.ones_like(mu)
    active = (equal | (at.v >= -near) | (y > 0)).to(at.g.dtype)
    lam = torch.zeros_like(at.v)
    j = at.j * active[:, :, None]
    low = -equal.to(at.g.dtype)
    most = (2 / mu)[:, None]
    for _ in range(PASSES if at.v.shape[1] else 0):
        free_slopes = (
            j if box is None else j * box.free(at.x, merit.pulled(one, at.g, lam, j))[:, None]
        )
        q = free_slopes @ free_slopes.mT * most[:, :, None] ** 2
        w = (free_slopes @ at.g[:, :, None])[:, :, 0] * most
        lam = box_dual(q, w[:, None], low, torch.ones_like(low))[:, 0] * most * active
    force = merit.pulled(one, at.g, lam, j)
    if box is not None:
        force = force * box.free(at.x, force)
    return force, lam


def unbalanced(force: Tensor, at: BatchedPoint, lam: Tensor) -> Tensor:
    """(B,) the residual coordinate by coordinate, beside what it is made of.

        maxᵢ |forceᵢ| / (1 + |∇f|ᵢ + Σⱼ |λⱼ ∇vⱼ|ᵢ)

    A steep slope that a bound or a constraint holds says nothing of the other coordinates.
    """
    sizes = at.g.abs() + torch.einsum("bp,bpn->bn", lam.abs(), at.j.abs())
    return (force.abs() / (1 + sizes)).amax(-1)


def stuck(at: BatchedPoint, box: BatchedBox | None, equal: Tensor, tolerance: float) -> Tensor:
    """(B,) rows where no step lowers the violation: 0 is, nearly, among the slopes of V.

        min_y ½ ‖P J'y‖² − v'y,    0 <= y_c <= 1, |y_e| <= 1

    is the dual of the steepest way down; both its length and what it brings must be nothing.
    """
    if at.v.shape[1] == 0:
        return torch.zeros_like(at.f, dtype=torch.bool)
    y = merit.weights(at.v, equal)
    low = -equal.to(at.g.dtype)
    free_slopes = at.j
    none = torch.zeros_like(at.f)
    for _ in range(PASSES):
        if box is not None:
            free_slopes = at.j * box.free(at.x, merit.pulled(none, at.g, y, at.j))[:, None]
        q = free_slopes @ free_slopes.mT
        y = box_dual(q, -at.v[:, None], low, torch.ones_like(low))[:, 0]
    pull = torch.einsum("bp,bpn->bn", y, free_slopes)
    moved = -(y[:, None] @ q)[:, 0]
    now = merit.total(at.v, equal)
    brought = now - merit.total(at.v + moved, equal)
    steep = at.j.norm(dim=-1).sum(-1).clamp_min(1)
    return (pull.norm(dim=-1) <= tolerance * steep) & (brought <= tolerance * now)
