"""Rows of pixels an attack works on; several may belong to one image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Rows an attack works on; several may belong to one image.

    Attributes
    ----------
    clean, low, high : Tensor (R, n)
        The image, and the box around it: ``low = least − clean``, ``high = greatest − clean``.
    labels : Tensor (R,)
        The class to leave, or to reach.
    floor : Tensor (R,)
        The margin from which a move has what the attack wants: a little over 0, so that it still
        has it when the same image is put through the model in another batch and rounds otherwise.
    rivals : Tensor (R,) or None
        The class set against the label.
    """

    clean: Tensor
    low: Tensor
    high: Tensor
    labels: Tensor
    floor: Tensor
    rivals: Tensor | None = None

    def take(self, index: Tensor) -> Rows:
        """Some of the rows, by number."""
        return Rows(
            self.clean[index],
            self.low[index],
            self.high[index],
            self.labels[index],
            self.floor[index],
            None if self.rivals is None else self.rivals[index],
        )

    def inside(self, moves: Tensor) -> Tensor:
        """The moves after clipping to the box and rounding: what the image really changes by."""
        kept = torch.minimum(torch.maximum(moves, self.low), self.high)
        return (self.clean + kept) - self.clean

    def against(self, rivals: Tensor) -> Rows:
        """Each row once for every rival: (R,) rows and (R, k) rivals -> (R·k,) rows, in order."""
        index = torch.arange(len(rivals), device=rivals.device).repeat_interleave(rivals.shape[1])
        return replace(self.take(index), rivals=rivals.reshape(-1))
