"""Every iterate of a method, written down as it passes: history, trail, progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint._core.options import whole

#: f(step, steps or None, residual): told after every step; the residual stays on its device
Callback = Callable[[int, int | None, Tensor], Any]


class IterateHistory:
    """A book of iterates.

    Parameters
    ----------
    trail : int
        Keep every so many-th image; 0 keeps none.
    callback : callable, optional
        ``f(step, steps, residual)`` after every step.

    Notes
    -----
    Nothing is read back from a device here: numbers are stacked when the record is made.
    """

    def __init__(self, trail: int = 0, callback: Callback | None = None) -> None:
        whole("trail", trail, 0)
        self.trail, self.callback = trail, callback
        self.steps: int | None = None
        self.last: Tensor | None = None
        self.unknowns: Tensor | None = None
        self._numbers: dict[str, list[Tensor]] = {}
        self._images: list[Tensor] = []
        self._at: list[int] = []

    def __call__(
        self,
        step: int,
        image: Tensor,
        loss: Tensor,
        residual: Tensor,
        unknowns: Tensor | None = None,
        **more: Tensor,
    ) -> None:
        """Note one iterate: images (B, *shape), numbers (B,) of it, and a blind operator's own."""
        self.last = image.detach()
        self.unknowns = None if unknowns is None else unknowns.detach().clone()
        for name, values in {"loss": loss, "residual": residual, **more}.items():
            self._numbers.setdefault(name, []).append(values.detach().reshape(len(image)))
        if self.trail and step % self.trail == 0:
            self._images.append(self.last.clone())
            self._at.append(step)
        if self.callback is not None:
            self.callback(step, self.steps, residual.detach())

    def history(self) -> dict[str, Tensor]:
        """Name -> (K, B), one row for each step."""
        return {name: torch.stack(values) for name, values in self._numbers.items()}

    def images(self) -> tuple[Tensor | None, Tensor]:
        """The images kept, (K, B, *shape) or None, and their steps (K,)."""
        at = torch.tensor(self._at, dtype=torch.long)
        return (torch.stack(self._images) if self._images else None), at
