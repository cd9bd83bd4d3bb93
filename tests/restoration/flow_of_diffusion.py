r"""The flow that a diffusion model knows already, by a change of variables.

With n² = t² + (1 − t)², the point x_t = t x_1 + (1 − t) z of a flow is n times the point of a
diffusion with √ᾱ = t/n, √(1 − ᾱ) = (1 − t)/n. Where v̂ is the prediction there, x̂ = √ᾱ x_t/n −
√(1 − ᾱ) v̂, so the velocity E[x_1 − z | x_t] = (x̂ − x_t)/(1 − t) is

    (2t − 1)/n² · x_t − v̂(x_t/n)/n,

without a division by 1 − t.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import cosine


class Velocity(nn.Module):
    """(x_t, t) -> velocity, of a network that predicts v under the cosine schedule."""

    def __init__(self, network: nn.Module, T: int) -> None:
        super().__init__()
        self.network, self.T = network, T

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """ᾱ = cos²((index + 1)/T · π/2 · 0.9966), solved for index/T."""
        angle = torch.atan2(1 - t, t)
        index = angle / (0.5 * math.pi * 0.9966) - 1 / self.T
        t = t.view(-1, 1, 1, 1)
        n = (t**2 + (1 - t) ** 2).sqrt()
        said = self.network(x / n, index.clamp(0, 1 - 1 / self.T))
        return (2 * t - 1) / n**2 * x - said / n


def flow_of(prior: DiffusionPrior, steps: int = 3) -> FlowPrior:
    """The same model as a flow."""
    assert prior.prediction == "v"
    assert torch.equal(prior.alpha_bar, cosine(prior.T))
    network = Velocity(prior.network, prior.T)
    return FlowPrior(network, shape=prior.shape, range=prior.range, steps=steps)
