"""Seeds on the sphere of radius √d: projected there, or drawn there."""

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime
from tests.restoration import oracles
from tests.restoration.linear_cases import Plain, measured, operator_of

from setpoint.restoration import restore


def solved(case, **options):
    return restore(
        measured(case),
        operator_of(case),
        Plain(case),
        noise=case.sigma,
        **({"stopping": False, "shell": None, "iterations": 200} | options),
    )


def norms(found):
    return found.seed.flatten(1).norm(dim=1)


@pytest.mark.parametrize(("optimiser", "iterations"), [("adam", 600), ("lbfgs", 100)])
def test_a_projected_run_ends_at_a_minimum_of_the_shell(optimiser, iterations):
    case = oracles.problem(seeds=4, rows=6, seed=11)
    found = solved(case, shell="project", optimiser=optimiser, iterations=iterations)
    np.testing.assert_allclose(norms(found), 2.0, rtol=1e-9)
    for i in range(3):
        z = np.asarray(found.seed[i])
        slope, curvature = oracles.shell_conditions(case, z, i)
        assert slope < 1e-3
        assert curvature > -1e-6
        assert case.squares(z, i) >= case.squares(oracles.shell_mode(case, i), i) - 1e-9


def test_from_near_the_best_point_of_the_shell_that_point_is_found():
    case = oracles.problem(seeds=4, rows=6, seed=11)
    best = np.stack([oracles.shell_mode(case, i) for i in range(3)])
    start = torch.tensor(best + 0.1 * np.random.default_rng(0).normal(size=best.shape))
    found = solved(case, shell="project", optimiser="lbfgs", iterations=200, start=start)
    np.testing.assert_allclose(found.seed, best, atol=1e-4)


def test_the_image_is_the_prior_at_the_projected_seed():
    case = oracles.problem(seeds=4, seed=12)
    found = solved(case, shell="project", iterations=40)
    np.testing.assert_allclose(Plain(case)(found.seed), found.image, atol=1e-12)


def test_a_penalty_draws_seeds_toward_the_shell():
    """Down from the best fit z₀: P(z) ≤ F(z₀) - F(z) + P(z₀) ≤ P(z₀), as F is least at z₀."""
    case = oracles.problem(seeds=4, rows=6, seed=11)
    best = np.stack([np.linalg.lstsq(case.b, case.left(i), rcond=None)[0] for i in range(3)])
    given = {"optimiser": "lbfgs", "iterations": 200, "start": torch.tensor(best)}
    free, drawn = solved(case, **given), solved(case, shell="penalty", **given)
    np.testing.assert_allclose(free.seed, best, atol=1e-5)
    far = np.abs(np.linalg.norm(best, axis=1) - 2.0)
    assert far.min() > 0.2  # there is something to be drawn
    assert (np.abs(np.asarray(norms(drawn)) - 2.0) < 0.9 * far).all()


def test_a_penalised_run_ends_where_the_penalised_objective_is_flat():
    """Finite differences of ‖r - B z‖²/(2σ²) + (‖z‖ - √d)², written out here."""
    case = oracles.problem(seeds=4, rows=6, seed=11)
    found = solved(case, shell="penalty", optimiser="lbfgs", iterations=300)
    for i in range(3):
        slope = approx_fprime(
            np.asarray(found.seed[i]),
            lambda z, i=i: (
                case.squares(z, i) / (2 * case.sigma**2) + (np.linalg.norm(z) - 2.0) ** 2
            ),
        )
        assert np.abs(slope).max() < 1e-3


def test_a_run_of_no_step_begins_on_the_shell():
    """Every iterate lies there, the first one included."""
    case = oracles.problem(seeds=4, seed=13)
    found = solved(case, shell="project", iterations=1)
    np.testing.assert_allclose(norms(found), 2.0, rtol=1e-9)


def test_seeds_that_are_images_have_their_own_norms():
    """‖z‖ is over all of one seed, not over its last axis, nor over the batch."""

    class Identity:
        shape = seed_shape = (1, 2, 3)
        range = (-10.0, 10.0)

        def __call__(self, z):
            return z

    y = torch.tensor(np.random.default_rng(5).normal(size=(3, 1, 2, 3)))
    found = restore(
        y,
        lambda x: x,
        Identity(),
        noise=0.1,
        shell="project",
        optimiser="lbfgs",
        iterations=60,
        stopping=False,
    )
    np.testing.assert_allclose(found.seed, oracles.to_shell(np.asarray(y)), atol=1e-4)
    np.testing.assert_allclose(found.image, oracles.to_shell(np.asarray(y)), atol=1e-4)


def test_a_shell_that_is_no_shell_is_refused():
    case = oracles.problem()
    with pytest.raises(ValueError, match="shell"):
        solved(case, shell="ball", iterations=2)
