"""Total variation against closed forms, scipy on tiny images, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.restoration.baseline_cases import Shape, error, noisy, phantom, task_of
from torch import Tensor

from setpoint import DataError
from setpoint.restoration.baselines import total_variation
from setpoint.restoration.baselines.task_and_start import Space
from setpoint.restoration.baselines.total_variation import (
    denoised,
    differences,
    gathered,
    total_variation_of,
)
from setpoint.restoration.operators import BlindBlur, Blur, Inpaint, gaussian_blur
from setpoint.restoration.operators.blur import gaussian_kernel

WIDE = Space((1, 4, 4), -10.0, 10.0)


def _weight(value: float, batch: int = 1) -> Tensor:
    return torch.full((batch,), value, dtype=torch.float64)


def variation(x: np.ndarray) -> float:
    """TV of (C, H, W), by numpy; the 1e-14 keeps scipy's finite differences finite."""
    down, right = np.zeros_like(x), np.zeros_like(x)
    down[:, :-1], right[..., :-1] = np.diff(x, axis=1), np.diff(x, axis=2)
    return float(np.sqrt((down**2 + right**2).sum(0) + 1e-14).sum())


@pytest.mark.parametrize("gamma", [0.1, 0.3, 0.5, 2.0])
def test_two_pixels_move_toward_each_other_by_gamma(gamma: float) -> None:
    b = torch.tensor([[[[0.0, 1.0]]]], dtype=torch.float64)
    x, _ = denoised(b, _weight(gamma), WIDE, steps=400)
    move = min(gamma, 0.5)
    expected = torch.tensor([[[[move, 1 - move]]]], dtype=torch.float64)
    torch.testing.assert_close(x, expected, atol=1e-9, rtol=0)


def test_a_strong_weight_gives_the_mean_of_each_channel() -> None:
    b = torch.rand(2, 3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, _ = denoised(b, _weight(50.0, 2), Space((3, 4, 5), -10.0, 10.0), steps=1000)
    torch.testing.assert_close(x, b.mean((2, 3), keepdim=True).expand_as(b), atol=1e-4, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
def test_gathered_is_the_adjoint_of_differences(c: int, h: int, w: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(2, c, h, w, dtype=torch.float64, generator=draw)
    p = torch.randn(2, 2, c, h, w, dtype=torch.float64, generator=draw)
    left = (differences(x) * p).sum()
    torch.testing.assert_close(left, (x * gathered(p)).sum(), atol=1e-10, rtol=1e-10)
    plain = torch.tensor([variation(one.numpy()) for one in x], dtype=torch.float64)
    torch.testing.assert_close(total_variation_of(x), plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("channels", [1, 2])
def test_the_weighted_sum_is_as_low_as_scipy_finds_it(channels: int) -> None:
    # half the pixels hidden, so that A has a null space, and a range that bites
    rng = np.random.default_rng(channels)
    shape, lam = (channels, 3, 3), 0.08
    mask = torch.tensor(rng.random((1, 1, 3, 3)) < 0.6)
    y = torch.tensor(rng.uniform(-0.3, 1.3, (1, *shape))) * mask
    task = task_of(y, Inpaint(mask), Shape(shape))
    ours = total_variation(task, weight=lam, iterations=500, proximal_steps=20).image
    seen, target = mask.numpy()[0], y.numpy()[0]

    def value(flat: np.ndarray) -> float:
        x = flat.reshape(shape)
        return 0.5 * float((((x - target) * seen) ** 2).sum()) + lam * variation(x)

    best = min(
        minimize(
            value, start, method="SLSQP", bounds=[(0, 1)] * start.size, options={"maxiter": 200}
        ).fun
        for start in (np.full(y[0].numel(), 0.5), ours.numpy().ravel())
    )
    assert value(ours.numpy().ravel()) <= best + 1e-5
    assert float(ours.min()) >= 0
    assert float(ours.max()) <= 1


def test_the_residual_meets_the_noise_level() -> None:
    truth, blur = phantom(), gaussian_blur(1.0)
    y = noisy(blur(truth), 0.05)
    out = total_variation(task_of(y, blur, Shape((1, 16, 16)), sigma=0.05), iterations=300)
    reached = (blur(out.image) - y).square().mean((1, 2, 3)).sqrt()
    torch.testing.assert_close(reached, torch.full_like(reached, 0.05), rtol=0.02, atol=0)
    assert error(out.image, truth) < 0.5 * error(y, truth)


def test_units_of_the_image_do_not_matter() -> None:
    # the same problem said in [0, 1] and in [-10, 30], with sigma in those units
    truth, blur = phantom(8), gaussian_blur(0.8, size=3)
    y = noisy(blur(truth), 0.03)
    one = total_variation(task_of(y, blur, Shape((1, 8, 8)), sigma=0.03), iterations=120).image
    scaled = task_of(40 * y - 10, blur, Shape((1, 8, 8), (-10.0, 30.0)), sigma=1.2)
    two = total_variation(scaled, iterations=120).image
    torch.testing.assert_close((two + 10) / 40, one, atol=5e-3, rtol=0)


def test_an_image_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    truth, blur = phantom(8), gaussian_blur(0.8, size=3)
    y = noisy(blur(truth), 0.03)
    both = total_variation(task_of(y, blur, Shape((1, 8, 8))), iterations=60).image
    alone = total_variation(task_of(y[:1], blur, Shape((1, 8, 8))), iterations=60).image
    torch.testing.assert_close(both[:1], alone, atol=1e-9, rtol=0)


def test_a_nonlinear_operator() -> None:
    truth, blur = phantom(), gaussian_blur(1.0)

    def saturating(x: Tensor) -> Tensor:
        return torch.tanh(2 * blur(x))

    y = noisy(saturating(truth), 0.02)
    out = total_variation(task_of(y, saturating, Shape((1, 16, 16))), iterations=250)
    assert error(saturating(out.image), y) == pytest.approx(0.02, rel=0.05)
    # the blurred image itself, free of noise and saturation, is not as near
    assert error(out.image, truth) < 0.7 * error(blur(truth), truth)


def test_a_blind_operator_finds_the_kernel() -> None:
    truth, kernel = phantom(), gaussian_kernel(0.7, 5).double()
    y = noisy(Blur(kernel)(truth), 0.01)
    operator = BlindBlur(5, start="flat")
    out = total_variation(task_of(y, operator, Shape((1, 16, 16)), sigma=0.01), iterations=300)
    assert out.unknowns is not None
    before = (operator.kernel(operator.unknowns(2, y)) - kernel).abs().sum((1, 2))
    after = (operator.kernel(out.unknowns) - kernel).abs().sum((1, 2))
    assert bool((after < 0.5 * before).all())


@pytest.mark.parametrize("options", [{"weight": 0.0}, {"iterations": 0}, {"sigma": -1.0}])
def test_options_that_cannot_be_meant(options: dict) -> None:
    y = phantom(8)
    with pytest.raises(DataError, match=next(iter(options))):
        total_variation(task_of(y, lambda x: x, Shape((1, 8, 8))), **options)
