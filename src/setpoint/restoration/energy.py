"""How unlikely an image is under a prior, by its denoiser.

    −log p(x) = c + ½ ∫ E_ε ‖x − D(x + σ ε, σ)‖² d(1/σ²)

The integrand is the error of the denoiser on x itself at every noise level. With the best denoiser
and over all levels it is exact (Kong, Brekelmans and Ver Steeg 2023); here the levels are those
between grain and whole images. The same noise ε is added to every image, so that two candidates
differ by what they are.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

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
