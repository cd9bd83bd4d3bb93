"""`restore` meets answers in closed form, of linear Gaussian problems, to 1e-4."""

import numpy as np
import pytest
import torch
from tests.restoration import oracles
from tests.restoration.linear_cases import Mixture, Plain, Separate, measured, operator_of

import setpoint as sp
from setpoint.restoration import restore

ITERATIONS = {"adam": 600, "lbfgs": 60}


def images_of(case, seeds):
    return np.stack([case.image(z) for z in seeds])


def solved(case, dtype=torch.float64, **options):
    return restore(measured(case, dtype), operator_of(case, dtype), Plain(case, dtype), **options)


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_dmplug_with_a_seed_regulariser_is_the_posterior_mode(optimiser):
    case = oracles.problem()
    found = solved(
        case,
        noise=case.sigma,
        regulariser="seed",
        optimiser=optimiser,
        iterations=ITERATIONS[optimiser],
        stopping=False,
    )
    seeds = np.stack([oracles.posterior_mode(case, i) for i in range(3)])
    np.testing.assert_allclose(found.seed, seeds, atol=1e-4)
    np.testing.assert_allclose(found.image.flatten(1), images_of(case, seeds), atol=1e-4)


@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_the_mode_moves_with_the_noise_stated(sigma):
    case = oracles.problem(sigma=sigma, seed=1)
    found = solved(
        case, noise=sigma, regulariser="seed", optimiser="lbfgs", iterations=120, stopping=False
    )
    seeds = np.stack([oracles.posterior_mode(case, i) for i in range(3)])
    np.testing.assert_allclose(found.seed, seeds, atol=1e-4)


def test_the_mode_is_met_in_single_precision():
    case = oracles.problem()
    found = solved(
        case,
        torch.float32,
        noise=case.sigma,
        regulariser="seed",
        optimiser="lbfgs",
        iterations=60,
        stopping=False,
    )
    assert found.image.dtype == torch.float32
    seeds = np.stack([oracles.posterior_mode(case, i) for i in range(3)])
    np.testing.assert_allclose(found.seed, seeds, atol=5e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_constrained_form_solves_the_secular_equation(seed):
    case = oracles.problem(seed=seed)
    found = solved(case, method="constrained", regulariser="seed", noise=case.sigma)
    m = case.y.shape[1]
    for i in range(3):
        expected = oracles.constrained_mode(case, i)
        assert expected is not None
        np.testing.assert_allclose(found.seed[i], expected, atol=1e-4)
        within = float(found.residual[i]) ** 2 * m
        assert within <= m * case.sigma**2 * (1 + 1e-4) + 1e-9


@pytest.mark.parametrize("sigma", [0.1, 0.03])
def test_a_small_noise_level_takes_more_steps_to_the_same_answer(sigma):
    """The default number of steps is for images, and ends before 1e-4 on some of these."""
    case = oracles.problem(sigma=sigma, seed=1, rows=4, seeds=8, pixels=10)
    found = solved(
        case,
        method="constrained",
        regulariser="seed",
        noise=sigma,
        iterations=1000,
        evaluations=5000,
    )
    for i in range(3):
        np.testing.assert_allclose(found.seed[i], oracles.constrained_mode(case, i), atol=1e-4)


def test_a_seed_of_zero_that_fits_is_the_constrained_answer():
    case = oracles.problem(sigma=0.3, seed=3)
    mean = case.operator @ case.mean
    case = oracles.LinearGaussian(
        case.matrix, case.mean, case.operator, 0.3, np.tile(mean + 0.1, (2, 1)), case.truth[:2]
    )
    assert np.array_equal(oracles.constrained_mode(case, 0), np.zeros(5))
    found = solved(case, method="constrained", regulariser="seed", noise=0.3)
    np.testing.assert_allclose(found.seed, np.zeros((2, 5)), atol=1e-3)


def test_a_bound_out_of_reach_is_said_and_the_nearest_fit_comes_back():
    case = oracles.problem(rows=8, seeds=2, sigma=0.4, seed=4)
    case = oracles.LinearGaussian(case.matrix, case.mean, case.operator, 0.01, case.y, case.truth)
    assert all(oracles.constrained_mode(case, i) is None for i in range(3))
    found = solved(case, method="constrained", regulariser="seed", noise=0.01)
    for i in range(3):
        least = np.linalg.lstsq(case.b, case.left(i), rcond=None)[0]
        reached = float(found.residual[i]) ** 2 * 8
        assert reached <= 1.1 * case.squares(least, i)
        assert reached >= 0.999 * case.squares(least, i)
    assert torch.isfinite(found.image).all()
    said = found.status + " ".join(found.why)
    assert "0.01" in said or "not" in said.lower()


def blind_parts(dtype=torch.float64):
    rng = np.random.default_rng(7)
    matrix, mean = rng.normal(size=(6, 2)), 2.0 + rng.normal(size=6)
    first, second = rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    truth = mean + rng.normal(size=(2, 2)) @ matrix.T
    y = truth @ (first + 0.7 * second).T + 0.2 * rng.normal(size=(2, 5))
    case = oracles.LinearGaussian(matrix, mean, first, 0.2, y, truth)
    return case, first, second, torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)


