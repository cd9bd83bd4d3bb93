"""argmin_x ‖A(x) − y‖² + α‖x − z‖² for a batch of images, A any differentiable operator.

Gauss–Newton: at x, with J = A'(x) by autograd, the move d solves

    (JᵀJ + α) d = Jᵀ(y − A(x)) + α (z − x)

by conjugate gradients with a fixed number of steps, one system an image, so that nothing waits for
the device. For a linear A one round is exact up to the steps. A nonlinear A takes several rounds; a
move that does not lower the sum is halved, and dropped where that did not help either.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]


def conjugate_gradients(
    matrix: Operator, right: Tensor, *, steps: int, start: Tensor | None = None
) -> Tensor:
    """Solve M d = r for each row of a batch, M symmetric positive definite.

    Parameters
    ----------
    matrix : callable
        (B, …) -> (B, …), linear, row by row.
    right : torch.Tensor
        (B, …), the right-hand sides.
    steps : int
        How many steps are taken; rows that are solved stand still.
    start : torch.Tensor, optional
        (B, …), zero by default.
    """
    x = torch.zeros_like(right) if start is None else start
    residual = right if start is None else right - matrix(start)
    direction, squared = residual, _dot(residual, residual)
    tiny = torch.finfo(right.dtype).tiny
    floor = torch.finfo(right.dtype).eps ** 2 * _dot(right, right)
    for _ in range(steps):
        image = matrix(direction)
        # a solved row has nothing left but rounding: its steps are zero
        live = squared > floor
        length = torch.where(live, squared / _dot(direction, image).clamp(min=tiny), 0)
        x = x + length * direction
        residual = residual - length * image
        now = _dot(residual, residual)
        direction = residual + torch.where(live, now / squared.clamp(min=tiny), 0) * direction
        squared = now
    return x


def damped_least_squares(
    operator: Operator,
    y: Tensor,
    toward: Tensor,
    damping: Tensor,
    *,
    rounds: int = 1,
    steps: int = 20,
    start: Tensor | None = None,
) -> Tensor:
    """argmin_x ‖A(x) − y‖² + α‖x − toward‖², one problem a row.

    Parameters
    ----------
    operator : callable
        A, (B, *shape) -> (B, …).
    y : torch.Tensor
        (B, …), what A(x) should give.
    toward : torch.Tensor
        (B, *shape).
    damping : torch.Tensor
        (B,), α.
    rounds : int
        Linearisations: 1 for a linear A.
    steps : int
        Conjugate gradient steps of each.
    start : torch.Tensor, optional
        (B, *shape); ``toward`` by default.
    """
    alpha = damping.reshape(-1, *([1] * (toward.ndim - 1)))
    x = (toward if start is None else start).detach()
    for _ in range(rounds):
        out, pull, push = linearised(operator, x)
        right = pull(y - out) + alpha * (toward - x)
        move = conjugate_gradients(
            lambda d, pull=pull, push=push: pull(push(d)) + alpha * d, right, steps=steps
        )
        x = x + move if rounds == 1 else _lowered(operator, y, toward, alpha, x, move, out)
    return x


def linearised(operator: Operator, x: Tensor) -> tuple[Tensor, Operator, Operator]:
    """A(x), v ↦ Jᵀv and d ↦ Jd at x.

    J d is the derivative of v ↦ ⟨Jᵀv, d⟩, so that only reverse-mode derivatives are asked of A.
    """
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        out = operator(point)
        probe = torch.zeros_like(out, requires_grad=True)
        (pulled,) = torch.autograd.grad(out, point, probe, create_graph=True)

    def pull(v: Tensor) -> Tensor:
        return torch.autograd.grad(out, point, v, retain_graph=True)[0]

    def push(d: Tensor) -> Tensor:
        return torch.autograd.grad(pulled, probe, d, retain_graph=True)[0]

    return out.detach(), pull, push


def _lowered(
    operator: Operator,
    y: Tensor,
    toward: Tensor,
    alpha: Tensor,
    x: Tensor,
    move: Tensor,
    out: Tensor,
) -> Tensor:
    """The lowest of x and x after the move, half of it or a quarter."""

    def value(image: Tensor, seen: Tensor) -> Tensor:
        return ((seen - y) ** 2).flatten(1).sum(1) + (alpha * (image - toward) ** 2).flatten(1).sum(
            1
        )

    with torch.no_grad():
        best, least = x, value(x, out)
        for part in (1.0, 0.5, 0.25):
            tried = x + part * move
            reached = value(tried, operator(tried))
            better = reached < least  # NaN is not
            best = torch.where(better.reshape(alpha.shape), tried, best)
            least = torch.where(better, reached, least)
    return best


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩ of each row, (B, 1, 1, …)."""
    return (a * b).flatten(1).sum(1).reshape(-1, *([1] * (a.ndim - 1)))
