"""The best of several candidates, and the best mixture of them, against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint._core.errors import DataError
from setpoint.solvers import best_feasible, best_mixture

FAST = settings(max_examples=50, deadline=None)


def test_a_mixture_closes_the_duality_gap():
    """−x² over [−1, 1], x = 0 asked for.

    The only x that keeps the equation has f = 0; half of −1
    and half of 1 keep it in the mean with f = −1, which is the dual's value.
    """
    xs = np.linspace(-1, 1, 41)
    objectives, violations = -(xs**2), xs[:, None]
    single = best_feasible(objectives, violations, 1e-9, (True,))
    assert objectives[single] == pytest.approx(0)
    p = best_mixture(objectives, violations, 0.0, (True,))
    assert np.count_nonzero(p) <= 2
    np.testing.assert_allclose(p[[0, -1]], 0.5)
    assert p @ objectives == pytest.approx(-1)


def corners(f, v, tolerance):
    """The best mixture by brute force: every set of 1 + m candidates, its constraints solved."""
    count, m = v.shape
    best = np.inf
    for size in range(1, m + 2):
        for chosen in itertools.combinations(range(count), size):
            for tight in itertools.combinations(range(m), size - 1):
                rows = np.r_[np.ones((1, size)), v[np.ix_(chosen, tight)].T]
                right = np.r_[1.0, np.full(size - 1, tolerance)]
                if abs(np.linalg.det(rows)) < 1e-10:
                    continue
                p = np.linalg.solve(rows, right)
                if p.min() >= -1e-9 and (p @ v[list(chosen)] <= tolerance + 1e-9).all():
                    best = min(best, p @ f[list(chosen)])
    return best


@FAST
@given(st.integers(1, 6), st.integers(1, 2), st.integers(0, 2**32 - 1))
def test_the_mixture_against_brute_force(count, m, seed):
    rng = np.random.default_rng(seed)
    f, v = rng.normal(size=count), rng.normal(size=(count, m))
    p = best_mixture(f, v, 0.05)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    assert np.count_nonzero(p) <= m + 1
    best = corners(f, v, 0.05)
    if np.isfinite(best):
        assert (p @ v).max() <= 0.05 + 1e-7
        assert p @ f == pytest.approx(best, abs=1e-6)
        index = best_feasible(f, v, 0.05)
        if (v[index] <= 0.05).all():
            assert p @ f <= f[index] + 1e-9
    else:  # then no mixture is broken less
        others = rng.dirichlet(np.ones(count), 200) @ v
        assert (p @ v).max() <= others.max(1).min() + 1e-6


@FAST
@given(st.integers(1, 8), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_the_best_that_keeps_the_constraints(count, m, seed):
    rng = np.random.default_rng(seed)
    f, v = rng.normal(size=count), rng.normal(size=(count, m))
    index = best_feasible(f, v, 0.1)
    held = [i for i in range(count) if (v[i] <= 0.1).all()]
    if held:
        assert f[index] == min(f[i] for i in held)
    else:
        assert v[index].max() == v.max(1).min()


def test_odd_candidates_are_sentences():
    for f, v in (([], np.zeros((0, 1))), ([1.0], [[1.0], [2.0]]), ([np.nan], [[1.0]])):
        with pytest.raises(DataError):
            best_mixture(f, v)
    with pytest.raises(DataError, match="marks"):
        best_mixture([1.0], [[1.0]], equal=(True, False))
