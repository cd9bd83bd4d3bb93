"""The two priors of 8×8 digits trained by the suite are good enough to be tested with."""

from __future__ import annotations

import math

import pytest
import torch
from tests.restoration.flow_of_diffusion import Velocity
from torch import nn

from setpoint.restoration.priors.linear_gaussian import LinearPrior


@pytest.fixture(params=["digits_prior", "digits_flow"])
def prior(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def wiener(digits):
    """The Gaussian of the same mean and covariance: the best linear denoiser."""
    pixels = digits.flatten(1)
    values, axes = torch.linalg.eigh(torch.cov(pixels.T))
    return LinearPrior(axes * values.clamp(min=0).sqrt(), pixels.mean(0), shape=(1, 8, 8))


def rms(images):
    return float(images.square().mean().sqrt())


@pytest.mark.parametrize(("sigma", "part"), [(0.1, 0.87), (0.3, 0.95)])
def test_it_denoises_held_digits_better_than_the_best_linear_filter(
    prior, wiener, held_digits, sigma, part
):
    noise = torch.randn(held_digits.shape, generator=torch.Generator().manual_seed(0))
    noisy = held_digits + sigma * noise
    with torch.no_grad():
        ours = rms(prior.denoise(noisy, sigma) - held_digits)
    assert ours < part * rms(wiener.denoise(noisy, sigma) - held_digits)


def test_its_samples_lie_nearer_to_digits_than_those_of_a_gaussian(prior, wiener, digits):
    def nearest(images):
        return float(torch.cdist(images.flatten(1), digits.flatten(1)).amin(dim=1).mean())

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        made = prior(torch.randn(200, 1, 8, 8, generator=generator))
    linear = wiener(torch.randn(200, 64, generator=generator)).clamp(0, 1)
    assert nearest(made) < 0.9 * nearest(linear)
    assert 0.5 < float(made.std(dim=0).mean() / digits.std(dim=0).mean()) < 1.1  # they differ
    assert rms(made.mean(0) - digits.mean(0)) < 0.06


class GaussianV(nn.Module):
    """E[v | x_t] for x_0 ~ N(m, s²) under the cosine schedule of T times."""

    mean, spread, T = 0.4, 0.3, 1000

    def forward(self, x, t):
        angle = ((t + 1 / self.T) * (0.5 * math.pi * 0.9966)).view(-1, 1, 1, 1)
        kept, lost = angle.cos(), angle.sin()
        gain = kept * self.spread**2 / (kept**2 * self.spread**2 + lost**2)
        clean = self.mean + gain * (x - kept * self.mean)
        return (kept * x - clean) / lost


def test_the_flow_of_a_diffusion_has_the_velocity_of_flow_matching():
    t = torch.linspace(0.01, 0.99, 9, dtype=torch.float64)
    x = torch.linspace(-2, 2, 9, dtype=torch.float64).view(9, 1, 1, 1)
    m, s = GaussianV.mean, GaussianV.spread
    slope = (t * s**2 - (1 - t)) / (t**2 * s**2 + (1 - t) ** 2)
    expected = m + slope * (x.flatten() - t * m)
    torch.testing.assert_close(Velocity(GaussianV(), GaussianV.T)(x, t).flatten(), expected)


def test_a_diffusion_carries_as_the_flow_it_knows(digits_prior, digits_flow, held_digits):
    draw = torch.Generator().manual_seed(0)
    t = torch.tensor([0.2, 0.5, 0.8])
    noise = torch.randn(3, 1, 8, 8, generator=draw)
    at = t.view(-1, 1, 1, 1)
    x = at * digits_prior.from_image(held_digits[:3]) + (1 - at) * noise
    torch.testing.assert_close(digits_prior.carry(x, t), digits_flow.carry(x, t), atol=2e-3, rtol=0)
