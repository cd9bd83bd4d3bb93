"""Plug-and-play and posterior sampling where the prior is Gaussian and the answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import least_squares
from tests.restoration.baseline_cases import Shape, error, noisy, phantom, task_of
from torch import Tensor

from setpoint import DataError, KindError
from setpoint.restoration.baselines import dps, pnp
from setpoint.restoration.baselines.blind_unknowns import Unknowns
from setpoint.restoration.baselines.denoiser_diffusion import Diffusion
from setpoint.restoration.operators import BlindBlur, Blur, gaussian_blur
from setpoint.restoration.operators.blur import gaussian_kernel
from setpoint.restoration.priors.linear_gaussian import LinearPrior


def _gaussian(pixels: int, seed: int = 0) -> LinearPrior:
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(pixels, pixels, dtype=torch.float64, generator=draw)
    mean = torch.randn(pixels, dtype=torch.float64, generator=draw)
    return LinearPrior(matrix / pixels**0.5, mean, shape=(1, 1, pixels))


def _standard(pixels: int) -> LinearPrior:
    eye, zero = torch.eye(pixels, dtype=torch.float64), torch.zeros(pixels, dtype=torch.float64)
    return LinearPrior(eye, zero, shape=(1, 1, pixels))


def _posterior_mean(prior: LinearPrior, matrix: Tensor, y: Tensor, sigma: float) -> Tensor:
    """Of a Gaussian prior, by the normal equations with its covariance."""
    covariance = prior.matrix @ prior.matrix.T
    gain = (
        covariance
        @ matrix.T
        @ torch.linalg.inv(
            matrix @ covariance @ matrix.T + sigma**2 * torch.eye(len(matrix), dtype=torch.float64)
        )
    )
    return prior.mean + (y - prior.mean @ matrix.T) @ gain.T


class Known:
    """A world of some images, equally likely: E[x | noisy] is their mean, weighed by how near."""

    range = (0.0, 1.0)

    def __init__(self, images: Tensor) -> None:
        self.images, self.shape, self.seed_shape = images, tuple(images.shape[1:]), (len(images),)

    def __call__(self, z: Tensor) -> Tensor:
        """A mixture, for the door; no baseline asks for it."""
        return torch.tensordot(torch.softmax(z, 1), self.images, 1)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """Softmax of −‖x − t_n‖²/2σ² over the images t_n."""
        spread = torch.as_tensor(sigma, dtype=x.dtype).reshape(-1, 1)
        apart = torch.cdist(x.flatten(1), self.images.flatten(1)).square()
        weights = torch.softmax(-apart / (2 * spread**2), 1)
        return (weights @ self.images.flatten(1)).reshape(x.shape)


def _world(count: int = 24, side: int = 12) -> Known:
    """Bright rectangles here and there on a darker ground."""
    draw = torch.Generator().manual_seed(5)
    images = torch.full((count, 1, side, side), 0.2, dtype=torch.float64)
    for image in images:
        top, left, high, wide = torch.randint(2, 6, (4,), generator=draw).tolist()
        image[0, top : top + high, left : left + wide] = 0.9
    return Known(images)


def test_admm_with_a_gaussian_denoiser_ends_at_the_posterior_mean() -> None:
    prior = _gaussian(5)
    draw = torch.Generator().manual_seed(3)
    matrix = torch.randn(3, 5, dtype=torch.float64, generator=draw)
    y = torch.randn(2, 3, dtype=torch.float64, generator=draw)
    task = task_of(y, lambda x: x.flatten(1) @ matrix.T, prior, sigma=0.3)
    found = pnp(task, splitting="admm", strength=1.0, first=0.5, last=0.5 / 0.3, iterations=300)
    expected = _posterior_mean(prior, matrix, y, 0.3)
    torch.testing.assert_close(found.image.flatten(1), expected, atol=1e-6, rtol=0)


def test_half_quadratic_splitting_ends_at_its_own_ridge() -> None:
    # x_0 ~ N(0, 1), A = 1: the fixed point of x = (y + a v)/(1 + a), v = x/(1 + s²)
    y = torch.tensor([[[[0.7, -1.1]]]], dtype=torch.float64)
    task = task_of(y, lambda x: x, _standard(2), sigma=0.3)
    found = pnp(task, splitting="hqs", strength=1.0, first=0.5, last=0.5 / 0.3, iterations=200)
    a, shrink = 0.3**2 / 0.5**2, 1 / (1 + 0.5**2)
    torch.testing.assert_close(found.image, y * shrink / (1 + a - a * shrink), atol=1e-9, rtol=0)


def test_a_nonlinear_operator_ends_at_the_posterior_mode() -> None:
    prior, sigma = _gaussian(4), 0.3
    draw = torch.Generator().manual_seed(4)
    matrix = torch.randn(6, 4, dtype=torch.float64, generator=draw)
    y = torch.tanh(torch.randn(2, 4, dtype=torch.float64, generator=draw) @ matrix.T)
    task = task_of(y, lambda x: torch.tanh(x.flatten(1) @ matrix.T), prior, sigma=sigma)
    found = pnp(task, splitting="admm", strength=1.0, first=0.5, last=0.5 / 0.3, iterations=150)
    whiten = torch.linalg.inv(prior.matrix)
    for row in range(2):

        def sides(x: np.ndarray, row: int = row) -> np.ndarray:
            fit = np.tanh(matrix.numpy() @ x) - y[row].numpy()
            return np.concatenate([fit / sigma, whiten.numpy() @ (x - prior.mean.numpy())])

        here = found.image[row].flatten().numpy()
        # from where we ended: a mode is where scipy has nothing left to do
        best = least_squares(sides, here, xtol=1e-12, ftol=1e-12, gtol=1e-12)
        np.testing.assert_allclose(here, best.x, atol=1e-4)


def test_plug_and_play_finds_image_and_kernel() -> None:
    world, kernel = _world(), gaussian_kernel(0.8, 5).double()
    truth = world.images[[3, 11]]
    y = noisy(Blur(kernel)(truth), 0.01)
    operator = BlindBlur(5, start="flat")
    task = task_of(y, operator, world, sigma=0.01)
    found = pnp(task, iterations=40, unknowns_rate=0.05)
    assert found.unknowns is not None
    before = (operator.kernel(operator.unknowns(2, y)) - kernel).abs().sum((1, 2))
    after = (operator.kernel(found.unknowns) - kernel).abs().sum((1, 2))
    assert bool((after < 0.4 * before).all())
    assert error(found.image, truth) < 1e-3


def test_ancestral_steps_alone_draw_the_prior() -> None:
    # x ~ N(μ, WWᵀ), variances up to 2.5: five standard errors of a mean of 20 000 are 0.056
    prior, count = _gaussian(2), 20000
    y = torch.zeros(1, 1, 1, 2, dtype=torch.float64)
    diffusion = Diffusion.of(task_of(y, lambda x: x, prior), prior, 500)
    draw = torch.Generator().manual_seed(0)
    u = diffusion.start(count, y, draw)
    for at in range(len(diffusion.kept)):
        u = diffusion.ancestor(u, diffusion.inside(diffusion.clean(u, at)), at, draw)
    flat = u.flatten(1)
    covariance = prior.matrix @ prior.matrix.T
    # steps leave a bias of their own, which falls as one over their number: 2.5 % at 250
    torch.testing.assert_close(flat.mean(0), prior.mean, atol=0.06, rtol=0)
    torch.testing.assert_close(flat.T.cov(), covariance, atol=0, rtol=0.05)


def test_the_level_rule_samples_a_gaussian_posterior() -> None:
    # x ~ N(0, 1), y = x + 0.5 ε: x | y ~ N(0.8 y, 0.2)
    count, sigma, seen = 4000, 0.5, torch.tensor([1.5, -0.4], dtype=torch.float64)
    y = seen.expand(count, 1, 1, 2).clone()
    task = task_of(y, lambda x: x, _standard(2), sigma=sigma)
    found = dps(task, rule="level", spread=1.0, iterations=250).image.flatten(1)
    exact, variance = seen / (1 + sigma**2), sigma**2 / (1 + sigma**2)
    slack = 5 * math.sqrt(variance / count) + 0.01  # five standard errors, and the steps' own bias
    torch.testing.assert_close(found.mean(0), exact, atol=slack, rtol=0)
    torch.testing.assert_close(
        found.var(0), torch.full_like(exact, variance), atol=0.1 * variance, rtol=0
    )


def test_the_mean_of_samples_is_nearer_to_the_posterior_mean_than_one() -> None:
    sigma = 0.5
    y = noisy(torch.zeros(40, 1, 1, 2, dtype=torch.float64), 1.1)
    task = task_of(y, lambda x: x, _standard(2), sigma=sigma)
    exact = y / (1 + sigma**2)
    options = {"rule": "level", "spread": 1.0, "iterations": 60}
    one, many = (error(dps(task, samples=k, **options).image, exact) for k in (1, 16))
    # the variance of a mean of 16 is a sixteenth; 80 squared errors leave a factor of about 1.5
    assert many < one / 2.5


def test_a_misstated_level_matters_to_the_level_rule_alone() -> None:
    y = torch.full((1, 1, 1, 2), 2.0, dtype=torch.float64).expand(300, 1, 1, 2).clone()
    right, wrong = (
        dps(
            task_of(y, lambda x: x, _standard(2), sigma=0.3),
            rule="level",
            spread=1.0,
            sigma=s,
            iterations=60,
        ).image.mean()
        for s in (None, 3.0)
    )
    assert float(right) == pytest.approx(2 / 1.09, abs=0.1)
    assert float(wrong) == pytest.approx(2 / 10, abs=0.3)
    same = [
        dps(task_of(y, lambda x: x, _standard(2)), rule="norm", sigma=s, iterations=5).image
        for s in (None, 3.0)
    ]
    assert torch.equal(same[0], same[1])


@pytest.mark.parametrize("rule", ["norm", "level"])
def test_both_rules_find_the_image_that_explains_y(rule: str) -> None:
    world, blur = _world(), gaussian_blur(0.8)
    truth = world.images[[3, 11]]
    y = noisy(torch.tanh(2 * blur(truth)), 0.02)
    task = task_of(y, lambda x: torch.tanh(2 * blur(x)), world)
    free, held = (dps(task, rule=rule, iterations=100, scale=scale).image for scale in (1e-9, None))
    assert error(held, truth) < 0.05
    assert error(free, truth) > 0.2  # of 24 images, those two would be chance


def test_sampling_finds_the_kernel() -> None:
    world, kernel = _world(), gaussian_kernel(0.8, 5).double()
    truth = world.images[[3, 11]]
    y = noisy(Blur(kernel)(truth), 0.01)
    operator = BlindBlur(5, start="flat")
    task = task_of(y, operator, world, sigma=0.01)
    found = dps(task, iterations=100, samples=2)
    assert found.unknowns is not None
    assert found.unknowns.shape == (2, 25)
    before = (operator.kernel(operator.unknowns(2, y)) - kernel).abs().sum((1, 2))
    after = (operator.kernel(found.unknowns) - kernel).abs().sum((1, 2))
    assert bool((after < 0.5 * before).all())
    assert error(found.image, truth) < 0.05


def test_samples_of_an_image_share_its_unknowns() -> None:
    """A step lowers the mean of the squared residuals over samples, as EM's does."""
    world = _world()
    operator = BlindBlur(5, start="flat")
    task = task_of(world.images[[3, 11]], operator, world, sigma=0.01)
    drawn = world.images[[4, 5, 6, 7]]  # two samples of each
    unknowns = Unknowns(task, 0.02)
    unknowns.steps(drawn, 40)
    assert unknowns.value is not None
    assert unknowns.value.shape == (2, 25)
    for image in range(2):  # by brute force, one image after the other
        y = task.y[image : image + 1]
        alone = Unknowns(task_of(y, operator, world, sigma=0.01), 0.02)
        alone.steps(drawn[image::2], 40)
        torch.testing.assert_close(alone.value[0], unknowns.value[image], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("method", [dps, pnp])
def test_a_prior_without_a_denoiser(method) -> None:
    with pytest.raises(KindError, match="denoise"):
        method(task_of(phantom(8), lambda x: x, Shape((1, 8, 8))))


def test_options_that_cannot_be_meant() -> None:
    task = task_of(_world().images[:2], lambda x: x, _world())
    with pytest.raises(DataError, match="rule='both'"):
        dps(task, rule="both")
    with pytest.raises(DataError, match="samples=0"):
        dps(task, samples=0)
    with pytest.raises(DataError, match="splitting='all'"):
        pnp(task, splitting="all")
    with pytest.raises(DataError, match="last=0"):
        pnp(task, last=0.0)
    with pytest.raises(DataError, match="first=-1"):
        pnp(task, first=-1.0)
    with pytest.raises(DataError, match="strength=nan"):
        pnp(task, strength=float("nan"))
