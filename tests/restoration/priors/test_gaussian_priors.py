"""Diffusion and flow priors of a Gaussian, whose network is known in closed form."""

import numpy as np
import pytest
import torch
from tests.restoration.linear_cases import Velocity
from tests.restoration.oracles import GaussianFlow, posterior_denoise
from torch import nn

from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import cosine

RNG = np.random.default_rng(0)
ROOT = 0.5 * RNG.normal(size=(4, 4))
FLOW = GaussianFlow(0.2 * RNG.normal(size=4), ROOT @ ROOT.T + 0.02 * np.eye(4))
SHAPE = (1, 2, 2)


def flow_prior(steps, range=(-1.0, 1.0)):
    return FlowPrior(Velocity(FLOW), shape=SHAPE, range=range, steps=steps, clip=False)


def image(rows):
    return torch.tensor(rows).reshape(-1, *SHAPE)


class Clean(nn.Module):
    """What a diffusion network of x0 ~ N(m, S) says, in each way of saying it."""

    def __init__(self, flow, alpha_bar, prediction):
        super().__init__()
        self.register_buffer("mean", torch.tensor(flow.mean))
        self.register_buffer("covariance", torch.tensor(flow.covariance))
        self.register_buffer("alpha_bar", alpha_bar)
        self.prediction = prediction

    def forward(self, x, time):
        index = (time * len(self.alpha_bar)).reshape(-1)
        low = index.floor().long().clamp(0, len(self.alpha_bar) - 2)
        part = index - low
        noise = (1 - self.alpha_bar).log()
        kept = 1 - ((1 - part) * noise[low] + part * noise[low + 1]).exp()  # (B,)
        kept = kept.reshape(-1, 1)
        flat = x.flatten(1)
        eye = torch.eye(flat.shape[1], dtype=x.dtype)
        spread = kept[:, :, None] * self.covariance + (1 - kept[:, :, None]) * eye
        left = torch.linalg.solve(spread, (flat - kept.sqrt() * self.mean)[:, :, None])
        clean = self.mean + kept.sqrt() * (self.covariance @ left)[:, :, 0]
        if self.prediction == "sample":
            return clean.reshape(x.shape)
        noise = (flat - kept.sqrt() * clean) / (1 - kept).sqrt()
        if self.prediction == "v":
            noise = kept.sqrt() * noise - (1 - kept).sqrt() * clean
        return noise.reshape(x.shape)


def diffusion_prior(prediction, steps=3, range=(-1.0, 1.0)):
    alpha_bar = cosine(1000)
    return DiffusionPrior(
        Clean(FLOW, alpha_bar, prediction),
        shape=SHAPE,
        alpha_bar=alpha_bar,
        prediction=prediction,
        range=range,
        steps=steps,
        clip=False,
    )


@pytest.mark.parametrize("t", [0.0, 0.35, 0.8])
def test_a_flow_from_any_time_ends_where_the_closed_form_does(t):
    x = np.random.default_rng(1).normal(size=(5, 4))
    time = torch.full((5,), t, dtype=torch.float64)
    errors = [
        np.abs(
            np.asarray(flow_prior(steps).carry(image(x), time).flatten(1)) - FLOW.carry(x, t)
        ).max()
        for steps in (100, 200, 400)
    ]
    assert errors[2] < 2e-2
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < 0.6 * errors[1]


def test_each_image_is_carried_from_its_own_time():
    x = np.random.default_rng(2).normal(size=(3, 4))
    times = [0.1, 0.5, 0.9]
    found = flow_prior(1600).carry(image(x), torch.tensor(times, dtype=torch.float64)).flatten(1)
    for i, t in enumerate(times):
        np.testing.assert_allclose(found[i], FLOW.carry(x[i : i + 1], t)[0], atol=1e-2)


def test_ranges_are_an_affine_map_of_the_network_s_units():
    z = image(np.random.default_rng(3).normal(size=(2, 4)))
    for make in (lambda r: flow_prior(6, r), lambda r: diffusion_prior("v", 4, r)):
        u = make((-1.0, 1.0))(z)
        torch.testing.assert_close(make((0.0, 1.0))(z), (u + 1) / 2)
        torch.testing.assert_close(make((0.0, 255.0))(z), (u + 1) * 127.5)


@pytest.mark.parametrize("range", [(-1.0, 1.0), (0.0, 255.0)])
@pytest.mark.parametrize("kind", ["flow", "v", "epsilon", "sample"])
def test_a_denoiser_is_the_posterior_mean_in_the_units_of_the_image(kind, range):
    prior = flow_prior(3, range) if kind == "flow" else diffusion_prior(kind, 3, range)
    scale, shift = (range[1] - range[0]) / 2, (range[1] + range[0]) / 2
    x = np.random.default_rng(4).normal(size=(3, 4))
    for sigma in (0.05, 0.5, 2.0):
        found = prior.denoise(image(x * scale + shift), sigma * scale)
        expected = posterior_denoise(FLOW.mean, FLOW.covariance, x, sigma) * scale + shift
        np.testing.assert_allclose(found.flatten(1), expected, atol=2e-3 * scale)


@pytest.mark.parametrize("prediction", ["v", "epsilon", "sample"])
@pytest.mark.parametrize("spacing", ["trailing", "leading"])
def test_many_steps_of_ddim_carry_noise_to_the_gaussian(prediction, spacing):
    """x = m + S^½ z in the limit, up to the noise left at the ends of the schedule."""
    z = np.random.default_rng(5).normal(size=(4, 4))
    prior = diffusion_prior(prediction).with_steps(500, spacing)
    np.testing.assert_allclose(prior(image(z)).flatten(1), FLOW.carry(z, 0.0), atol=3e-2)


def test_the_gradient_of_r_is_that_of_finite_differences():
    z = image(np.random.default_rng(6).normal(size=(2, 4)))
    for prior in (diffusion_prior("v"), diffusion_prior("epsilon"), flow_prior(3)):
        assert torch.autograd.gradcheck(prior, (z.clone().requires_grad_(),))
