"""Distances of a restored image from the truth, and from what a prior makes.

A score needs the truth, which no method is shown: scores are taken afterwards, never inside.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from setpoint._core.errors import DataError, KindError

Range = tuple[float, float]

SIGMA = 1.5  #: of the Gaussian window of SSIM, in pixels
RADIUS = 5  #: of that window, which is 11 × 11
SMALLEST = 2 * RADIUS + 1  #: a shorter side holds no window
_K1, _K2 = 0.01, 0.03  #: keep the two quotients of SSIM away from 0 / 0


def psnr(x: Any, truth: Any, range: Range = (0.0, 1.0)) -> Tensor:
    """Peak signal-to-noise ratio in dB: 10 log₁₀ (high − low)² / mean (x − truth)².

    Parameters
    ----------
    x, truth : tensors (B, C, H, W)
        Of the same shape. Values outside the range are not clipped.
    range : (float, float)
        Least and greatest value an image can have.

    Returns
    -------
    Tensor (B,)
        In float64; infinite where the two are equal.

    Examples
    --------
    >>> import torch
    >>> psnr(torch.full((2, 1, 4, 4), 0.5), torch.full((2, 1, 4, 4), 0.4))
    tensor([20.0000, 20.0000], dtype=torch.float64)
    """
    x, truth = _paired(x, truth)
    error = (x - truth).square().flatten(1).mean(1)  # (B,)
    return 10.0 * (_width(range) ** 2 / error).log10()


def ssim(x: Any, truth: Any, range: Range = (0.0, 1.0)) -> Tensor:
    """Structural similarity: (2 μₓμ + c₁)(2 σₓₜ + c₂) / ((μₓ² + μ² + c₁)(σₓ² + σ² + c₂)), averaged.

    Means μ, variances σ² and the covariance σₓₜ are under a Gaussian window of 11 × 11 pixels with
    σ = 1.5; the average is over channels and over all windows inside the image [1]_. Equal to
    ``skimage.metrics.structural_similarity`` with ``gaussian_weights=True, sigma=1.5,
    use_sample_covariance=False``.

    Parameters
    ----------
    x, truth : tensors (B, C, H, W)
        Sides of 11 pixels or more.
    range : (float, float)
        c₁ = (0.01 (high − low))², c₂ = (0.03 (high − low))².

    Returns
    -------
    Tensor (B,)
        In float64; at most 1.

    References
    ----------
    .. [1] Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to
       structural similarity", IEEE Trans. Image Processing 13 (2004), eq. 13.
    """
    x, truth = _paired(x, truth)
    height, width = x.shape[-2:]
    if min(height, width) < SMALLEST:
        raise DataError(
            f"SSIM needs images of {SMALLEST} × {SMALLEST} pixels or more, the size of its window; "
            f"these are {height} × {width}. PSNR needs none."
        )
    c1, c2 = ((k * _width(range)) ** 2 for k in (_K1, _K2))
    mean_x, mean_t = _smoothed(x), _smoothed(truth)
    var_x = _smoothed(x * x) - mean_x**2
    var_t = _smoothed(truth * truth) - mean_t**2
    both = _smoothed(x * truth) - mean_x * mean_t
    alike = (2 * mean_x * mean_t + c1) * (2 * both + c2)
    apart = (mean_x**2 + mean_t**2 + c1) * (var_x + var_t + c2)
    return (alike / apart).flatten(1).mean(1)


def manifold_distance(x: Tensor, prior: Any, sigma: float) -> Tensor:
    """Distance to what the prior makes, by its denoiser: √ mean (x − D(x, σ))².

    D(x, σ) is the mean of clean images given x = clean + σ · noise, so x − D(x, σ) is −σ² times the
    slope of the log-density of noisy images: 0 on a flat summit, large away from all images.

    Parameters
    ----------
    x : tensor (B, C, H, W)
        In the prior's range.
    prior : Prior
        One with ``denoise(x, sigma)``.
    sigma : float
        In the units of x.

    Returns
    -------
    Tensor (B,)
        In the units of x.
    """
    denoise = getattr(prior, "denoise", None)
    if denoise is None:
        raise KindError(
            f"the distance to the manifold needs prior.denoise(x, sigma), and "
            f"{type(prior).__name__} has none; use a diffusion or a flow prior."
        )
    if not sigma > 0 or not math.isfinite(sigma):
        raise DataError(f"sigma is a number above 0, in the units of the image; got {sigma}.")
    with torch.no_grad():
        return (x - denoise(x, sigma)).double().square().flatten(1).mean(1).sqrt()


def _smoothed(x: Tensor) -> Tensor:
    """The Gaussian mean around every pixel whose window lies inside: (B, C, H − 10, W − 10)."""
    at = torch.arange(-RADIUS, RADIUS + 1, dtype=x.dtype, device=x.device)
    weights = torch.exp(-0.5 * (at / SIGMA) ** 2)
    weights = weights / weights.sum()
    flat = x.flatten(0, 1)[:, None]  # (B C, 1, H, W)
    rows = functional.conv2d(flat, weights.view(1, 1, -1, 1))
    return functional.conv2d(rows, weights.view(1, 1, 1, -1)).unflatten(0, x.shape[:2])


def _paired(x: Any, truth: Any) -> tuple[Tensor, Tensor]:
    """Both in float64 on one device; of one shape, and finite."""
    x, truth = torch.as_tensor(x), torch.as_tensor(truth)
    if x.shape != truth.shape or x.ndim != 4:
        raise DataError(
            f"a score compares two batches (B, C, H, W) of one shape; got {tuple(x.shape)} and "
            f"{tuple(truth.shape)}."
        )
    x = x.detach().double()
    truth = truth.detach().to(x)
    for name, values in (("x", x), ("truth", truth)):
        if not bool(values.isfinite().all()):
            raise DataError(f"{name} holds values that are no numbers; there is no score of them.")
    return x, truth


def _width(range: Range) -> float:
    low, high = range
    if not math.isfinite(high - low) or not high > low:
        raise DataError(
            f"a score needs the range of the images, two numbers (low, high); got ({low}, {high}). "
            "Say for example range=(0.0, 1.0)."
        )
    return float(high - low)
