"""Blur: convolution of every channel with one kernel.

    (A x)[p] = Σ_q k[q] x̄[p − q],      x̄ the image continued beyond its border

``boundary="reflect"`` mirrors the image at the middle of its border pixels (numpy's "reflect",
scipy.ndimage's "mirror"); ``"circular"`` repeats it. A point of light becomes the kernel itself,
not its mirror image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean
from setpoint.restoration.operators.image_tensors import (
    Placed,
    read_number,
    read_whole,
    require_images,
)

# Blur kernels: what a point of light becomes. Each is ≥ 0, sums to 1, and has an odd side.
#
# Gaussian:  k[i, j] ∝ exp(−(i² + j²) / (2 σ²))
# motion:    k[i, j] = length of the path within pixel (i, j) / length of the path


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


BOUNDARIES = ("reflect", "circular")


def extend(x: Tensor, by: int, boundary: str) -> Tensor:
    """x̄: ``by`` more pixels on every side, (B, C, H, W) -> (B, C, H + 2 by, W + 2 by).

    Made of slices: the gradient of torch's own reflecting pad adds in any order on a GPU, so that
    two equal runs would differ.
    """
    for axis in (-1, -2):
        side = x.shape[axis]
        if boundary == "circular":
            before, after = x.narrow(axis, side - by, by), x.narrow(axis, 0, by)
        else:
            before = x.narrow(axis, 1, by).flip(axis)
            after = x.narrow(axis, side - by - 1, by).flip(axis)
        x = torch.cat([before, x, after], axis)
    return x


def fold(v: Tensor, by: int, boundary: str) -> Tensor:
    """The adjoint of :func:`extend`: what was continued is added where it came from."""
    for axis in (-2, -1):
        side = v.shape[axis] - 2 * by
        before, core, after = v.split([by, side, by], axis)
        if boundary == "circular":
            core = core + _between(after, 0, side, axis) + _between(before, side - by, side, axis)
        else:
            core = core + _between(before.flip(axis), 1, side, axis)
            core = core + _between(after.flip(axis), side - by - 1, side, axis)
        v = core
    return v


def _between(part: Tensor, start: int, side: int, axis: int) -> Tensor:
    """``part`` with zeros around it along an axis, so that it starts at ``start`` of ``side``."""
    after = side - start - part.shape[axis]
    return F.pad(part, (start, after) if axis == -1 else (0, 0, start, after))


def convolve(x: Tensor, kernels: Tensor, boundary: str) -> Tensor:
    """Every image with its kernel: (B, C, H, W), (B | 1, k, k) -> (B, C, H, W)."""
    batch, channels, height, width = x.shape
    side = kernels.shape[-1]
    _check_reach(side, height, width)
    flipped = kernels.flip(-2, -1)[:, None].expand(batch, channels, side, side)
    wide = extend(x, side // 2, boundary).reshape(1, batch * channels, *_grown(x, side))
    seen = F.conv2d(wide, flipped.reshape(-1, 1, side, side), groups=batch * channels)
    return seen.reshape(batch, channels, height, width)


def correlate_back(v: Tensor, kernels: Tensor, boundary: str) -> Tensor:
    """The adjoint of :func:`convolve` in the images."""
    batch, channels, height, width = v.shape
    side = kernels.shape[-1]
    _check_reach(side, height, width)
    flipped = kernels.flip(-2, -1)[:, None].expand(batch, channels, side, side)
    flat, weight = v.reshape(1, -1, height, width), flipped.reshape(-1, 1, side, side)
    wide = F.conv_transpose2d(flat, weight, groups=batch * channels)
    return fold(wide.reshape(batch, channels, *_grown(v, side)), side // 2, boundary)


def _grown(x: Tensor, side: int) -> tuple[int, int]:
    return x.shape[-2] + side - 1, x.shape[-1] + side - 1


def _check_reach(side: int, height: int, width: int) -> None:
    if side // 2 >= min(height, width):
        raise DataError(
            f"a blur kernel of {side} × {side} pixels reaches beyond an image of {height} × "
            f"{width}; take a narrower blur, {2 * min(height, width) - 1} pixels at most"
        )


def read_boundary(boundary: Any) -> str:
    """One of :data:`BOUNDARIES`, or a sentence."""
    if boundary not in BOUNDARIES:
        hint = f"take one of {', '.join(map(repr, BOUNDARIES))}"
        raise DataError(
            f"boundary {boundary!r} is not known; {did_you_mean(boundary, BOUNDARIES, hint)}"
        )
    return boundary


@dataclass(frozen=True, eq=False, repr=False)
class Blur:
    """Convolution with a kernel, the same for every channel and every image.

    Parameters
    ----------
    kernel : Tensor
        (k, k) with k odd. Where it is ≥ 0 and sums to 1 the blurred image is an image again.
    boundary : {"reflect", "circular"}
        How the image goes on beyond its border.

    Examples
    --------
    >>> point = torch.zeros(1, 1, 3, 3)
    >>> point[0, 0, 1, 1] = 1.0
    >>> kernel = torch.arange(9.0).reshape(3, 3) / 36
    >>> bool((Blur(kernel, "circular")(point)[0, 0] == kernel).all())
    True
    """

    kernel: Tensor
    boundary: str = "reflect"
    linear: ClassVar[bool] = True
    range: ClassVar[None] = None
    observed: ClassVar[None] = None
    output: str = field(init=False)
    _kept: Placed = field(init=False)

    def __post_init__(self) -> None:
        kernel = read_kernel(self.kernel)
        read_boundary(self.boundary)
        keeps = bool((kernel >= 0).all()) and abs(float(kernel.double().sum()) - 1) < 1e-3
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "output", "image" if keeps else "other")
        object.__setattr__(self, "_kept", Placed(kernel[None]))

    def __call__(self, x: Tensor) -> Tensor:
        """The blurred images."""
        return convolve(require_images(x, "Blur"), self._kept.like(x), self.boundary)

    def adjoint(self, v: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Aᵀ v: correlation with the kernel, then the continued border folded back."""
        back = correlate_back(require_images(v, "Blur"), self._kept.like(v), self.boundary)
        return back.reshape(len(v), *shape)

    def __repr__(self) -> str:
        side = len(self.kernel)
        return f"Blur(kernel {side} × {side}, {self.boundary!r})"


