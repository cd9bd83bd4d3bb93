"""Record of a restoration: the images, and how each was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Restored:
    """Restored images, with the reason for each and the way there.

    Attributes
    ----------
    image : torch.Tensor
        (B, *shape) the selected iterates, in ``range``.
    seed : torch.Tensor or None
        (B, *seed_shape) the seeds found; of several copies the one that explains y best, while the
        image is the mean of them all.
    unknowns : torch.Tensor or None
        What a blind operator was found to be, (B, n), or (1, n) shared.
    chosen : torch.Tensor
        (B,) the step at which each iterate was passed.
    why : list of str
        The rule that selected each.
    residual : torch.Tensor
        (B,) √(‖A(x) − y‖²/m), in the units of y: compare it with the noise level.
    history : dict of str to torch.Tensor
        (K, B) the loss, the mean squared residual and more at every step.
    trail : torch.Tensor or None
        (K', B, *shape) every so many-th iterate, where it was asked for.
    trail_steps : torch.Tensor
        (K',) their steps.
    method, status : str
        Which method, and how it ended in one sentence.
    seconds : float
        Wall-clock time.
    operator : callable
        As given; a module of unknown parameters as a copy with those found.
    shape, range : tuple
        Of an image, and its declared value range.
    interrupted : bool
        Whether it was stopped by hand: the best so far is here.
    """

    image: Tensor = field(repr=False)
    seed: Tensor | None = field(repr=False)
    unknowns: Tensor | None = field(repr=False)
    chosen: Tensor = field(repr=False)
    why: list[str] = field(repr=False)
    residual: Tensor = field(repr=False)
    history: dict[str, Tensor] = field(repr=False)
    trail: Tensor | None = field(repr=False)
    trail_steps: Tensor = field(repr=False)
    method: str
    status: str
    seconds: float
    operator: Any = field(repr=False)
    shape: tuple[int, ...]
    range: tuple[float, float]
    interrupted: bool = False

    def __len__(self) -> int:
        """How many images."""
        return len(self.image)

    def __str__(self) -> str:
        """One line."""
        spread = float(torch.sqrt((self.residual**2).mean()))
        return (
            f"{self.method}: {len(self)} image{'s' * (len(self) != 1)} of "
            f"{'×'.join(map(str, self.shape))}, residual {spread:.4g}, {self.seconds:.1f} s. "
            f"{self.status}"
        )
