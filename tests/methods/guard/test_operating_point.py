"""The operating point of rows: equal to the exact search, with a margin that formulas give."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.operating_point import intercept, operating_point, price_at
from setpoint.methods.guard.recent_rows import ObservedRows

GOALS = (
    "maximize f1",
    "maximize recall subject to precision >= 0.6",
    "minimize fnr subject to fpr <= 0.1",
    "maximize precision subject to recall >= 0.7",
    "maximize recall subject to precision >= 0.5, fpr <= 0.3",
)


def lowered(text):
    return Lowered(sp.Goal.parse(text).lowered, Cells(sp.Task.binary()))


def point_of(goal, scores, y, weight, margin):
    rows = ObservedRows(scores, y, weight, np.zeros(len(y), int))
    return operating_point(lowered(goal), rows, margin)


def drawn(seed, n=120, ties=False):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(float)
    scores = rng.normal(size=n) + 1.5 * y
    return (np.round(scores, 1) if ties else scores), y, rng.choice([1.0, 2.0], n)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(6))
def test_without_a_margin_it_is_the_exact_search(goal, seed):
    scores, y, weight = drawn(seed, ties=seed % 2 == 0)
    point = point_of(goal, scores, y, weight, 0.0)
    best = sp.tune(goal, y, scores, sample_weight=weight)
    rule = sp.tune(goal, y, scores, sample_weight=weight)
    decided = scores >= point.threshold
    value = sp.metric(goal.split()[1])(y, decided, sample_weight=weight)
    assert best.feasible
    assert point.share == 0.0 or goal == "maximize f1"
    assert value == pytest.approx(rule.value, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_margin_of_a_precision_floor_is_its_standard_error(seed):
    scores, y, weight = drawn(seed, 2_000)
    ones = np.ones_like(weight)
    floor, z = 0.6, 2.0
    goal = f"maximize recall subject to precision >= {floor}"
    point = point_of(goal, scores, y, ones, z)
    decided = scores >= point.threshold
    n, precision = decided.sum(), y[decided].mean()
    assert point.share == 1.0
    error = np.sqrt(floor * (1 - floor) / n)
    assert precision - floor == pytest.approx(z * error, rel=0.35)
    assert precision - floor > 0.8 * z * error


def test_what_no_threshold_keeps_is_said_and_broken_least():
    scores, y, weight = drawn(0)
    point = point_of(
        "maximize recall subject to precision >= 0.999, recall >= 0.99",
        *(scores, y, np.ones_like(weight)),
        1.0,
    )
    assert point.share == -1.0


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 0.85), st.floats(0.3, 0.95), st.integers(0, 99))
def test_the_price_of_a_floor_is_the_one_at_which_the_threshold_is_best(t, floor, seed):
    cells = np.random.default_rng(seed).random(4) + 0.05
    cells /= cells.sum()
    goal = lowered(f"maximize recall subject to precision >= {floor}")
    (price,) = price_at(goal, cells, t, 100.0)
    assume(abs(t - floor) > 1e-6)
    wanted = t / (floor - t) if t < floor else np.inf
    assert price == pytest.approx(np.clip(wanted, 1e-3, 100.0), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 0.95), st.floats(0.01, 0.5), st.integers(0, 99))
def test_the_price_of_a_cap_makes_the_gains_balance(t, cap, seed):
    """Of fnr and fpr: a positive gains 1/P, a negative costs λ/N, so λ = t N / ((1 − t) P)."""
    cells = np.random.default_rng(seed).random(4) + 0.05
    cells /= cells.sum()
    (price,) = price_at(lowered(f"minimize fnr subject to fpr <= {cap}"), cells, t, 100.0)
    negatives, positives = cells[:2].sum(), cells[2:].sum()
    wanted = t / (1 - t) * negatives / positives
    assert price == pytest.approx(np.clip(wanted, 1e-3, 100.0), rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(-8, 8))
def test_the_intercept_calibrates_in_the_mean(seed, shift):
    scores, y, weight = drawn(seed)
    y[:2] = 0, 1
    a = intercept(scores + shift, y, weight)
    p = 1 / (1 + np.exp(-(scores + shift + a)))
    assert weight @ p / weight.sum() == pytest.approx(weight @ y / weight.sum(), abs=1e-6)
