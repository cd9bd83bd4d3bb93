"""Inpainting: some pixels are seen, the others are not.

    A x = m ⊙ x,   m ∈ {0, 1} (1: seen),      Aᵀ v = m ⊙ v

A hidden pixel is given as 0 and carries no noise; :attr:`Inpaint.observed` says which are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.random_streams import stream
from setpoint.restoration.operators.image_tensors import (
    Placed,
    read_number,
    read_whole,
    require_images,
)


@dataclass(frozen=True, eq=False, repr=False)
class Inpaint:
    """Keep the pixels of a mask, 0 elsewhere.

    Parameters
    ----------
    mask : Tensor
        Of truth values or of 0 and 1, 1 where a pixel is seen: (H, W), or (B, 1, H, W) with one
        mask for each image, or (1, 1, H, W); a mask for each channel is (…, C, H, W).

    Examples
    --------
    >>> A = Inpaint(torch.tensor([[True, False]]))
    >>> A(torch.tensor([[[[0.5, 0.25]]]]))
    tensor([[[[0.5000, 0.0000]]]])
    """

    mask: Tensor
    linear: ClassVar[bool] = True
    output: ClassVar[str] = "image"
    range: ClassVar[None] = None
    _kept: Placed = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", _read_mask(self.mask))
        object.__setattr__(self, "_kept", Placed(self.mask))

    @property
    def observed(self) -> Tensor:
        """The mask as truth values (B | 1, 1 | C, H, W)."""
        return self.mask

    def take(self, rows: Any) -> Inpaint:
        """The same for some images only, where each has a mask of its own."""
        if len(self.mask) == 1:
            return self
        rows = rows.to(self.mask.device) if isinstance(rows, Tensor) else rows
        return Inpaint(self.mask[rows])

    def __call__(self, x: Tensor) -> Tensor:
        """The images with 0 in the place of every hidden pixel."""
        return require_images(x, "Inpaint") * self._fitting(x)

    def adjoint(self, v: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Aᵀ v = m ⊙ v."""
        return (v * self._fitting(v)).reshape(len(v), *shape)

    def _fitting(self, x: Tensor) -> Tensor:
        mine, theirs = self.mask.shape, x.shape
        if mine[0] not in (1, theirs[0]):
            raise DataError(
                f"there are {mine[0]} masks, one for each image, and {theirs[0]} images; give as "
                "many of the one as of the other, or one mask for all"
            )
        if mine[1] not in (1, theirs[1]) or mine[2:] != theirs[2:]:
            raise DataError(
                f"the mask is for images of {tuple(mine[1:])} and they are {tuple(theirs[1:])}; "
                "take a mask, or a prior, of the other's size"
            )
        return self._kept.like(x)

    def __repr__(self) -> str:
        hidden = 1.0 - float(self.mask.double().mean())
        return f"Inpaint(mask {tuple(self.mask.shape)}, {hidden:.1%} hidden)"


def random_inpaint(
    shape: Sequence[int], hidden: float = 0.7, seed: int = 0, batch: int | None = None
) -> Inpaint:
    """Hide round(hidden · H · W) pixels of each image, each set of so many equally likely.

    Parameters
    ----------
    shape : sequence of int
        Of one image, (C, H, W); all channels of a pixel are hidden together.
    hidden : float
        The share of hidden pixels, above 0 and below 1.
    seed : int
        Seed of the draw.
    batch : int or None
        How many images, each with a mask of its own; None: one mask for all.

    Examples
    --------
    >>> random_inpaint((1, 10, 10), hidden=0.7, batch=3)
    Inpaint(mask (3, 1, 10, 10), 70.0% hidden)
    """
    height, width = _sides(shape)
    share = read_number(hidden, "the hidden share of inpaint")
    count = round(share * height * width) if share < 1 else height * width
    if not 0 < count < height * width:
        raise DataError(
            f"inpaint with a hidden share of {hidden:g} hides {count} of {height * width} pixels; "
            "take a share above 0 and below 1, such as 0.7"
        )
    source = stream(seed, "mask")
    masks = torch.ones(_count(batch), height * width, dtype=torch.bool)
    for mask in masks:
        mask[torch.randperm(height * width, generator=source)[:count]] = False
    return Inpaint(masks.reshape(-1, 1, height, width))


def box_inpaint(
    shape: Sequence[int],
    size: int | tuple[int, int],
    corner: tuple[int, int] | None = None,
    seed: int | None = None,
    batch: int | None = None,
) -> Inpaint:
    """Hide a box of pixels.

    Parameters
    ----------
    shape : sequence of int
        Of one image, (C, H, W).
    size : int or (int, int)
        Height and width of the box.
    corner : (int, int) or None
        Row and column of its upper left pixel; None: in the middle, or drawn where there is a seed.
    seed : int or None
        Seed of the draw of the corner, every place in the image equally likely.
    batch : int or None
        How many images, each with a box of its own where drawn; None: one mask for all.

    Examples
    --------
    >>> box_inpaint((1, 4, 4), 2).observed.int()[0, 0]
    tensor([[1, 1, 1, 1],
            [1, 0, 0, 1],
            [1, 0, 0, 1],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    height, width = _sides(shape)
    tall, wide = size if isinstance(size, tuple) else (size, size)
    tall, wide = read_whole(tall, "the size of a box"), read_whole(wide, "the size of a box")
    if tall > height or wide > width or tall * wide == height * width:
        raise DataError(
            f"a box of {tall} × {wide} does not leave anything of an image of {height} × {width} "
            "pixels; take a smaller one"
        )
    masks = torch.ones(_count(batch), 1, height, width, dtype=torch.bool)
    if corner is not None:
        row, column = (read_whole(c, "the corner of a box", 0) for c in corner)
        if row + tall > height or column + wide > width:
            raise DataError(
                f"a box of {tall} × {wide} at {(row, column)} leaves the image of {height} × "
                f"{width} pixels; its corner is at most {(height - tall, width - wide)}"
            )
    source = None if seed is None or corner is not None else stream(seed, "mask")
    for mask in masks:
        if source is not None:
            row = int(torch.randint(height - tall + 1, (), generator=source))
            column = int(torch.randint(width - wide + 1, (), generator=source))
        elif corner is None:
            row, column = (height - tall) // 2, (width - wide) // 2
        mask[:, row : row + tall, column : column + wide] = False
    return Inpaint(masks)


def _sides(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 3:
        raise DataError(f"shape is that of one image, (C, H, W); got {tuple(shape)}")
    return int(shape[-2]), int(shape[-1])


def _count(batch: int | None) -> int:
    return 1 if batch is None else read_whole(batch, "batch")


def _read_mask(mask: Any) -> Tensor:
    if not isinstance(mask, Tensor):
        raise KindError(
            f"mask is a tensor of truth values, 1 where seen; got {type(mask).__name__}"
        )
    if not 2 <= mask.ndim <= 4 or mask.numel() == 0:
        raise DataError(f"mask is (H, W), (C, H, W) or (B, C, H, W); got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        if not bool(((mask == 0) | (mask == 1)).all()):
            strange = mask[(mask != 0) & (mask != 1)][0]
            raise DataError(f"mask holds {float(strange):g}; it holds 1 where seen and 0 elsewhere")
        mask = mask == 1
    mask = mask.detach().reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
    blank = ~mask.flatten(1).any(1)
    if bool(blank.any()):
        raise DataError(
            f"the mask of image {int(blank.nonzero()[0])} hides every pixel; leave the image out"
        )
    return mask
