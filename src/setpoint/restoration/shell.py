"""Seeds stay where seeds are: ‖z‖ of z ~ N(0, I) in d dimensions is √d, up to about 0.7.

    project   z ← z √d / ‖z‖
    penalty   (‖z‖ − √d)², the negative log density of the norm near its mode, up to constants

Both leave the direction of z free.
"""

from __future__ import annotations

import math

from torch import Tensor

SHELLS = ("project", "penalty", None)


def project(z: Tensor) -> Tensor:
    """The nearest seed of norm √d, for each row; z = 0 stays."""
    flat = z.flatten(1)
    norm = flat.norm(dim=1).clamp(min=1e-12)
    return z * (math.sqrt(flat.shape[1]) / norm).reshape(-1, *([1] * (z.ndim - 1)))


def penalty(z: Tensor) -> Tensor:
    """(‖z‖ − √d)², (B,)."""
    flat = z.flatten(1)
    return (flat.norm(dim=1) - math.sqrt(flat.shape[1])) ** 2
