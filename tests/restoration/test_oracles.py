"""The known answers agree with a second, slower way to the same answer."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from tests.restoration import oracles


def test_the_mode_is_where_scipy_ends():
    case = oracles.problem()
    for image in range(len(case.y)):
        found = minimize(
            lambda z, i=image: 0.5 * z @ z + case.squares(z, i) / (2 * case.sigma**2),
            np.zeros(5),
            tol=1e-12,
        )
        np.testing.assert_allclose(oracles.posterior_mode(case, image), found.x, atol=1e-5)


@pytest.mark.parametrize("budget", [0.3, 0.8, 1e3])
def test_the_constrained_mode_is_where_slsqp_ends(budget):
    case = oracles.problem()
    for image in range(len(case.y)):
        expected = oracles.constrained_mode(case, image, budget)
        assert expected is not None
        room = {"type": "ineq", "fun": lambda z, i=image: budget - case.squares(z, i)}
        start = np.linalg.lstsq(case.b, case.left(image), rcond=None)[0]
        found = minimize(
            lambda z: 0.5 * z @ z,
            start,
            method="SLSQP",
            constraints=[room],
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(expected, found.x, atol=1e-4)


def test_no_seed_reaches_too_small_a_budget():
    case = oracles.problem(rows=7, seeds=3)
    assert oracles.constrained_mode(case, 0, 1e-9) is None


def test_nothing_on_the_shell_is_better_than_the_shell_mode():
    case = oracles.problem(seeds=4)
    rng = np.random.default_rng(1)
    z = oracles.to_shell(rng.normal(size=(20000, 4)))
    for image in range(len(case.y)):
        best = oracles.shell_mode(case, image)
        assert np.linalg.norm(best) == pytest.approx(2.0)
        least = case.squares(best, image)
        tried = np.sum((case.left(image) - z @ case.b.T) ** 2, axis=1)
        assert tried.min() > least - 1e-9
        assert tried.min() < least + 0.2


def test_the_flow_in_closed_form_is_the_integral_of_its_velocity():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    flow = oracles.GaussianFlow(rng.normal(size=3), root @ root.T)
    x = rng.normal(size=3)
    for t in (0.0, 0.4, 0.9):
        ends = solve_ivp(
            lambda s, v: flow.velocity(v[None], s)[0], (t, 1.0), x, rtol=1e-10, atol=1e-10
        )
        np.testing.assert_allclose(flow.carry(x[None], t)[0], ends.y[:, -1], atol=1e-6)


def test_a_denoiser_of_a_gaussian_is_the_regression_on_it():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(2, 2))
    clean = rng.normal(size=(400_000, 2)) @ root.T + 1.0
    noisy = clean + 0.7 * rng.normal(size=clean.shape)
    slope, *_ = np.linalg.lstsq(np.c_[np.ones(len(noisy)), noisy], clean, rcond=None)
    expected = np.c_[np.ones(5), noisy[:5]] @ slope
    found = oracles.posterior_denoise(np.ones(2), root @ root.T, noisy[:5], 0.7)
    np.testing.assert_allclose(found, expected, atol=0.02)
