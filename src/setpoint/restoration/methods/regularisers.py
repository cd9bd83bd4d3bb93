"""Ω: what is asked of an image, or of its seed, beside explaining y.

"seed"     ½ ‖z‖²                the negative log density of the seed: the posterior mode
"anchor"   ½ ‖z − z_k‖²          the nearest seed to one drawn at random
callable   Ω(x), one number an image
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError


def seed_energy(z: Tensor) -> Tensor:
    """½ ‖z‖², (N,)."""
    return 0.5 * z.flatten(1).square().sum(1)


def image_term(regulariser: Any) -> Callable[[Tensor], Tensor]:
    """A callable of images, with what it gives looked at."""
    if not callable(regulariser):
        raise KindError(
            f"regulariser={regulariser!r} is not known: say None, 'seed', 'anchor' (constrained "
            "form) or give a function of the images that returns one number for each."
        )

    def term(image: Tensor) -> Tensor:
        value = regulariser(image)
        if not isinstance(value, Tensor) or value.shape != (len(image),):
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise DataError(
                f"the regulariser gave {got} for {len(image)} images: return a tensor of shape "
                f"({len(image)},), one number for each image."
            )
        return value

    return term


# How unlikely an image is under a prior, by its denoiser.
#
#     −log p(x) = c + ½ ∫ E_ε ‖x − D(x + σ ε, σ)‖² d(1/σ²)
#
# The integrand is the error of the denoiser on x itself at every noise level. With the best
# denoiser
# and over all levels it is exact (Kong, Brekelmans and Ver Steeg 2023); here the levels are those
# between grain and whole images. The same noise ε is added to every image, so that two candidates
# differ by what they are.


#: Least and greatest σ, as shares of the range's width.
LEVELS = (0.03, 1.0)


def prior_energy(x: Tensor, prior: Any, *, levels: int = 10, draws: int = 4) -> Tensor:
    """The integral for each image, (B,): the difference of two is what counts.

    Parameters
    ----------
    x : torch.Tensor
        (B, *shape) in the prior's range.
    prior : object
        With ``denoise``.
    levels, draws : int
        Noise levels, evenly spaced in log σ, and noises at each.
    """
    low, high = prior.range
    width = high - low if math.isfinite(high - low) else 1.0
    draw = torch.Generator().manual_seed(0)
    first, last = (math.log(width * level) for level in LEVELS)
    stride = (last - first) / max(levels - 1, 1)
    total = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    with torch.no_grad():
        for level in range(levels):
            sigma = math.exp(first + level * stride)
            for _ in range(draws):
                noise = torch.randn(1, *x.shape[1:], generator=draw).to(x)
                off = x - prior.denoise(x + sigma * noise, sigma)
                # d(1/σ²) = 2/σ² d log σ
                total += off.square().flatten(1).sum(1) * stride / (draws * sigma**2)
    return total
