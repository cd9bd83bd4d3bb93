"""Checks of image tensors that all operators share, and constants on every device."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import is_real


def require_images(x: Tensor, who: str) -> Tensor:
    """The batch itself where it is (B, C, H, W) of floats, else a sentence."""
    if not isinstance(x, Tensor):
        raise KindError(f"{who} takes a tensor of images (B, C, H, W); got a {type(x).__name__}")
    if x.ndim != 4:
        raise DataError(
            f"{who} takes images (B, C, H, W); got shape {tuple(x.shape)}. One image alone is "
            "x[None]"
        )
    if not x.is_floating_point():
        raise KindError(f"{who} takes images of floats; got {x.dtype}: use x.float()")
    return x


def read_range(range: Any) -> tuple[float, float]:
    """The declared range of the pixels (low, high), or a sentence."""
    try:
        low, high = range
    except (TypeError, ValueError):
        low, high = math.inf, -math.inf
    if not (is_real(low) and is_real(high) and low < high):
        raise DataError(f"range is two numbers, low below high, such as (0.0, 1.0); got {range!r}")
    return float(low), float(high)


def read_bounded(range: Any) -> tuple[float, float]:
    """A declared range with finite ends, or a sentence."""
    low, high = read_range(range)
    if not -math.inf < low < high < math.inf:
        raise DataError(
            f"range is ({low:g}, {high:g}), and this needs two finite ends; state them, as in "
            "range=(0.0, 1.0)"
        )
    return low, high


def read_number(value: Any, name: str, least: float = 0.0, strict: bool = True) -> float:
    """A finite number above ``least`` (or at it, where not strict), or a sentence."""
    fine = is_real(value) and value < math.inf and (value > least or not strict)
    if not fine or value < least:
        word = "above" if strict else "of at least"
        raise DataError(f"{name} is a number {word} {least:g}; got {value!r}")
    return float(value)


def read_whole(value: Any, name: str, least: int = 1) -> int:
    """A whole number of ``least`` or more (2.0 is one), or a sentence."""
    if not is_real(value) or value != value // 1 or not least <= value < math.inf:
        raise DataError(f"{name} is a whole number, {least} or more; got {value!r}")
    return int(value)


@dataclass(frozen=True, eq=False, repr=False)
class Placed:
    """A constant tensor and its copies on other devices and in other precisions.

    A copy is made once: copying from the processor in every step would make a GPU wait. It is
    made outside inference mode, as it is used with gradients later.
    """

    tensor: Tensor
    copies: dict[tuple[torch.device, torch.dtype], Tensor] = field(default_factory=dict)

    def like(self, x: Tensor) -> Tensor:
        """The tensor on the device of x and in its precision."""
        key = (x.device, x.dtype)
        if key not in self.copies:
            with torch.inference_mode(False):
                copy = self.tensor.to(x.device, x.dtype)
                self.copies[key] = copy.clone() if copy.is_inference() else copy
        return self.copies[key]


# A complex measurement is two real ones, its parts: y = a + ib ↦ (a, b), (B, …) ↦ (B, …, 2).
#
# Methods see real numbers alone. Noise of level σ is of each part, and the m entries of a residual
# ‖A(x) − y‖²/m count both.


def as_real(y: Tensor) -> Tensor:
    """A complex tensor as its parts, (…, 2); any other as it is.

    >>> as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y


def mask_of_parts(mask: Tensor, y: Tensor) -> Tensor:
    """A mask of the entries of y as one of its parts, of the shape of ``as_real(y)``."""
    return mask[..., None].expand(*y.shape, 2) if y.is_complex() else mask.expand(y.shape)


def as_floats(name: str, images: Any) -> Tensor:
    """Images as a tensor, or a sentence where their numbers do not say their range."""
    tensor = torch.as_tensor(images)
    if not tensor.is_floating_point():
        raise KindError(
            f"{name} holds {tensor.dtype}, and its range cannot be known from that; give floats in "
            f"the range of the prior's images, such as {name.split()[-1]}.float() / 255"
        )
    return tensor
