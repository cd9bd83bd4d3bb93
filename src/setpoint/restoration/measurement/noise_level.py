"""Noise level, estimated from the measurement alone.

    d = (y[i,j] − y[i,j+1] − y[i+1,j] + y[i+1,j+1]) / 2        what neighbouring pixels do not share
    σ̂ = median of the |d| not above 2.5 σ̂, over its value for a standard normal d, 0.665

Where y is smooth, d is noise of standard deviation σ. Edges make some |d| great; leaving those out
again and again until nothing changes takes most of them away. Channels are first replaced by their
differences (an orthonormal basis orthogonal to grey): the content of an image is much the same in
every channel, its noise is not. Second differences in the place of d see less of a smooth image:
they are used where their σ̂ is clearly lower (the operator of Immerkær). Where hidden pixels leave
too few whole windows, d is the difference between a pixel and a plane through the seen ones around
it, scaled to σ.

References
----------
D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81
(1994), 425–455: the median of the finest details. J. Immerkær, "Fast noise variance estimation",
Computer Vision and Image Understanding 64 (1996), 300–302: the second differences.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint._core.errors import DataError, KindError

#: Details above so many σ̂ are left out as edges.
CUT = 2.5
#: Fewer details than this say nothing.
FEWEST = 8
#: Fewer whole windows than this, and planes through the seen pixels are used.
WINDOWS = 32
#: Reach of those planes in pixels, and the width of their weights.
REACH, WIDTH = 3, 1.0


def estimate_sigma(y: Tensor, observed: Tensor | None = None) -> Tensor:
    """The standard deviation of the noise in each image, in the units of y.

    For noise that is independent, of one strength over the image and Gaussian or near it.

    Parameters
    ----------
    y : Tensor (B, C, H, W)
        What was measured, where it still looks like an image.
    observed : Tensor or None
        Truth values (B | 1, 1 | C, H, W): which pixels are seen. None: all.

    Returns
    -------
    Tensor (B,)
        σ̂ of each image; 0 where most of an image is free of noise.

    Notes
    -----
    **Where it is wrong.** σ̂ / σ as a mean over 200 images, for σ of 0.02 / 0.1 / 0.3 in images of
    [0, 1] (the tests hold a part of it):

    ==============================  ======================
    flat 32 × 32, and flat 8 × 8    0.99 ± 0.05, 1.00 ± 0.23 (sd)
    handwritten digits, 32 × 32     1.03 / 1.07 / 1.02
    the same, 70% hidden            1.06 / 1.14 / 1.06
    the same, means of 2 × 2        1.07 / 1.14 / 1.03
    the same, means of 4 × 4        1.86 / 1.36 / 1.07
    the same, Gaussian blur of 1    1.03 / 1.01 / 1.00
    the same, clipped to [0, 1]     0.52 / 0.55 / 0.55
    colour photographs, 32 × 32     1.03 / 1.00 / 1.00
    the same, 70% hidden            1.19 / 1.02 / 1.00
    the same, means of 4 × 4        1.24 / 1.02 / 1.01
    the same, in grey               1.30 / 1.03 / 1.00
    digits of 8 × 8 pixels          **5.5** / 1.77 / 1.13
    ==============================  ======================

    Too high: tiny or coarse images, all edges; grey images of fine texture; whatever is no image.
    Too low: values clipped to a range; noise that is smooth over pixels, or shared by the
    channels. Noise that follows the signal
    (shot, speckle) or strikes few pixels (impulse) is not described by one σ: on a mostly black
    image σ̂ is near 0. State the kind of noise where it is known.

    Examples
    --------
    >>> noise = torch.randn(1, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    >>> print(f"{estimate_sigma(0.5 + 0.1 * noise).item():.2f}")
    0.10
    """
    y, seen = _read(y, observed)
    if seen is not None and seen.shape[1] > 1:
        # A mask for each channel: the channels cannot be mixed; each is an image in grey.
        parts = [_details(y[:, c : c + 1], seen[:, c : c + 1]) for c in range(y.shape[1])]
        return _clipped_scale(torch.cat(parts, 1)).to(y.dtype)
    mixed = _differences(y)
    scale = _clipped_scale(_details(mixed, seen))
    if seen is None and min(y.shape[-2:]) >= 12:  # fewer details are too few to tell
        smoother = _clipped_scale(_second_differences(mixed).abs().flatten(1))
        # Both are σ̂ of the same noise. Two of n details each differ by 1.4 / √n of it (measured):
        # what is lower by more than 1.6 times that has seen less of the image.
        lower = smoother < scale * (1.0 - 2.3 / math.sqrt(mixed[0].numel()))
        scale = torch.where(lower, smoother, scale)
    return scale.to(y.dtype)


def _read(y: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if not isinstance(y, Tensor) or not y.is_floating_point():
        what = y.dtype if isinstance(y, Tensor) else type(y).__name__
        raise KindError(f"y is a tensor of floats (B, C, H, W); got {what}")
    if y.ndim != 4 or min(y.shape[-2:]) < 2:
        raise DataError(
            f"y has shape {tuple(y.shape)}: the noise can be estimated in images (B, C, H, W) of "
            "2 × 2 pixels or more; state the noise instead, as in noise=0.02"
        )
    if observed is None:
        return y.detach(), None
    seen = observed.to(y.device) != 0
    try:
        seen.expand(len(y), max(seen.shape[1], 1), *y.shape[-2:])
        fits = seen.ndim == 4 and seen.shape[1] in (1, y.shape[1])
    except (RuntimeError, IndexError):
        fits = False
    if not fits:
        raise DataError(
            f"observed has shape {tuple(observed.shape)} and y {tuple(y.shape)}; it is "
            f"{(len(y), 1, *y.shape[-2:])}, or 1 in the place of {len(y)}"
        )
    return y.detach(), None if bool(seen.all()) else seen


def _differences(y: Tensor) -> Tensor:
    """C channels as C − 1 differences of the same noise; as they are where that loses it."""
    channels = y.shape[1]
    if channels == 1 or bool((y == y[:, :1]).all()):
        return y[:, :1]
    basis = torch.zeros(channels - 1, channels, dtype=y.dtype)
    for k in range(1, channels):
        basis[k - 1, :k] = 1.0 / math.sqrt(k * (k + 1))
        basis[k - 1, k] = -k / math.sqrt(k * (k + 1))
    return torch.einsum("kc,bchw->bkhw", basis.to(y.device), y)


def _second_differences(y: Tensor) -> Tensor:
    """(1, −2, 1) along both sides over 6: nothing is left of a quadratic, σ of the noise."""
    rows = y[..., :-2, :] - 2 * y[..., 1:-1, :] + y[..., 2:, :]
    return (rows[..., :-2] - 2 * rows[..., 1:-1] + rows[..., 2:]) / 6


def _details(y: Tensor, seen: Tensor | None) -> Tensor:
    """|d| of every image, (B, n), with NaN where a pixel is hidden."""
    window = (y[..., :-1, :-1] - y[..., :-1, 1:] - y[..., 1:, :-1] + y[..., 1:, 1:]).abs() / 2
    if seen is None:
        return window.flatten(1)
    whole = seen[..., :-1, :-1] & seen[..., :-1, 1:] & seen[..., 1:, :-1] & seen[..., 1:, 1:]
    if int(whole.flatten(1).sum(1).min()) >= WINDOWS:
        return torch.where(whole, window, math.nan).flatten(1)
    rows = [_from_planes(y[i : i + 1], seen[i % len(seen)][None]) for i in range(len(y))]
    return torch.cat(rows).flatten(1)


def _from_planes(y: Tensor, seen: Tensor) -> Tensor:
    """|y_p − Σ a_q y_q| / √(1 + Σ a²), a the weights of a plane fitted around p; (1, C, H · W)."""
    side = 2 * REACH + 1
    steps = torch.arange(-REACH, REACH + 1, device=y.device, dtype=y.dtype)
    down, across = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="ij"))
    near = torch.exp(-(down**2 + across**2) / (2 * WIDTH**2)) * ((down != 0) | (across != 0))
    around = F.unfold(F.pad(seen.to(y.dtype), (REACH,) * 4), side)[0].T  # (n, K)
    weight = around * near
    plane = torch.stack([torch.ones_like(down), down, across], 1)  # (K, 3)
    # The slopes are held a little: few neighbours, or neighbours in a line, fix none.
    ridge = torch.diag(torch.tensor([1e-9, 0.1, 0.1], device=y.device, dtype=y.dtype))
    gram = torch.einsum("nk,ki,kj->nij", weight, plane, plane) + ridge
    first = torch.zeros(len(gram), 3, 1, device=y.device, dtype=y.dtype)
    first[:, 0] = 1.0
    share = weight * (torch.linalg.solve(gram, first)[..., 0] @ plane.T)  # a, (n, K)
    values = F.unfold(F.pad(y, (REACH,) * 4), side).reshape(y.shape[1], side * side, -1)
    gap = y[0].flatten(1) - torch.einsum("ckn,nk->cn", values, share)
    scaled = gap.abs() / (1 + share.square().sum(1)).sqrt()
    usable = seen.flatten() & (around.sum(1) >= 5)  # itself and four more
    return torch.where(usable, scaled, math.nan)[None]


def _clipped_scale(details: Tensor) -> Tensor:
    """The scale of |d| (B, n), NaN left out: medians of what is not above CUT times the last."""
    order = details.sort(1).values  # NaN comes last
    count = (~order.isnan()).sum(1)
    if int(count.min()) < FEWEST:
        row = int(count.argmin())
        raise DataError(
            f"image {row} has {int(count[row])} places where its noise could be read, too few; "
            "state the noise instead, as in noise=0.02"
        )
    normal = NormalDist()
    scale = _median(order, count) / normal.inv_cdf(0.75)
    middle = normal.inv_cdf(0.5 + (normal.cdf(CUT) - 0.5) / 2)
    for _ in range(20):
        kept = (order <= CUT * scale[:, None]).sum(1).clamp(min=1)  # a comparison with NaN is False
        scale = torch.minimum(scale, _median(order, kept) / middle)
    return scale


def _median(order: Tensor, count: Tensor) -> Tensor:
    """The median of the first ``count`` of each sorted row."""
    both = torch.stack([(count - 1) // 2, count // 2], 1)
    return order.gather(1, both).mean(1)
