"""Where an attack begins: the classes worth trying, and random moves.

Numbers are drawn on the CPU, for each row from a generator of its own: what an image gets depends
neither on the images beside it nor on the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack_losses import without
from setpoint.robustness.attacks.projections import project

#: Share of pixels that move in a random start for p = 1, where good moves are sparse.
_SPARSE = 0.2


def rivals_of(logits: Tensor, labels: Tensor, most: int) -> Tensor:
    """The classes nearest to winning, besides the label: (B, K) -> (B, min(most, K − 1))."""
    count = min(most, logits.shape[1] - 1)
    return without(logits, labels).topk(count, dim=1).indices


class Draws:
    """Random numbers by row.

    Parameters
    ----------
    seeds : sequence of int
        One for each row.
    like : Tensor
        Whose dtype and device the numbers have.
    """

    def __init__(self, seeds: Sequence[int], like: Tensor) -> None:
        self._generators = [torch.Generator().manual_seed(seed % 2**63) for seed in seeds]
        self._like = like

    def uniform(self, width: int) -> Tensor:
        """Uniform numbers in [0, 1): (B, width)."""
        return self._drawn(torch.rand, width)

    def moves(self, low: Tensor, high: Tensor, radius: Tensor, p: float) -> Tensor:
        """A random move of each row, of the given norm as far as the box allows: (B, n).

        A normal direction (for p = 1 in a fifth of the pixels), projected onto ball ∩ box.
        """
        draw = self._drawn(torch.randn, low.shape[1])
        if p == 1.0:
            draw = draw * (self.uniform(low.shape[1]) < _SPARSE)
        far = draw * 10.0 * radius[:, None]
        return project(far, low, high, radius, p)

    def _drawn(self, how: object, width: int) -> Tensor:
        kind = self._like.dtype
        drawn = [how(width, generator=one, dtype=kind) for one in self._generators]  # type: ignore[operator]
        return torch.stack(drawn).to(self._like.device)