def test_a_shared_unknown_of_a_module_is_the_joint_mode():
    case, first, second, a0, a1 = blind_parts()
    u, seeds, _ = oracles.blind_mode(
        case.y, case.matrix, case.mean, lambda v: first + v * second, 0.2, np.linspace(-3, 3, 601)
    )
    module = Mixture(a0, a1, 0.4)
    found = restore(
        measured(case),
        module,
        Plain(case),
        noise=0.2,
        regulariser="seed",
        optimiser="adam",
        iterations=800,
        stopping=False,
    )
    np.testing.assert_allclose(found.seed, seeds, atol=1e-3)
    assert found.unknowns is not None
    np.testing.assert_allclose(np.ravel(found.unknowns)[0], u, atol=1e-3)


@pytest.mark.parametrize("options", [{"loss": "robust"}, {"copies": 2}])
def test_a_shared_unknown_moves_whatever_the_loss_and_the_copies(options):
    case, _, _, a0, a1 = blind_parts()
    found = restore(
        measured(case),
        Mixture(a0, a1, 0.0),
        Plain(case),
        noise=0.2,
        regulariser="seed",
        iterations=300,
        stopping=False,
        **options,
    )
    assert found.unknowns is not None
    assert abs(np.ravel(found.unknowns)[0]) > 0.1  # from 0; the truth is 0.7


@pytest.mark.parametrize("options", [{"optimiser": "lbfgs"}, {"method": "constrained"}])
def test_a_solver_of_separate_problems_says_that_it_cannot_share(options):
    case, _, _, a0, a1 = blind_parts()
    with pytest.raises(sp.DataError, match="adam"):
        restore(measured(case), Mixture(a0, a1, 0.4), Plain(case), noise=0.2, **options)


def test_one_unknown_per_image_is_the_mode_of_each_image():
    case, first, second, a0, a1 = blind_parts()
    found = restore(
        measured(case),
        Separate(a0, a1, 0.6),
        Plain(case),
        noise=0.2,
        regulariser="seed",
        optimiser="lbfgs",
        iterations=300,
        stopping=False,
    )
    for i in range(2):
        u, seeds, _ = oracles.blind_mode(
            case.y[i : i + 1],
            case.matrix,
            case.mean,
            lambda v: first + v * second,
            0.2,
            np.linspace(-3, 3, 601),
        )
        np.testing.assert_allclose(found.seed[i], seeds[0], atol=1e-3)
        np.testing.assert_allclose(found.unknowns[i, 0], u, atol=1e-3)


def test_residuals_are_root_mean_squares_in_the_units_of_y():
    case = oracles.problem(sigma=0.3)
    found = solved(case, noise=0.3, optimiser="lbfgs", iterations=5, stopping=False)
    y = case.y - np.asarray(found.image.flatten(1)) @ case.operator.T
    np.testing.assert_allclose(found.residual, np.sqrt((y**2).mean(axis=1)), rtol=1e-10)
