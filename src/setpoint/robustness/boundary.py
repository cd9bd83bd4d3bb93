"""Back towards the clean image until the decision surface: bisection on the scale of the move."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.robustness.attacks.model_probe import Probe
from setpoint.robustness.rows import Rows

#: Halvings: after one try of 98 %, the scale is known to 2 % · 2⁻¹⁰ where the surface is that near.
HALVINGS = 10


def pulled_back(probe: Probe, rows: Rows, moves: Tensor, halvings: int = HALVINGS) -> Tensor:
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
