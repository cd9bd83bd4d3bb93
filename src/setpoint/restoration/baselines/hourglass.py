"""B untrained encoder–decoders side by side, one an image, as batched matrix products.

Each image has weights of its own, so a layer is B small convolutions. On a GPU they are one product
of (B, out, in·k²) weights with (B, in·k², pixels) patches, as grouped convolutions are slow there
when the groups are many and small; on a CPU a grouped convolution is three times as fast. Edges and
doubling are made of slices: the gradients of torch's own add in any order on a GPU, so that two
equal runs would differ.

Per scale, from fine to coarse (Ulyanov et al. 2018, figure 21, made small): a 3×3 convolution with
stride 2, a 3×3 one; a 1×1 skip connection; on the way up bilinear doubling, a 3×3 and a 1×1
convolution. Each is followed by normalisation over the pixels of its image and a leaky rectifier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from setpoint.restoration.operators.blur import extend


class _Convolution(nn.Module):
    """One k×k convolution for each image, with reflected edges."""

    def __init__(
        self, batch: int, inward: int, outward: int, size: int, draw: torch.Generator, like: Tensor
    ) -> None:
        super().__init__()
        scale = 1 / math.sqrt(inward * size**2)

        def uniform(*shape: int) -> nn.Parameter:
            values = torch.rand(shape, generator=draw, dtype=like.dtype, device=like.device)
            return nn.Parameter(scale * (2 * values - 1))

        self.size, self.weight = size, uniform(batch, outward, inward * size**2)
        self.bias = uniform(batch, outward, 1)

    def forward(self, x: Tensor, stride: int = 1) -> Tensor:
        """(B, in, H, W) -> (B, out, H/stride, W/stride)."""
        batch, inward, height, width = x.shape
        tall, wide = -(-height // stride), -(-width // stride)
        if self.size > 1:
            x = extend(x, self.size // 2, "reflect")
        if not x.is_cuda:
            kernels = self.weight.reshape(-1, inward, self.size, self.size)
            out = functional.conv2d(
                x.reshape(1, -1, *x.shape[2:]), kernels, stride=stride, groups=batch
            )
            return out.reshape(batch, -1, tall, wide) + self.bias[..., None]
        patches = self.patches(x, height, width, stride)
        return torch.baddbmm(self.bias, self.weight, patches).reshape(batch, -1, tall, wide)

    def patches(self, x: Tensor, height: int, width: int, stride: int) -> Tensor:
        """The neighbourhoods of an extended image, (B, in·k², pixels)."""
        shifts = [
            x[:, :, i : i + height : stride, j : j + width : stride]
            for i in range(self.size)
            for j in range(self.size)
        ]
        return torch.stack(shifts, 2).reshape(len(x), self.weight.shape[2], -1)


def doubled(x: Tensor) -> Tensor:
    """Bilinear doubling of both sides: ¾ of the nearest pixel and ¼ of the next, edges repeated."""
    for axis in (-1, -2):
        side = x.shape[axis]
        first, last = x.narrow(axis, 0, 1), x.narrow(axis, side - 1, 1)
        before = torch.cat([first, x.narrow(axis, 0, side - 1)], axis)
        after = torch.cat([x.narrow(axis, 1, side - 1), last], axis)
        near = 0.75 * x
        pair = torch.stack([near + 0.25 * before, near + 0.25 * after], axis if axis == -1 else -2)
        x = pair.flatten(-2) if axis == -1 else pair.flatten(-3, -2)
    return x


class _Block(nn.Module):
    """Convolution, normalisation over the pixels, leaky rectifier."""

    def __init__(
        self, batch: int, inward: int, outward: int, size: int, draw: torch.Generator, like: Tensor
    ) -> None:
        super().__init__()
        self.convolution = _Convolution(batch, inward, outward, size, draw, like)
        shape = (batch, outward, 1, 1)
        self.gain = nn.Parameter(torch.ones(shape, dtype=like.dtype, device=like.device))
        self.shift = nn.Parameter(torch.zeros(shape, dtype=like.dtype, device=like.device))

    def forward(self, x: Tensor, stride: int = 1) -> Tensor:
        """(B, in, H, W) -> (B, out, H/stride, W/stride)."""
        x = self.convolution(x, stride)
        spread, mean = torch.var_mean(x, (2, 3), keepdim=True, correction=0)
        return functional.leaky_relu(
            (x - mean) * (spread + 1e-5).rsqrt() * self.gain + self.shift, 0.2
        )


class _Scale(nn.Module):
    """The layers of one scale."""

    def __init__(
        self,
        batch: int,
        inward: int,
        width: int,
        below: int,
        skip: int,
        draw: torch.Generator,
        like: Tensor,
    ) -> None:
        super().__init__()
        self.skip = _Block(batch, inward, skip, 1, draw, like)
        self.shrink = _Block(batch, inward, width, 3, draw, like)
        self.deepen = _Block(batch, width, width, 3, draw, like)
        self.merge = _Block(batch, below + skip, width, 3, draw, like)
        self.mix = _Block(batch, width, width, 1, draw, like)


class Hourglass(nn.Module):
    """One untrained network for each of B images.

    Parameters
    ----------
    batch : int
        B.
    inward, outward : int
        Channels of the input and of the image.
    widths : sequence of int
        Channels at each scale; each scale halves the sides.
    skip : int
        Channels of a skip connection.
    draw : torch.Generator
        Where the weights come from.
    like : torch.Tensor
        Of the dtype and device wanted.
    """

    def __init__(
        self,
        batch: int,
        inward: int,
        outward: int,
        *,
        widths: Sequence[int],
        skip: int = 4,
        draw: torch.Generator,
        like: Tensor,
    ) -> None:
        super().__init__()
        ins = [inward, *widths[:-1]]
        below = [*widths[1:], widths[-1]]
        self.scales = nn.ModuleList(
            _Scale(
                batch=batch,
                inward=i,
                width=w,
                below=b,
                skip=skip,
                draw=draw,
                like=like,
            )
            for i, w, b in zip(ins, widths, below, strict=True)
        )
        self.last = _Convolution(batch, widths[0], outward, 1, draw, like)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inward, H, W) -> (B, outward, H, W), before any squashing."""
        beside: list[Tensor] = []
        scales = [scale for scale in self.scales if isinstance(scale, _Scale)]
        for scale in scales:
            beside.append(scale.skip(x))
            x = scale.deepen(scale.shrink(x, 2))
        for scale, skipped in zip(reversed(scales), reversed(beside), strict=True):
            x = doubled(x)[:, :, : skipped.shape[2], : skipped.shape[3]]
            x = scale.mix(scale.merge(torch.cat([x, skipped], 1)))
        return self.last(x)
