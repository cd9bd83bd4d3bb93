"""Duals: simplexes stay simplexes, stationary vectors are stationary, arrays and tensors agree."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from setpoint._core.errors import KindError
from setpoint.programs import DUALS, Additive, External, Swap, dual
from setpoint.programs.duals import FLOOR, floored, one_sided, stationary

FAST = settings(max_examples=60, deadline=None)
EQUALS = st.lists(st.booleans(), min_size=1, max_size=4).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)


def walked(rule, equal, seed, steps=20, size=2.0):
    """States on the way through random violations."""
    rng = np.random.default_rng(seed)
    state = rule.start(equal)
    for _ in range(steps):
        yield state
        state = rule.step(state, size * rng.normal(size=len(equal)), rng.uniform(), equal)
    yield state


@FAST
@given(EQUALS, SEEDS, st.floats(0.1, 100))
def test_additive_multipliers_stay_in_their_ball(equal, seed, rate):
    rule = Additive(rate, radius=3.0)
    for state in walked(rule, equal, seed):
        top, held = rule.weights(state, equal)
        assert top == 1
        assert np.abs(held).max() <= 3
        assert (held[~np.array(equal)] >= 0).all()


@FAST
@given(EQUALS, SEEDS, st.floats(0.1, 1000))
def test_weights_stay_on_the_floored_simplex(equal, seed, rate):
    size = 1 + len(equal) + sum(equal)
    for state in walked(External(rate), equal, seed):
        assert state.shape == (size,)
        assert state.sum() == pytest.approx(1)
        assert state.min() >= FLOOR / size * (1 - 1e-12)


@FAST
@given(EQUALS, SEEDS, st.floats(0.1, 1000))
def test_the_matrix_stays_left_stochastic_and_its_vector_stationary(equal, seed, rate):
    size = 1 + len(equal) + sum(equal)
    rule = Swap(rate)
    for state in walked(rule, equal, seed, steps=8):
        matrix = state.reshape(size, size)
        np.testing.assert_allclose(matrix.sum(0), 1)
        assert matrix.min() >= FLOOR / size * (1 - 1e-12)
        w = stationary(matrix)
        np.testing.assert_allclose(matrix @ w, w, atol=1e-12)
        assert w.sum() == pytest.approx(1)
        assert w.min() > 0
        values, vectors = np.linalg.eig(matrix)
        first = np.real(vectors[:, np.argmin(np.abs(values - 1))])
        np.testing.assert_allclose(w, first / first.sum(), atol=1e-9)


def test_the_slowest_matrix_there_can_be():
    """Two states that hardly mix: the stationary vector is still found, in float32 too."""
    low = FLOOR / 2
    matrix = np.array([[1 - low, 2 * low], [low, 1 - 2 * low]])
    np.testing.assert_allclose(stationary(matrix), [2 / 3, 1 / 3], atol=1e-9)
    narrow = stationary(torch.tensor(matrix, dtype=torch.float32))
    np.testing.assert_allclose(narrow, [2 / 3, 1 / 3], atol=1e-3)


@FAST
@given(st.integers(2, 6), SEEDS, st.floats(0.001, 0.15))
def test_flooring_is_the_projection_in_relative_entropy(size, seed, floor):
    """Against every set of weights that could lie on the floor."""
    weights = np.random.default_rng(seed).dirichlet(np.full(size, 0.3)) + 1e-9
    found = floored(weights, floor)
    assert found.sum() == pytest.approx(1)
    best = np.inf
    for k in range(size):
        for low in itertools.combinations(range(size), k):
            rest = np.setdiff1d(np.arange(size), low)
            w = np.full(size, floor)
            w[rest] = weights[rest] * (1 - k * floor) / weights[rest].sum()
            if w.min() >= floor - 1e-12:
                best = min(best, np.sum(w * np.log(w / weights)))
    assert np.sum(found * np.log(found / weights)) == pytest.approx(best, abs=1e-9)


def test_flooring_against_a_general_solver():
    weights, floor = np.array([0.9, 0.08, 0.015, 0.005]), 0.05
    answer = minimize(
        lambda w: np.sum(w * np.log(w / weights)),
        np.full(4, 0.25),
        bounds=[(floor, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )
    np.testing.assert_allclose(floored(weights, floor), answer.x, atol=1e-4)


@pytest.mark.parametrize("name", DUALS)
@pytest.mark.parametrize("equal", [(False,), (False, True), (True, True, False)])
def test_tensors_and_arrays_agree(name, equal):
    rule = dual(name, 1.5, 10.0)
    rng = np.random.default_rng(0)
    one = rule.start(equal)
    other = torch.tensor(one)
    for _ in range(10):
        v = rng.normal(size=len(equal))
        one, other = (
            rule.step(one, v, 0.3, equal),
            rule.step(other, torch.tensor(v), torch.tensor(0.3, dtype=torch.float64), equal),
        )
        np.testing.assert_allclose(other, one, atol=1e-12)
        for a, b in zip(rule.weights(one, equal), rule.weights(other, equal), strict=True):
            np.testing.assert_allclose(b, a, atol=1e-12)


@pytest.mark.parametrize("name", DUALS)
def test_a_broken_constraint_gets_dearer_and_a_held_one_cheaper(name):
    rule, equal = dual(name, 1.0, 50.0), (False, False)
    state = rule.start(equal)
    assert rule.weights(state, equal)[0] > 0.99, "nearly all weight is on the objective at first"
    for _ in range(60):
        state = rule.step(state, np.array([1.0, -1.0]), 1.0, equal)
    broken, kept = rule.weights(state, equal)[1]
    assert broken > 0.9
    assert kept < 0.01
    for _ in range(60):
        state = rule.step(state, np.array([-1.0, -1.0]), 1.0, equal)
    assert rule.weights(state, equal)[1][0] < broken / 5


@pytest.mark.parametrize("name", DUALS)
def test_an_equation_is_charged_on_either_side(name):
    rule, equal = dual(name, 1.0, 50.0), (True,)
    for sign in (1, -1):
        state = rule.start(equal)
        for _ in range(60):
            state = rule.step(state, np.array([sign * 1.0]), 1.0, equal)
        assert sign * rule.weights(state, equal)[1][0] > 0.9


def test_multiplicative_weights_have_no_regret():
    """Σ v·w comes within 2 √(T log k) of the best fixed weight, whatever the violations are."""
    rng, equal, rounds = np.random.default_rng(1), (False,) * 3, 2000
    rule = External(rate=np.sqrt(np.log(4) / rounds))
    payoffs = np.sign(rng.normal(0.05, 1, (rounds, 3)))
    state, gained = rule.start(equal), 0.0
    for v in payoffs:
        gained += state[1:] @ v
        state = rule.step(state, v, 1.0, equal)
    best = max(0.0, *payoffs.sum(0))
    # it starts with nearly all weight on the objective, which costs log(1000 k) in place of log k
    assert best - gained <= 2 * np.sqrt(rounds * np.log(4)) + np.log(4000) / rule.rate
    assert best > 50, "there was something to gain"


def test_one_sided():
    x = np.array([-1.0, -2.0, 3.0])
    np.testing.assert_array_equal(one_sided(x, (False, True, False)), [0, -2, 3])
    np.testing.assert_array_equal(one_sided(torch.tensor(x), (False, False, False)), [0, 0, 3])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("addtive", 1.0, 1.0), "did you mean additive"),
        ((3, 1.0, 1.0), "choose from"),
        (("external", -1.0, 1.0), "rate"),
        (("swap", float("nan"), 1.0), "rate"),
        (("additive", 1.0, 0.0), "radius"),
    ],
)
def test_odd_settings_are_sentences(given, words):
    with pytest.raises(KindError, match=words):
        dual(*given)
