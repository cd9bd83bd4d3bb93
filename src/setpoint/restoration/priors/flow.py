"""A flow from noise to images: dx/dt = v(x, t) from time 0 to time 1.

The straight path x_t = t x_1 + (1 − t) z between a seed and an image has the velocity x_1 − z;
the network is its mean given x_t (flow matching, Lipman et al. 2023). ``prior(z)`` takes a few
steps of Euler's rule, and ``carry(x, t)`` the same from any time on, differentiable in both.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError
from setpoint.restoration.priors.prior import Scaled, checked_range, column


class FlowPrior(Scaled):
    """A flow model as a map from seeds to images.

    Parameters
    ----------
    network : torch.nn.Module
        It is used as it is, without a copy: put into evaluation mode, its parameters frozen.
        (x_t, t) -> velocity, x_t in [-1, 1] units, (B, C, H, W); t (B,) in [0, 1].
    shape : tuple of int
        Of one image.
    range : tuple of float
        The declared value range of the images made.
    steps : int
        Network calls from a time to 1.
    clip : bool
        Whether the image is clipped to its range at the end.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        shape: tuple[int, ...],
        range: tuple[float, float] = (0.0, 1.0),
        steps: int = 3,
        clip: bool = True,
    ) -> None:
        super().__init__()
        if steps < 1:
            raise DataError(f"steps={steps} must be at least 1: each is a call of the network.")
        self.network = network.eval().requires_grad_(False)
        self.shape = self.seed_shape = tuple(shape)
        self.range = checked_range(range)
        self.steps, self.clip = steps, clip

    def with_steps(self, steps: int) -> FlowPrior:
        """The same model, seen through another number of steps."""
        return FlowPrior(
            self.network, shape=self.shape, range=self.range, steps=steps, clip=self.clip
        )

    def forward(self, z: Tensor) -> Tensor:
        """From the seed at time 0 to an image in the declared range."""
        return self.carry(z, torch.zeros(len(z), dtype=z.dtype, device=z.device))

    def carry(self, x: Tensor, t: Tensor) -> Tensor:
        """From x at times t, (B,) in [0, 1), in the network's units, to an image at time 1."""
        stride = (1 - t) / self.steps
        for step in range(self.steps):
            x = x + column(stride, x) * self.network(x, t + step * stride)
        return self.to_image(x.clamp(-1, 1) if self.clip else x)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """E[clean | x = clean + sigma · noise], all in the units of the image.

        t x lies on the path at the time t = 1/(1 + σ), where x_1 = x_t + (1 − t) v.
        """
        time = 1 / (1 + self.units(sigma, x))
        inside = self.from_image(x) * time
        clean = inside + (1 - time) * self.network(inside, time.flatten())
        return self.to_image(clean.clamp(-1, 1) if self.clip else clean)
