"""Blur, then a camera that answers nonlinearly.

    u = (k ∗ x − low) / (high − low)                                share of the range
    saturation:  y = low + (high − low) · tanh(g u)                 bright parts run together
    gamma:       y = low + (high − low) · u^{1/γ}                   dark parts are lifted

Both keep the declared range (low, high).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from setpoint.restoration.operators.blur import Blur
from setpoint.restoration.operators.image_tensors import read_bounded, read_number

#: Below this share of the range the curve of gamma is a straight line, as in sRGB: the slope of
#: u^{1/γ} has no bound at 0, and black is the commonest value of a pixel.
TOE = 0.003


@dataclass(frozen=True, eq=False)
class BlurSaturate:
    """Blur, then saturation: y = low + (high − low) · tanh(gain · u).

    Parameters
    ----------
    blur : Blur
        What comes first.
    gain : float
        How strongly bright parts are pressed together; near 0 nothing is.
    range : (float, float)
        The declared range of the images.

    Examples
    --------
    >>> from setpoint.restoration.operators.blur import gaussian_blur
    >>> BlurSaturate(gaussian_blur(0.5), gain=2.0)(torch.ones(1, 1, 8, 8))[0, 0, 4, 4]
    tensor(0.9640)
    """

    blur: Blur
    gain: float = 2.0
    range: tuple[float, float] = (0.0, 1.0)
    linear: ClassVar[bool] = False
    output: ClassVar[str] = "image"
    observed: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", read_number(self.gain, "the gain of a saturation"))
        object.__setattr__(self, "range", read_bounded(self.range))

    def __call__(self, x: Tensor) -> Tensor:
        """Blurred and saturated images, (B, C, H, W)."""
        low, high = self.range
        share = (self.blur(x) - low) / (high - low)
        return low + (high - low) * torch.tanh(self.gain * share)


@dataclass(frozen=True, eq=False)
class BlurGamma:
    """Blur, then gamma: y = low + (high − low) · u^{1/γ}.

    For u < 0.003 the line through 0 and the curve's point at 0.003 stands in for the curve: the
    gradient is finite everywhere, at 0 and below it too.

    Parameters
    ----------
    blur : Blur
        What comes first.
    gamma : float
        γ, 2.2 for most screens.
    range : (float, float)
        The declared range of the images.

    Examples
    --------
    >>> from setpoint.restoration.operators.blur import gaussian_blur
    >>> A = BlurGamma(gaussian_blur(0.5), gamma=2.0)
    >>> A(torch.full((1, 1, 8, 8), 0.25))[0, 0, 4, 4]
    tensor(0.5000)
    """

    blur: Blur
    gamma: float = 2.2
    range: tuple[float, float] = (0.0, 1.0)
    linear: ClassVar[bool] = False
    output: ClassVar[str] = "image"
    observed: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", read_number(self.gamma, "gamma"))
        object.__setattr__(self, "range", read_bounded(self.range))

    def __call__(self, x: Tensor) -> Tensor:
        """Blurred images after the curve, (B, C, H, W)."""
        low, high = self.range
        share = (self.blur(x) - low) / (high - low)
        power = 1.0 / self.gamma
        # The clamp inside: a power of what is not chosen would still put NaN into the gradient.
        curve = share.clamp(min=TOE) ** power
        return low + (high - low) * torch.where(share < TOE, share * TOE ** (power - 1.0), curve)
