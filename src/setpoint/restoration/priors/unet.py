"""A small network between images: down, across, up, with skips, told the time.

forward(x, t) maps (B, C, H, W) and times t in [0, 1], (B,), to (B, C, H, W). At each size there
are residual blocks (group norm, SiLU, 3×3 convolution, twice; the time scales and shifts the
second norm), self-attention at the sizes named, and a skip from the way down to the way up
(Ronneberger et al. 2015; Ho et al. 2020). The last convolution starts at zero.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class UNet(nn.Module):
    """Time-dependent network of a diffusion or a flow.

    Parameters
    ----------
    channels : int
        Of the image.
    width : int
        Channels of the first level.
    multipliers : tuple of int
        Channels of each level over ``width``; each level after the first halves the size.
    blocks : int
        Residual blocks at each level on the way down (one more on the way up).
    attention : tuple of int
        Sizes (pixels on a side) at which there is self-attention.
    size : int
        Pixels on a side of the image; divisible by 2 to the number of levels less one.
    """

    def __init__(
        self,
        channels: int = 1,
        width: int = 32,
        multipliers: tuple[int, ...] = (1, 2, 2),
        blocks: int = 1,
        attention: tuple[int, ...] = (8,),
        size: int = 32,
    ) -> None:
        super().__init__()
        self.arguments = {
            "channels": channels,
            "width": width,
            "multipliers": list(multipliers),
            "blocks": blocks,
            "attention": list(attention),
            "size": size,
        }
        embedding = 4 * width
        self.width = width
        self.time = nn.Sequential(
            nn.Linear(width, embedding), nn.SiLU(), nn.Linear(embedding, embedding)
        )
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        widths = [width * multiplier for multiplier in multipliers]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, now, side = [width], width, size
        for level, wide in enumerate(widths):
            for _ in range(blocks):
                self.down.append(Stage(now, wide, embedding, side in attention))
                now = wide
                skips.append(now)
            if level < len(widths) - 1:
                self.down.append(Smaller(now))
                side //= 2
                skips.append(now)
        self.middle = nn.ModuleList(
            [Stage(now, now, embedding, True), Stage(now, now, embedding, False)]
        )
        for level, wide in reversed(list(enumerate(widths))):
            for _ in range(blocks + 1):
                self.up.append(Stage(now + skips.pop(), wide, embedding, side in attention))
                now = wide
            if level:
                self.up.append(Larger(now))
                side *= 2
        self.norm = norm(now)
        self.last = nn.Conv2d(now, channels, 3, padding=1)
        silence(self.last)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """(B, C, H, W), (B,) -> (B, C, H, W)."""
        embedding = self.time(waves(t, self.width).to(x.dtype))
        h = self.first(x)
        skips = [h]
        for part in self.down:
            h = part(h, embedding)
            skips.append(h)
        for part in self.middle:
            h = part(h, embedding)
        for part in self.up:
            if isinstance(part, Stage):
                h = torch.cat([h, skips.pop()], dim=1)
            h = part(h, embedding)
        return self.last(F.silu(self.norm(h)))


class Stage(nn.Module):
    """A residual block and, where asked for, self-attention over the pixels."""

    def __init__(self, inward: int, outward: int, embedding: int, attends: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = norm(inward), norm(outward)
        self.conv1 = nn.Conv2d(inward, outward, 3, padding=1)
        self.conv2 = nn.Conv2d(outward, outward, 3, padding=1)
        self.time = nn.Linear(embedding, 2 * outward)
        self.skip = nn.Conv2d(inward, outward, 1) if inward != outward else nn.Identity()
        self.attention = Attention(outward) if attends else nn.Identity()
        silence(self.conv2)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """Scale and shift by the time, add to what came in."""
        h = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(F.silu(embedding))[:, :, None, None].chunk(2, dim=1)
        h = self.conv2(F.silu(self.norm2(h) * (1 + scale) + shift))
        return self.attention(self.skip(x) + h)


class Attention(nn.Module):
    """x + W softmax(q kᵀ/√c) v over the pixels, one head."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.norm = norm(wide)
        self.inward = nn.Conv2d(wide, 3 * wide, 1)
        self.outward = nn.Conv2d(wide, wide, 1)
        silence(self.outward)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape as x."""
        batch, wide, high, across = x.shape
        q, k, v = self.inward(self.norm(x)).reshape(batch, 3, wide, -1).transpose(2, 3).unbind(1)
        # written out: gradients of gradients and float64 work on every device
        weights = (q @ k.transpose(1, 2) / math.sqrt(wide)).softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, wide, high, across)
        return x + self.outward(mixed)


class Smaller(nn.Module):
    """Halve the size by a strided convolution."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(wide, wide, 3, stride=2, padding=1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """The time is not needed."""
        return self.conv(x)


class Larger(nn.Module):
    """Double the size by repetition and a convolution."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(wide, wide, 3, padding=1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """The time is not needed."""
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


def silence(conv: nn.Conv2d) -> None:
    """Start at zero: the block is the identity at first."""
    for weight in conv.parameters():
        nn.init.zeros_(weight)


def norm(wide: int) -> nn.GroupNorm:
    """Group norm with groups of four channels or more, at most eight groups."""
    return nn.GroupNorm(math.gcd(8, max(wide // 4, 1)), wide)


def waves(t: Tensor, wide: int) -> Tensor:
    """(sin, cos)(1000 t f_i) at frequencies from 1 down to 1e-4, (B, wide)."""
    half = wide // 2
    steps = torch.arange(half, device=t.device, dtype=t.dtype) / half
    angles = 1000.0 * t[:, None] * torch.exp(-math.log(1e4) * steps)
    return torch.cat([angles.sin(), angles.cos()], dim=1)
