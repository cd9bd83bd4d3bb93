"""A complex measurement is two real ones, its parts: y = a + ib ↦ (a, b), (B, …) ↦ (B, …, 2).

Methods see real numbers alone. Noise of level σ is of each part, and the m entries of a residual
‖A(x) − y‖²/m count both.
"""

from __future__ import annotations

import torch
from torch import Tensor


def as_real(y: Tensor) -> Tensor:
    """A complex tensor as its parts, (…, 2); any other as it is.

    >>> as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y


def mask_of_parts(mask: Tensor, y: Tensor) -> Tensor:
    """A mask of the entries of y as one of its parts, of the shape of ``as_real(y)``."""
    return mask[..., None].expand(*y.shape, 2) if y.is_complex() else mask.expand(y.shape)
