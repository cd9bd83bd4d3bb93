"""Points on the way from a clean image to a moved one, by bisection; nothing is differentiated.

    z(t) = x + t (z − x),    0 <= t <= 1

``inside`` gives the farthest point found that keeps d(x, z(t)) <= eps, ``outside`` the nearest one
found that is still decided otherwise. Neither asks that the distance or the margin grow along the
way: what is returned has been measured itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack_problem import AttackRows
from setpoint.robustness.attacks.model_probe import Probe

Holds = Callable[[Tensor], Tensor]  #: images (B, *shape) -> which of them are good (B,)

HALVINGS = 12


def inside(x: Tensor, z: Tensor, holds: Holds, halvings: int = HALVINGS) -> Tensor:
    """The point z where it holds, otherwise a point on the way to x that does; x holds itself."""
    good = holds(z)
    near, far = torch.zeros_like(good, dtype=x.dtype), torch.ones_like(good, dtype=x.dtype)
    for _ in range(halvings):
        middle = (near + far) / 2
        fits = holds(_on(x, z, middle))
        near, far = torch.where(fits, middle, near), torch.where(fits, far, middle)
    return torch.where(_wide(good, x), z, _on(x, z, near))


def outside(x: Tensor, z: Tensor, holds: Holds, halvings: int = HALVINGS) -> Tensor:
    """The point nearest to x on the way to z, as far as it is found, that still holds, as z does.

    Where z does not hold it stays as it is.
    """
    good = holds(z)
    near, far = torch.zeros_like(good, dtype=x.dtype), torch.ones_like(good, dtype=x.dtype)
    for turn in range(halvings):
        middle = (near + far) / 2 if turn else torch.full_like(far, 0.98)
        fits = holds(_on(x, z, middle))
        far, near = torch.where(fits, middle, far), torch.where(fits, near, middle)
    return torch.where(_wide(good & (far < 1), x), _on(x, z, far), z)


def _on(x: Tensor, z: Tensor, t: Tensor) -> Tensor:
    """The point x + t (z − x), kept between the two: rounding must not leave a box of both."""
    moved = x + _wide(t, x) * (z - x)
    return torch.minimum(torch.maximum(moved, torch.minimum(x, z)), torch.maximum(x, z))


def _wide(row: Tensor, x: Tensor) -> Tensor:
    return row.reshape(-1, *(1,) * (x.ndim - 1))


# Back towards the clean image until the decision surface: bisection on the scale of the move.


#: Halvings: after one try of 98 %, the scale is known to 2 % · 2⁻¹⁰ where the surface is that near.
PULL_BACK_HALVINGS = 10


def pulled_back(
    probe: Probe, rows: AttackRows, moves: Tensor, halvings: int = PULL_BACK_HALVINGS
) -> Tensor:
    """The least scale found at which each move still has what the attack wants, times the move.

    Moves that have not got it stay as they are.
    """
    some = rows.floor
    outer, inner = torch.ones_like(some), torch.zeros_like(some)
    wanted = probe.margins(rows.clean + rows.inside(moves), rows.labels) >= some
    for turn in range(halvings + 1):
        middle = 0.5 * (outer + inner) if turn else torch.full_like(some, 0.98)
        trial = rows.inside(moves * middle[:, None])
        still = probe.margins(rows.clean + trial, rows.labels) >= some
        outer = torch.where(still, middle, outer)
        inner = torch.where(still, inner, middle)
    return torch.where(wanted[:, None], rows.inside(moves * outer[:, None]), moves)
