"""Blind deblurring: the kernel is unknown, one for each image, and sought with the image.

    A(x, u) = softmax(u) ∗ x,      u ∈ R^{k²} free,   softmax(u) ≥ 0 and sums to 1

**The shift.** A kernel moved by s and an image moved by −s give the same y, away from the border:
y alone cannot tell them apart. Three things hold the kernel in the middle: the start is symmetric,
a prior knows where its images lie, and :meth:`BlindBlur.offset` says how far the kernel's centre
of mass is out, so that a method can punish it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean
from setpoint.restoration.operators.blur import (
    Blur,
    convolve,
    read_boundary,
    read_side,
)
from setpoint.restoration.operators.image_tensors import Placed, read_number, require_images

STARTS = ("gaussian", "flat")


@dataclass(frozen=True, eq=False, repr=False)
class BlindBlur:
    """Blur by an unknown kernel on the simplex.

    Parameters
    ----------
    size : int
        The odd side k of the kernel.
    start : {"gaussian", "flat"}
        Where the search starts: a broad Gaussian, or the same weight for every pixel.
    spread : float or None
        Standard deviation of that Gaussian in pixels; None: k / 4.
    boundary : {"reflect", "circular"}
        How the image goes on beyond its border.

    Examples
    --------
    >>> A = BlindBlur(5)
    >>> x = torch.rand(2, 1, 8, 8)
    >>> u = A.unknowns(2, x)
    >>> u.shape, A(x, u).shape, A.kernel(u).shape
    (torch.Size([2, 25]), torch.Size([2, 1, 8, 8]), torch.Size([2, 5, 5]))
    """

    size: int
    start: str = "gaussian"
    spread: float | None = None
    boundary: str = "reflect"
    linear: ClassVar[bool] = False
    output: ClassVar[str] = "image"
    range: ClassVar[None] = None
    observed: ClassVar[None] = None
    _first: Placed = field(init=False)

    def __post_init__(self) -> None:
        side = read_side(self.size)
        read_boundary(self.boundary)
        if self.start not in STARTS:
            hint = did_you_mean(self.start, STARTS, "take 'gaussian' or 'flat'")
            raise DataError(f"the start {self.start!r} of a blind blur is not known; {hint}")
        wide = side / 4 if self.spread is None else read_number(self.spread, "spread")
        far = (torch.arange(side, dtype=torch.float64) - side // 2) ** 2
        # The logarithm itself, not that of a sampled Gaussian, which may round to 0 far out.
        broad = -(far[:, None] + far[None, :]) / (2 * wide**2)
        first = broad if self.start == "gaussian" else torch.zeros_like(broad)
        object.__setattr__(self, "size", side)
        object.__setattr__(self, "_first", Placed(first.reshape(1, -1)))

    def unknowns(self, batch: int, like: Tensor) -> Tensor:
        """Where the search starts, (B, k²) on the device and in the precision of ``like``."""
        return self._first.like(like).expand(batch, -1).clone()

    def kernel(self, unknowns: Tensor) -> Tensor:
        """softmax(u): the kernels (B, k, k), each ≥ 0 and of sum 1."""
        return torch.softmax(unknowns, -1).reshape(-1, self.size, self.size)

    def offset(self, unknowns: Tensor) -> Tensor:
        """How far each kernel's centre of mass is out of the middle: (B, 2), rows and columns.

        Differentiable; ``offset(u).square().sum(1)`` is a penalty that undoes the shift.
        """
        weights = self.kernel(unknowns)
        far = torch.arange(self.size, device=weights.device, dtype=weights.dtype) - self.size // 2
        return torch.stack([weights.sum(2) @ far, weights.sum(1) @ far], 1)

    def known(self, unknowns: Tensor) -> Blur:
        """The blur by the kernel of one image, u of (k²,) or (1, k²)."""
        return Blur(self.kernel(unknowns.detach().reshape(1, -1))[0], self.boundary)

    def __call__(self, x: Tensor, unknowns: Tensor | None = None) -> Tensor:
        """The images, each blurred with its own kernel: (B, C, H, W), (B, k²) -> (B, C, H, W)."""
        require_images(x, "BlindBlur")
        if unknowns is None:
            raise KindError(
                "BlindBlur was called without its unknowns; call it as A(x, u) with "
                "u = A.unknowns(len(x), x) to begin with, or use A.known(u)(x)"
            )
        if unknowns.shape not in {(len(x), self.size**2), (1, self.size**2)}:
            raise DataError(
                f"the unknowns have shape {tuple(unknowns.shape)}; for {len(x)} images they are "
                f"{(len(x), self.size**2)}, as A.unknowns({len(x)}, x) gives them"
            )
        return convolve(x, self.kernel(unknowns), self.boundary)

    def __repr__(self) -> str:
        return f"BlindBlur(size={self.size}, start={self.start!r}, {self.boundary!r})"
