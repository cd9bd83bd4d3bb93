"""Prior: x = prior(z), with z ~ N(0, I) and x an image of a declared value range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError


@runtime_checkable
class Prior(Protocol):
    """A differentiable map from seeds to images.

    Attributes
    ----------
    shape : tuple of int
        Of one image, (C, H, W).
    seed_shape : tuple of int
        Of one seed; its law is the standard normal one.
    range : tuple of float
        The declared value range (low, high) of the images.

    Notes
    -----
    A prior that also has ``denoise(x, sigma)``, the posterior mean of the clean image given
    x = clean + sigma · noise in the units of x, serves plug-and-play methods and the distance to
    the manifold.
    """

    shape: tuple[int, ...]
    seed_shape: tuple[int, ...]
    range: tuple[float, float]

    def __call__(self, z: Tensor) -> Tensor:
        """Images (B, *shape) of seeds (B, *seed_shape), differentiable in the seeds."""
        ...


class Generator(nn.Module):
    """x = function(z): any callable as a prior.

    Parameters
    ----------
    function : callable
        (B, *seed_shape) -> (B, *shape), differentiable.
    shape : tuple of int
        Of one image.
    seed_shape : tuple of int, optional
        Of one seed; that of an image by default.
    range : tuple of float
        The value range of what the function gives. It is stated, never guessed.
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        shape: tuple[int, ...],
        seed_shape: tuple[int, ...] | None = None,
        range: tuple[float, float],
    ) -> None:
        super().__init__()
        self.function = function
        self.shape = tuple(shape)
        self.seed_shape = tuple(shape if seed_shape is None else seed_shape)
        self.range = checked_range(range)

    def forward(self, z: Tensor) -> Tensor:
        """The function itself."""
        return self.function(z)


def checked_range(pair: tuple[float, float]) -> tuple[float, float]:
    """(low, high) as two floats with low < high."""
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise DataError(
            f"range={pair!r} is not a pair of numbers: state the least and the greatest value of "
            "an image, such as (0, 1) or (-1, 1)."
        ) from None
    if not low < high:
        raise DataError(f"range=({low:g}, {high:g}) is empty: the first end must be the lower one.")
    return low, high


class Scaled(nn.Module):
    """Between the units of a network, [-1, 1], and the declared range of the images.

    image = low + (u + 1)(high − low)/2, so a deviation of s in the network's units is
    s (high − low)/2 in those of the image.
    """

    range: tuple[float, float]

    def to_image(self, u: Tensor) -> Tensor:
        """From [-1, 1] to the declared range."""
        low, high = self.range
        return low + (u + 1) * (0.5 * (high - low))

    def from_image(self, x: Tensor) -> Tensor:
        """From the declared range to [-1, 1]."""
        low, high = self.range
        return (x - low) * (2.0 / (high - low)) - 1

    def units(self, sigma: float | Tensor, like: Tensor) -> Tensor:
        """A deviation in the image's units as one in the network's, (B, 1, 1, …)."""
        low, high = self.range
        sigma = torch.as_tensor(sigma, dtype=like.dtype, device=like.device)
        sigma = sigma.expand(len(like)) if sigma.ndim == 0 else sigma
        return column(sigma * (2.0 / (high - low)), like)


def column(values: Tensor, like: Tensor) -> Tensor:
    """(B,) as (B, 1, 1, …), to be multiplied with rows of ``like``."""
    return values.reshape(-1, *([1] * (like.ndim - 1)))
