"""Frames carried along optical flow, and how far a clip is from moving with it.

A flow f_t (2, H, W) says where the pixels of frame t are in frame t + 1: pixel p goes to
p + f_t(p), the first channel counting columns (to the right), the second rows (downward). So

    (W_f x)(p) = x(p + f(p)),   bilinear between pixels,        x_t ≈ W_{f_t} x_{t+1}.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError


def warp(x: Tensor, flow: Tensor) -> Tensor:
    """(W_f x)(p) = x(p + f(p)): an image read where the flow points, bilinear between pixels.

    Exact for whole shifts and on images linear in the coordinates; differentiable in both
    arguments (in the flow almost everywhere). Beyond the frame the nearest pixel is read; see
    :func:`inside`.

    Parameters
    ----------
    x : torch.Tensor
        (..., C, H, W).
    flow : torch.Tensor
        (..., 2, H, W), in pixels, the same leading sizes.

    Returns
    -------
    torch.Tensor
        (..., C, H, W).

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[[0.0, 1.0, 4.0]]])
    >>> right = torch.tensor([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 0.0]]])
    >>> warp(x, right)
    tensor([[[0.5000, 2.5000, 4.0000]]])
    """
    _agree(x, flow)
    high, wide = x.shape[-2:]
    across, down = _target(flow)  # (..., H, W) each
    left, above = _corner(across, wide), _corner(down, high)
    part_x, part_y = (across - left).clamp(0, 1), (down - above).clamp(0, 1)
    left, above = left.long(), above.long()
    right, below = (left + 1).clamp(max=wide - 1), (above + 1).clamp(max=high - 1)
    pixels = x.flatten(-2)  # (..., C, HW)

    def at(row: Tensor, column: Tensor) -> Tensor:
        where = (row * wide + column).flatten(-2).unsqueeze(-2)  # (..., 1, HW)
        return pixels.gather(-1, where.expand_as(pixels)).reshape(x.shape)

    part_x, part_y = part_x.unsqueeze(-3), part_y.unsqueeze(-3)
    upper = at(above, left) * (1 - part_x) + at(above, right) * part_x
    lower = at(below, left) * (1 - part_x) + at(below, right) * part_x
    return upper * (1 - part_y) + lower * part_y


def inside(flow: Tensor) -> Tensor:
    """Where p + f(p) is in the frame, (..., 1, H, W) bool."""
    high, wide = flow.shape[-2:]
    across, down = _target(flow)
    here = (across >= 0) & (across <= wide - 1) & (down >= 0) & (down <= high - 1)
    return here.unsqueeze(-3)


def consistent(forward: Tensor, backward: Tensor) -> Tensor:
    """Where going there and back returns: no occlusion, (..., 1, H, W) bool.

    |f(p) + b(p + f(p))|² < 0.01 (|f(p)|² + |b(p + f(p))|²) + 0.5, the check of Sundaram, Brox and
    Keutzer (2010, "Dense point trajectories by GPU-accelerated large displacement optical flow").

    Parameters
    ----------
    forward, backward : torch.Tensor
        (..., 2, H, W): from frame t to t + 1, and from t + 1 to t.
    """
    back = warp(backward, forward)
    gap = (forward + back).square().sum(-3, keepdim=True)
    size = (forward.square() + back.square()).sum(-3, keepdim=True)
    return gap < 0.01 * size + 0.5


def warping_error(frames: Tensor, flow: Tensor, valid: Tensor | None = None) -> Tensor:
    """Mean squared difference between a frame and its warped next one, over valid pixels.

        WE = Σ_t Σ_{p valid} ‖x_t(p) − (W_{f_t} x_{t+1})(p)‖² / (C · number of valid (t, p))

    as in Lai et al. (2018, "Learning blind video temporal consistency", eq. 7), pooled over the
    pairs of a clip and divided by the channels. It is in squared units of the image. A true clip
    has a small one too: bilinear reading between pixels blurs.

    Parameters
    ----------
    frames : torch.Tensor
        (..., T, C, H, W), T at least 2.
    flow : torch.Tensor
        (..., T − 1, 2, H, W), from each frame to the next.
    valid : torch.Tensor, optional
        (..., T − 1, 1, H, W), True where a pixel counts, such as that of :func:`consistent`. Pixels
        whose target is out of the frame never count.

    Returns
    -------
    torch.Tensor
        (...,); 0 where no pixel is valid.
    """
    if frames.ndim < 4 or frames.shape[-4] < 2:
        raise DataError(
            f"a clip is (..., T, C, H, W) with two frames or more; got {tuple(frames.shape)}"
        )
    counted = inside(flow) if valid is None else valid.bool() & inside(flow)
    return discrepancy(frames, flow, counted)


def discrepancy(frames: Tensor, flow: Tensor, counted: Tensor) -> Tensor:
    """The same with the pixels that count already known: for an inner loop."""
    gaps = frames[..., :-1, :, :, :] - warp(frames[..., 1:, :, :, :], flow)
    weights = counted.to(frames.dtype)
    total = (weights * gaps.square()).sum((-4, -3, -2, -1))
    pixels = weights.sum((-4, -3, -2, -1)) * frames.shape[-3]
    return total / pixels.clamp(min=1)


def _target(flow: Tensor) -> tuple[Tensor, Tensor]:
    """Columns and rows of p + f(p)."""
    high, wide = flow.shape[-2:]
    columns = torch.arange(wide, dtype=flow.dtype, device=flow.device)
    rows = torch.arange(high, dtype=flow.dtype, device=flow.device)[:, None]
    return columns + flow[..., 0, :, :], rows + flow[..., 1, :, :]


def _corner(place: Tensor, size: int) -> Tensor:
    """The whole coordinate before a place, such that the one after it is in the frame too."""
    return place.detach().floor().clamp(0, max(size - 2, 0))


def _agree(x: Tensor, flow: Tensor) -> None:
    """Same pixels, same leading sizes."""
    if x.ndim < 3 or flow.ndim < 3 or flow.shape[-3] != 2:
        raise DataError(
            f"images are (..., C, H, W) and flows (..., 2, H, W); got {tuple(x.shape)} and "
            f"{tuple(flow.shape)}"
        )
    if x.shape[:-3] != flow.shape[:-3] or x.shape[-2:] != flow.shape[-2:]:
        raise DataError(
            f"the flow {tuple(flow.shape)} is not of the size of the images {tuple(x.shape)}: it "
            "has two channels and otherwise the same sizes"
        )
