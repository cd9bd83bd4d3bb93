"""Random numbers by seed and purpose: the same seed never gives two purposes the same numbers.

    stream(seed, purpose) = a generator started at  H(seed, purpose),   H a hash of 63 bits

A mask, the noise and the first seed of a prior are all drawn "with seed 0". Were they drawn from
one and the same generator, the noise in y would be the very seed the search starts from.
"""

from __future__ import annotations

import hashlib
import operator as builtin
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import KindError


def stream(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator of its own for one purpose.

    Examples
    --------
    >>> a = torch.rand(2, generator=stream(0, "noise"))
    >>> b = torch.rand(2, generator=stream(0, "noise"))
    >>> c = torch.rand(2, generator=stream(0, "mask"))
    >>> bool((a == b).all()), bool((a == c).any())
    (True, False)
    """
    mark = hashlib.blake2b(f"{purpose} {read_seed(seed)}".encode(), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(mark, "little") >> 1)


def read_seed(seed: Any) -> int:
    """A whole number, or a sentence."""
    try:
        if isinstance(seed, bool):
            raise TypeError
        return builtin.index(seed)
    except TypeError:
        raise KindError(f"seed is a whole number such as 0; got {seed!r}") from None


def normal_like(y: Tensor, seed: int, purpose: str) -> Tensor:
    """Standard normal numbers of the shape of y (B, …), image by image.

    Drawn in double precision on the processor whatever y is, so that one seed means one noise
    everywhere, and image after image, so that the first images of a longer batch are the same.
    """
    source = stream(seed, purpose)
    drawn = [torch.randn(y.shape[1:], generator=source, dtype=torch.float64) for _ in range(len(y))]
    return torch.stack(drawn).to(y) if drawn else y.clone()


def uniform_like(y: Tensor, seed: int, purpose: str) -> Tensor:
    """The same for numbers uniform in [0, 1), in double precision on the device of y."""
    source = stream(seed, purpose)
    drawn = [torch.rand(y.shape[1:], generator=source, dtype=torch.float64) for _ in range(len(y))]
    return torch.stack(drawn).to(y.device) if drawn else y.double()
