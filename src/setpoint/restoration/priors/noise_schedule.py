"""Noise schedule of a diffusion: ᾱ_t, what is left of the image at t = 0 … T − 1.

x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε, ε ~ N(0, I).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint._core.errors import DataError


def cosine(T: int = 1000) -> Tensor:
    """ᾱ_t = cos²((t + 1)/T · π/2 · 0.9966), float64 (after Nichol and Dhariwal 2021)."""
    t = torch.arange(1, T + 1, dtype=torch.float64) / T
    return torch.cos(t * (0.5 * math.pi * 0.9966)) ** 2


def linear(T: int = 1000, first: float = 1e-4, last: float = 0.02) -> Tensor:
    """ᾱ_t = Π (1 − β_s) with β linear from ``first`` to ``last`` (Ho et al. 2020)."""
    return torch.cumprod(1 - torch.linspace(first, last, T, dtype=torch.float64), dim=0)


def schedule(name: str, T: int = 1000) -> Tensor:
    """The schedule of that name."""
    table = {"cosine": cosine, "linear": linear}
    if name not in table:
        raise DataError(f"schedule={name!r} is not known: say one of {', '.join(table)}.")
    return table[name](T)


def timesteps(T: int, steps: int, spacing: str) -> list[int]:
    """The times visited, from noise to image.

    "trailing" ends each of ``steps`` equal parts of 0 … T − 1 (999, 666, 332 for three of a
    thousand), "leading" begins them (666, 333, 0).
    """
    if not 1 <= steps <= T:
        raise DataError(f"steps={steps} must be between 1 and the {T} times of the schedule.")
    if spacing == "trailing":
        return [round(T * (steps - i) / steps) - 1 for i in range(steps)]
    if spacing == "leading":
        return [T // steps * (steps - 1 - i) for i in range(steps)]
    raise DataError(f'spacing={spacing!r} is not known: say "trailing" or "leading".')
