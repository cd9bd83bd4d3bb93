"""Phase retrieval: the size of the Fourier transform is seen, its phase is not.

    A(x) = |F x̄|,      x̄ the image in the corner of a sheet of zeros, ``oversampling`` times as wide

F is unitary, so that ‖A(x)‖ = ‖x‖ and one σ means the same at every size. y is the same for the
image turned by 180°, moved within the sheet, or with its sign changed: only the prior tells these
apart.

References
----------
J. R. Fienup, "Phase retrieval algorithms: a comparison", Applied Optics 21 (1982), 2758–2769.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from setpoint.restoration.operators.image_tensors import read_whole, require_images


@dataclass(frozen=True)
class PhaseRetrieval:
    """Moduli of the Fourier transform: (B, C, H, W) -> (B, C, s H, s W).

    The gradient of |c| at c = 0 is taken as 0, the subgradient of least norm.

    Parameters
    ----------
    oversampling : int
        s: how many times wider the sheet of zeros is; 2 sees the autocorrelation in full.

    Examples
    --------
    >>> y = PhaseRetrieval(2)(torch.ones(1, 1, 4, 4))
    >>> y.shape, y[0, 0, 0, 0]
    (torch.Size([1, 1, 8, 8]), tensor(2.))
    """

    oversampling: int = 2
    linear: ClassVar[bool] = False
    output: ClassVar[str] = "other"
    range: ClassVar[None] = None
    observed: ClassVar[None] = None

    def __post_init__(self) -> None:
        whole = read_whole(self.oversampling, "the oversampling of phase retrieval")
        object.__setattr__(self, "oversampling", whole)

    def __call__(self, x: Tensor) -> Tensor:
        """|F x̄| of every channel."""
        height, width = require_images(x, "PhaseRetrieval").shape[-2:]
        sheet = (self.oversampling * height, self.oversampling * width)
        return torch.fft.fft2(x, s=sheet, norm="ortho").abs()
