"""The linear Gaussian problems of `oracles`, as tensors, priors and operators."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tests.restoration.oracles import GaussianFlow, LinearGaussian
from torch import Tensor, nn


class Plain:
    """The least a prior may be: three facts and a call."""

    range = (-float("inf"), float("inf"))

    def __init__(self, case: LinearGaussian, dtype: torch.dtype = torch.float64) -> None:
        self.matrix = torch.tensor(case.matrix, dtype=dtype)
        self.mean = torch.tensor(case.mean, dtype=dtype)
        pixels, seeds = case.matrix.shape
        self.shape = (1, 2, pixels // 2)
        self.seed_shape = (seeds,)

    def __call__(self, z: Tensor) -> Tensor:
        """Return m + W z."""
        return (self.mean + z @ self.matrix.T).reshape(len(z), *self.shape)


def operator_of(
    case: LinearGaussian, dtype: torch.dtype = torch.float64
) -> Callable[[Tensor], Tensor]:
    """A as a plain function of images."""
    matrix = torch.tensor(case.operator, dtype=dtype)
    return lambda x: x.flatten(1) @ matrix.T


def measured(case: LinearGaussian, dtype: torch.dtype = torch.float64) -> Tensor:
    """Y as a tensor."""
    return torch.tensor(case.y, dtype=dtype)


class Mixture(nn.Module):
    """A_u = A0 + u A1 with u a parameter of the user's own module."""

    def __init__(self, first: Tensor, second: Tensor, start: float) -> None:
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)
        self.u = nn.Parameter(torch.tensor(start, dtype=first.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return A_u x."""
        return x.flatten(1) @ (self.first + self.u * self.second).T


class Separate:
    """A_u = A0 + u A1 with one u per image: the blind protocol."""

    def __init__(self, first: Tensor, second: Tensor, start: float) -> None:
        self.first, self.second, self.begin = first, second, start

    def unknowns(self, batch: int, like: Tensor) -> Tensor:
        """One number per image, (batch, 1)."""
        return torch.full((batch, 1), self.begin, dtype=like.dtype, device=like.device)

    def __call__(self, x: Tensor, unknowns: Tensor) -> Tensor:
        """Return A_u x."""
        flat = x.flatten(1)
        return flat @ self.first.T + unknowns * (flat @ self.second.T)


class Velocity(nn.Module):
    """Velocity of a Gaussian flow as a network: (x_t, t) with t (B,)."""

    def __init__(self, flow: GaussianFlow) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(flow.mean))
        self.register_buffer("covariance", torch.tensor(flow.covariance))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """V(x, t), each image at its own time."""
        flat, t = x.flatten(1), t.reshape(-1, 1).to(x.dtype).expand(len(x), 1)
        eye = torch.eye(flat.shape[1], dtype=x.dtype, device=x.device)
        s = t[:, :, None]
        top = s * self.covariance - (1 - s) * eye
        bottom = s * s * self.covariance + (1 - s) ** 2 * eye
        left = torch.linalg.solve(bottom, (flat - t * self.mean)[:, :, None])
        return (self.mean + (top @ left)[:, :, 0]).reshape(x.shape)
