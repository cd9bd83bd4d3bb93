"""What came of restoring clips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class RestoredVideo:
    """Restored clips, the iterate that was selected and why.

    Sizes are for N clips of T frames; where one clip was given without N, ``frames``, ``seeds``,
    ``residual``, ``flow``, ``valid`` and ``unknowns`` are without it too.

    Attributes
    ----------
    frames : torch.Tensor
        (N, T, C, H, W), the selected iterate.
    seeds : torch.Tensor
        (N, T, *seed_shape), of which the frames are made.
    chosen : torch.Tensor
        (N,) long, the iteration selected.
    why : tuple of str
        For each clip, why that one.
    residual : torch.Tensor
        (N, T), root mean squared over the observed entries, in the units of the measurement.
    flow : torch.Tensor or None
        (N, T − 1, 2, H, W), as it was last held; None where pixel consistency was not asked for.
    valid : torch.Tensor or None
        (N, T − 1, 1, H, W) bool, the pixels that counted.
    history : mapping of str to torch.Tensor
        Each (K, N), one row an iteration: ``loss``; ``residual``, mean squared; ``warping``, the
        warping error with the flow held then (0 while there is none); ``slack`` of the seeds;
        ``variance``, of the window that ends there (infinite before the first is full).
    trail : torch.Tensor or None
        (K', N, T, C, H, W), every so many iterates, where asked for.
    trail_steps : torch.Tensor
        (K',) long, their iterations.
    unknowns : torch.Tensor or None
        (N, n), what was found of a blind operator, one for all frames of a clip.
    status : str
        How it ended, in a sentence.
    interrupted : bool
        Whether it was ended from outside.
    seconds : float
    settings : mapping
        The options it ran with.
    range : tuple of float
        The declared value range of the frames.
    """

    frames: Tensor
    seeds: Tensor
    chosen: Tensor
    why: tuple[str, ...]
    residual: Tensor
    flow: Tensor | None
    valid: Tensor | None
    history: Mapping[str, Tensor]
    trail: Tensor | None
    trail_steps: Tensor
    unknowns: Tensor | None
    status: str
    interrupted: bool = False
    seconds: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    range: tuple[float, float] = (0.0, 1.0)

    def __str__(self) -> str:
        *_, frames, _, _, _ = self.frames.shape
        clips = len(self.chosen)
        return (
            f"{clips} clip{'s' if clips > 1 else ''} of {frames} frames: {self.status} "
            f"Residual {float(self.residual.square().mean().sqrt()):.4g}."
        )
