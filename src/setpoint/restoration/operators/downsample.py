"""Super-resolution: every f × f block of pixels is seen as one, its mean.

(A x)[i, j] = f⁻² Σ_{a, b < f} x[f i + a, f j + b],      (Aᵀ v)[p, q] = f⁻² v[⌊p/f⌋, ⌊q/f⌋]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.operators.image_tensors import read_whole, require_images


@dataclass(frozen=True)
class Downsample:
    """Block means: (B, C, H, W) -> (B, C, H/f, W/f).

    Parameters
    ----------
    factor : int
        The side f of a block, 2 or more; H and W are multiples of it.

    Examples
    --------
    >>> import torch
    >>> Downsample(2)(torch.tensor([[[[0.0, 1.0], [1.0, 0.0]]]]))
    tensor([[[[0.5000]]]])
    """

    factor: int
    linear: ClassVar[bool] = True
    output: ClassVar[str] = "image"
    range: ClassVar[None] = None
    observed: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", read_whole(self.factor, "the factor of sr", 2))

    def __call__(self, x: Tensor) -> Tensor:
        """Block means of every image."""
        height, width = require_images(x, "Downsample").shape[-2:]
        if height % self.factor or width % self.factor:
            raise DataError(
                f"images of {height} × {width} pixels do not divide into blocks of {self.factor}; "
                "crop or pad them, or take another factor"
            )
        return F.avg_pool2d(x, self.factor)

    def adjoint(self, v: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Aᵀ v: every value spread evenly over its block, (B, C, h, w) -> (B, *shape)."""
        spread = v.repeat_interleave(self.factor, -2).repeat_interleave(self.factor, -1)
        return (spread / self.factor**2).reshape(len(v), *shape)
