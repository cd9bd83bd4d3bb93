"""Total variation of an image and its proximal map.

    TV(x) = Σ_pixels √(Σ_channels (∂_h x)² + (∂_w x)²),     forward differences, none over the edge,
    prox(b) = argmin_{x in range} ½‖x − b‖² + γ TV(x).

Isotropic, and over the channels together, so that the edges of a colour image stay in one place.
The dual of the proximal map, max over fields p with |p| ≤ 1 at each pixel, is climbed by
accelerated projected gradients (Beck and Teboulle 2009, section 4), from a given p on, which makes
a handful of steps enough inside a slow outer loop.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.restoration.baselines.task_and_start import Space, rows


def differences(x: Tensor) -> Tensor:
    """Forward differences, (B, C, H, W) -> (B, 2, C, H, W)."""
    out = x.new_zeros(len(x), 2, *x.shape[1:])
    out[:, 0, :, :-1] = x[:, :, 1:] - x[:, :, :-1]
    out[:, 1, :, :, :-1] = x[..., 1:] - x[..., :-1]
    return out


def gathered(field: Tensor) -> Tensor:
    """The adjoint of :func:`differences`, (B, 2, C, H, W) -> (B, C, H, W)."""
    down, right = field[:, 0, :, :-1], field[:, 1, :, :, :-1]
    out = torch.zeros_like(field[:, 0])
    out[:, :, 1:] += down
    out[:, :, :-1] -= down
    out[..., 1:] += right
    out[..., :-1] -= right
    return out


def total_variation_of(x: Tensor) -> Tensor:
    """TV of each image, (B,)."""
    return differences(x).square().sum((1, 2)).sqrt().flatten(1).sum(1)


def denoised(
    b: Tensor, weight: Tensor, space: Space, *, steps: int, field: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """argmin_{x in range} ½‖x − b‖² + γ TV(x), and the dual field it was found with.

    Parameters
    ----------
    b : torch.Tensor
        (B, C, H, W).
    weight : torch.Tensor
        (B,), γ.
    space : Space
        The range.
    steps : int
        Of the dual climb.
    field : torch.Tensor, optional
        (B, 2, C, H, W), where the climb starts.
    """
    gamma = rows(weight, b)
    # ‖differences‖² <= 8, so the dual's gradient has the Lipschitz constant 8 γ²: with p in units
    # of 1, the step is 1/(8γ)
    stride = 1 / (8 * gamma.clamp(min=torch.finfo(b.dtype).tiny)).unsqueeze(1)
    p = torch.zeros_like(differences(b)) if field is None else field
    ahead, momentum = p, 1.0
    for _ in range(steps):
        x = space.clip(b - gamma * gathered(ahead))
        reached = ahead + stride * differences(x)
        after = reached / reached.square().sum((1, 2), keepdim=True).sqrt().clamp(min=1)
        faster = 0.5 * (1 + (1 + 4 * momentum**2) ** 0.5)
        ahead = after + ((momentum - 1) / faster) * (after - p)
        p, momentum = after, faster
    return space.clip(b - gamma * gathered(p)), p
