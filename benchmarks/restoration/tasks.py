"""The six tasks: what is measured of an image, and which operator a way is given for it.

In five of them the two are the same. In the blind one every image is blurred by a kernel of its
own, motion or Gaussian in turn, and the ways are given an operator whose kernel is unknown. Masks,
kernels and noise depend on the seed alone: every way sees the same measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.operators import as_operator, gaussian_blur, motion_blur

SIGMA = 0.02  #: of the noise, in the units of images in [0, 1]
KERNEL = 9  #: pixels along a side of the unknown kernel
SEED = 0
SPECS = {
    "sr2": "sr:2",
    "sr4": "sr:4",
    "inpaint": "inpaint:0.7",
    "blur": "gaussian-blur:1.5",
    "nonlinear": "blur-saturate:1.0,2.0",
    "blind": f"blind-blur:{KERNEL}",
}
TITLES = {
    "sr2": "super-resolution ×2",
    "sr4": "super-resolution ×4",
    "inpaint": "inpainting, 70 % hidden",
    "blur": "Gaussian blur, σ = 1.5",
    "nonlinear": "blur, then saturation",
    "blind": "blur with an unknown kernel",
}
SHORT = {
    "sr2": "SR ×2",
    "sr4": "SR ×4",
    "inpaint": "inpainting",
    "blur": "Gaussian blur",
    "nonlinear": "nonlinear",
    "blind": "blind",
}
TASKS = tuple(SPECS)
#: tasks on which one of ours is to be above every baseline
GOAL = ("inpaint", "nonlinear", "blind")


@dataclass(frozen=True)
class Posed:
    """A task on some images: truth and clean measurements for the scores, the rest for the ways."""

    truth: Tensor
    clean: Tensor
    y: Tensor
    operator: Any
    observed: Tensor | None


def pose(task: str, truth: Tensor, *, sigma: float = SIGMA, seed: int = SEED) -> Posed:
    """Measure some images, made on the CPU so that every device sees the same numbers."""
    count, shape = len(truth), tuple(truth.shape[1:])
    operator = as_operator(SPECS[task], shape=shape, seed=seed, batch=count)
    clean = _blurred(truth, seed) if task == "blind" else operator(truth)
    observed = getattr(operator, "observed", None)
    y = Gaussian(sigma).add(clean, seed + 1, observed=observed)
    return Posed(truth, clean, y, operator, observed)


def _blurred(truth: Tensor, seed: int) -> Tensor:
    """Each image by a kernel of its own: motion and Gaussian in turn."""
    draw = np.random.default_rng(seed)
    found = []
    for row, x in enumerate(truth):
        if row % 2:
            blur = motion_blur(int(draw.integers(4, KERNEL + 1)), float(draw.uniform(0, 180)))
        else:
            blur = gaussian_blur(float(draw.uniform(0.8, 2.0)), size=KERNEL)
        found.append(blur(x[None]))
    return torch.cat(found)
