"""Clips of one moving mnist digit, 32×32, whose optical flow is known.

The digit of an image x goes along a path o_t, |o_t| ≤ 4 pixels on either axis (the shifts that the
mnist priors were trained with), read between pixels bilinearly:

    frame_t(p) = x(p − o_t),      flow_t(p) = o_{t+1} − o_t at every pixel,
    o_t = c + v (t − (T−1)/2) + a sin(π t/(T−1)) n,      n a unit vector across v,

speed |v| from 0.4 to 0.9 pixels a frame in any direction, a up to 0.8 pixels. The whole digit stays
in the frame. Measurements: mean of 4×4 blocks, or 70 % of the pixels hidden, other ones in each
frame; noise σ = 0.05, drawn for each frame anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.restoration.data import images
from setpoint.restoration.video.flow_warp import warp

FRAMES, REACH, SPEED, BEND = 8, 4.0, (0.4, 0.9), 0.8


@dataclass(frozen=True)
class Clips:
    """N clips of T frames.

    Attributes
    ----------
    frames : torch.Tensor
        (N, T, 1, 32, 32) in [0, 1].
    flow : torch.Tensor
        (N, T − 1, 2, 32, 32).
    paths : torch.Tensor
        (N, T, 2): columns and rows by which the digit is shifted.
    """

    frames: Tensor
    flow: Tensor
    paths: Tensor


def clips(part: str, count: int, *, frames: int = FRAMES, seed: int = 0) -> Clips:
    """So many clips of ``test`` or ``tune`` digits; fewer are a prefix of more."""
    digits = images("mnist", part, count)
    draw = torch.Generator().manual_seed(seed)
    paths = torch.stack([_path(digit, frames, draw) for digit in digits])  # (N, T, 2)
    still = digits[:, None].expand(-1, frames, -1, -1, -1)
    return Clips(warp(still, _field(-paths)), _field(paths.diff(dim=1)), paths)


def _path(digit: Tensor, frames: int, draw: torch.Generator) -> Tensor:
    """Shifts (T, 2) that keep the digit in the frame: the first of those drawn that does."""
    for _ in range(1000):
        u = torch.rand(5, generator=draw)
        angle, speed = 2 * math.pi * u[0], SPEED[0] + (SPEED[1] - SPEED[0]) * u[1]
        along = torch.stack([angle.cos(), angle.sin()])
        across = torch.stack([-angle.sin(), angle.cos()])
        t = torch.arange(frames)[:, None]
        bent = BEND * (2 * u[2] - 1) * torch.sin(math.pi * t / (frames - 1)) * across
        path = 2 * u[3:] - 1 + speed * along * (t - (frames - 1) / 2) + bent
        if float(path.abs().max()) <= REACH and _stays(digit[0], path):
            return path
    raise ValueError("no path keeps this digit in the frame")


def _stays(digit: Tensor, path: Tensor) -> bool:
    """Whether no ink leaves the frame."""
    side = digit.shape[-1]
    rows, columns = torch.nonzero(digit, as_tuple=True)
    ends = [(columns.min(), columns.max()), (rows.min(), rows.max())]
    return all(
        float(least + path[:, axis].floor().min()) >= 0
        and float(most + path[:, axis].ceil().max()) <= side - 1
        for axis, (least, most) in enumerate(ends)
    )


def _field(shifts: Tensor, side: int = 32) -> Tensor:
    """Shifts (N, T, 2) as flows (N, T, 2, H, W), the same at every pixel."""
    return shifts[..., None, None].expand(*shifts.shape, side, side).contiguous()
