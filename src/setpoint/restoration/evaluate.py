"""Scores of a restoration against the truth: at the selected iterate, and beside it the oracle's.

The oracle is the iterate that the truth itself would pick. Nobody who restores has the truth, so an
oracle figure is no result: it says what a perfect stopping rule could have had, no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.image_scores import SMALLEST, Range, manifold_distance, psnr, ssim
from setpoint.restoration.operators.image_tensors import as_floats
from setpoint.restoration.restoration_record import Restored

NEARBY = 0.1  #: noise at which the distance to the manifold is taken, as a part of the range

#: columns of a summary that are no result
ORACLE = ("oracle_psnr", "oracle_ssim")
FIGURES = ("psnr", "ssim", "residual", *ORACLE, "manifold")


@dataclass(frozen=True)
class RestorationEvaluation:
    """Scores of B images.

    Attributes
    ----------
    method : str
    psnr : Tensor (B,)
        Of the selected iterate, in dB.
    ssim : Tensor (B,) or None
        Of the selected iterate; None for images too small for its window.
    residual : Tensor (B,)
        Root mean squared, in the units of the measurement.
    oracle_psnr, oracle_ssim : Tensor (B,) or None
        The best that any kept iterate has, **each at its own iterate**, the selected one included:
        never below the selected. None without a trail.
    oracle_step : Tensor (B,) or None
        Iterate of the best PSNR.
    manifold : Tensor (B,) or None
        Distance to the manifold; None without a prior that denoises.
    seconds : float
        Of the whole restoration.
    """

    method: str
    psnr: Tensor
    ssim: Tensor | None
    residual: Tensor
    oracle_psnr: Tensor | None
    oracle_ssim: Tensor | None
    oracle_step: Tensor | None
    manifold: Tensor | None
    seconds: float

    @property
    def images(self) -> int:
        """B."""
        return len(self.psnr)

    def summary(self) -> dict[str, tuple[float, float | None]]:
        """Mean and standard error over images of every figure that is there.

        The standard error is None for one image and where the mean is infinite.
        """
        columns = {name: getattr(self, name) for name in FIGURES}
        return {name: mean_and_error(x) for name, x in columns.items() if x is not None}

    def __str__(self) -> str:
        figures = {name: _told(*pair) for name, pair in self.summary().items()}
        many = "1 image" if self.images == 1 else f"{self.images:,} images"
        text = f"{self.method}, {many}: PSNR {figures['psnr']} dB"
        text += f", SSIM {figures['ssim']}" if "ssim" in figures else ""
        text += f", residual {figures['residual']}"
        text += f", distance to the manifold {figures['manifold']}" if "manifold" in figures else ""
        if "oracle_psnr" in figures:
            also = f", SSIM {figures['oracle_ssim']}" if "oracle_ssim" in figures else ""
            text += f"; oracle (picked by the truth): PSNR {figures['oracle_psnr']} dB{also}"
        return f"{text}."


def evaluate(
    restored: Restored,
    truth: Any,
    prior: Any = None,
    *,
    range: Range | None = None,
    sigma: float | None = None,
) -> RestorationEvaluation:
    """Score a restoration against the truth.

    Parameters
    ----------
    restored : Restored
        With a trail where the oracle is asked for: ``restore(..., trail=10)`` keeps every tenth
        iterate.
    truth : tensor (B, C, H, W)
        In the range of the images.
    prior : Prior, optional
        For the distance to the manifold, where it denoises.
    range : (float, float), optional
        That of the record without it.
    sigma : float, optional
        Noise of that denoiser; a tenth of the range without it.

    Returns
    -------
    RestorationEvaluation
    """
    box = restored.range if range is None else range
    image = restored.image
    truth = as_floats("the truth", truth)
    if tuple(truth.shape) != tuple(image.shape):
        raise DataError(
            f"the truth has shape {tuple(truth.shape)}, and {tuple(image.shape)} was restored."
        )
    truth = truth.to(image.device)
    decibels = psnr(image, truth, box)
    alike = ssim(image, truth, box) if min(image.shape[-2:]) >= SMALLEST else None
    best, best_alike, step = _oracle(restored, truth, box, decibels, alike)
    distance = None
    if getattr(prior, "denoise", None) is not None:
        sigma = NEARBY * (box[1] - box[0]) if sigma is None else sigma
        distance = manifold_distance(image, prior, sigma)
    residual = restored.residual.detach().double()
    return RestorationEvaluation(
        method=restored.method,
        psnr=decibels,
        ssim=alike,
        residual=residual,
        oracle_psnr=best,
        oracle_ssim=best_alike,
        oracle_step=step,
        manifold=distance,
        seconds=restored.seconds,
    )


def _oracle(
    restored: Restored, truth: Tensor, box: Range, decibels: Tensor, alike: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The best PSNR and SSIM over the trail and the selected image, and the step of the former."""
    trail = restored.trail
    if trail is None:
        return None, None, None
    best, best_alike = decibels.clone(), None if alike is None else alike.clone()
    step = restored.chosen.to(decibels.device).clone()
    for at, image in zip(restored.trail_steps, trail, strict=True):
        image = image.to(truth)
        value = psnr(image, truth, box)
        step = torch.where(value > best, torch.as_tensor(at, device=step.device).to(step), step)
        best = torch.maximum(best, value)
        if best_alike is not None:
            best_alike = torch.maximum(best_alike, ssim(image, truth, box))
    return best, best_alike, step


def mean_and_error(x: Tensor) -> tuple[float, float | None]:
    """Mean and standard error of a sample; no error for one value, or an infinite mean.

    >>> import torch
    >>> mean_and_error(torch.tensor([1.0, 3.0]))
    (2.0, 1.0)
    """
    x = x.detach().double()
    mean = float(x.mean())
    if len(x) < 2 or not math.isfinite(mean):
        return mean, None
    return mean, float(x.std(correction=1)) / math.sqrt(len(x))


def _told(mean: float, error: float | None) -> str:
    return f"{mean:.4g}" if error is None else f"{mean:.4g} ± {error:.2g}"
