"""A linear Gaussian prior: x = μ + W z, for which everything has a closed form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError
from setpoint.restoration.priors.prior import checked_range, column


class LinearPrior(nn.Module):
    """x = μ + W z with z ~ N(0, I), so x ~ N(μ, W Wᵀ).

    Parameters
    ----------
    matrix : torch.Tensor
        W, (n, d): one column for each entry of a seed.
    mean : torch.Tensor
        μ, (n,).
    shape : tuple of int
        Of one image, with n pixels in all.
    range : tuple of float
        The declared value range; a Gaussian has no ends.

    Examples
    --------
    >>> prior = LinearPrior(torch.eye(4), torch.zeros(4), shape=(1, 2, 2))
    >>> prior(torch.ones(1, 4)).flatten().tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> prior.denoise(torch.ones(1, 1, 2, 2), 1.0).flatten().tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    matrix: Tensor
    mean: Tensor

    def __init__(
        self,
        matrix: Tensor,
        mean: Tensor,
        shape: tuple[int, ...],
        range: tuple[float, float] = (float("-inf"), float("inf")),
    ) -> None:
        super().__init__()
        pixels = torch.Size(shape).numel()
        if matrix.ndim != 2 or mean.shape != (pixels,) or len(matrix) != pixels:
            raise DataError(
                f"an image of shape {tuple(shape)} has {pixels} pixels: matrix must be "
                f"({pixels}, d) and mean ({pixels},); got {tuple(matrix.shape)} and "
                f"{tuple(mean.shape)}."
            )
        self.register_buffer("matrix", matrix)
        self.register_buffer("mean", mean)
        self.shape, self.seed_shape = tuple(shape), (matrix.shape[1],)
        self.range = checked_range(range)

    def forward(self, z: Tensor) -> Tensor:
        """(B, d) -> (B, *shape)."""
        return (self.mean + z @ self.matrix.T).reshape(-1, *self.shape)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """E[clean | x] = μ + U diag(s²/(s² + σ²)) Uᵀ (x − μ), with W = U diag(s) Vᵀ."""
        left, values, _ = torch.linalg.svd(self.matrix, full_matrices=False)
        spread = torch.as_tensor(sigma, dtype=x.dtype, device=x.device)
        spread = column(spread.expand(len(x)) if spread.ndim == 0 else spread, left)
        power = values.square()
        along = (x.flatten(1) - self.mean) @ left
        return (self.mean + (along * power / (power + spread**2)) @ left.T).reshape(x.shape)
