"""Blur kernels: what a point of light becomes. Each is ≥ 0, sums to 1, and has an odd side.

Gaussian:  k[i, j] ∝ exp(−(i² + j²) / (2 σ²))
motion:    k[i, j] = length of the path within pixel (i, j) / length of the path
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.operators.image_tensors import read_number, read_whole


def gaussian_kernel(sigma: float, size: int | None = None) -> Tensor:
    """A sampled Gaussian of standard deviation ``sigma`` pixels, (k, k) in double precision.

    ``size`` is the odd side k; None: 2 ⌈3 σ⌉ + 1.

    Examples
    --------
    >>> gaussian_kernel(0.5).shape
    torch.Size([5, 5])
    """
    sigma = read_number(sigma, "the standard deviation of a Gaussian blur")
    side = 2 * math.ceil(3 * sigma) + 1 if size is None else read_side(size)
    far = torch.arange(side, dtype=torch.float64) - side // 2
    row = torch.exp(-0.5 * (far / sigma) ** 2)
    row = row / row.sum()
    return row[:, None] * row[None, :]


def motion_kernel(length: float, angle: float = 0.0) -> Tensor:
    """A straight path of ``length`` pixels through the middle, (k, k) in double precision.

    ``angle`` is in degrees, from the rows' direction towards the top. The path is cut where it
    crosses from one pixel to the next; every pixel weighs as long as the path is within it.

    Examples
    --------
    >>> motion_kernel(3.0)
    tensor([[0.0000, 0.0000, 0.0000],
            [0.3333, 0.3333, 0.3333],
            [0.0000, 0.0000, 0.0000]], dtype=torch.float64)
    """
    length = read_number(length, "the length of a motion blur")
    angle = read_number(angle, "the angle of a motion blur", -math.inf)
    across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    across, up = (0.0 if abs(part) < 1e-12 else part for part in (across, up))
    half = length / 2
    radius = math.ceil(half * max(abs(across), abs(up)) - 0.5 - 1e-9)
    edges = [step + 0.5 for step in range(-radius - 1, radius + 1)]
    cuts = [edge / part for part in (across, -up) if part for edge in edges]
    marks = sorted([-half, half, *(cut for cut in cuts if -half < cut < half)])
    kernel = torch.zeros(2 * radius + 1, 2 * radius + 1, dtype=torch.float64)
    for start, stop in pairwise(marks):
        middle = (start + stop) / 2
        row = min(max(round(-middle * up), -radius), radius)
        column = min(max(round(middle * across), -radius), radius)
        kernel[row + radius, column + radius] += (stop - start) / length
    return kernel


def read_side(size: int) -> int:
    """An odd side of a kernel, or a sentence."""
    side = read_whole(size, "the size of a blur kernel")
    if side % 2 == 0:
        raise DataError(
            f"a blur kernel of {side} × {side} pixels has no middle one; take {side + 1}"
        )
    return side