def gaussian_blur(sigma: float, size: int | None = None, boundary: str = "reflect") -> Blur:
    """Blur by a Gaussian of ``sigma`` pixels; see :func:`~.kernels.gaussian_kernel`.

    Examples
    --------
    >>> gaussian_blur(1.0)
    Blur(kernel 7 × 7, 'reflect')
    """
    return Blur(gaussian_kernel(sigma, size), boundary)


def motion_blur(length: float, angle: float = 0.0, boundary: str = "reflect") -> Blur:
    """Blur by a straight motion; see :func:`~.kernels.motion_kernel`.

    Examples
    --------
    >>> motion_blur(9, 45)
    Blur(kernel 7 × 7, 'reflect')
    """
    return Blur(motion_kernel(length, angle), boundary)


def read_kernel(kernel: Any) -> Tensor:
    """A kernel (k, k) of finite floats with k odd, or a sentence."""
    if not isinstance(kernel, Tensor) or not kernel.is_floating_point():
        what = kernel.dtype if isinstance(kernel, Tensor) else type(kernel).__name__
        raise KindError(f"kernel is a tensor of floats (k, k); got {what}")
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise DataError(f"kernel has shape {tuple(kernel.shape)}; it is (k, k) with k odd")
    read_side(len(kernel))
    if not bool(kernel.isfinite().all()):
        raise DataError("kernel holds a value that is no finite number; repair it")
    return kernel.detach()
