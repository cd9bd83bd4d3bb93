"""Intervals of a window: right for rows of one model, wider for rows of several."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import f1_score, precision_score, recall_score

import setpoint as sp
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.window_figures import BLOCKS, block_cells, figures

GOAL = sp.Goal.parse("maximize recall subject to precision >= 0.7, fpr <= 0.2")
LOWERED = Lowered(GOAL, Cells(sp.Task.binary()))


def of(z, y, threshold=0.0):
    decided = z >= threshold
    blocks = block_cells((2 * y + decided).astype(np.intp), np.ones(len(y)), 4)
    return figures(LOWERED, LOWERED.goal, blocks, len(y))


def drawn(rng, n, shift=0.0):
    y = rng.random(n) < 0.3
    return rng.normal(size=n) + 2 * y - 1 + shift, y


def test_values_are_those_of_scikit_learn():
    z, y = drawn(np.random.default_rng(0), 3_000)
    objective, (floor, cap) = of(z, y)
    assert objective.value == pytest.approx(recall_score(y, z >= 0))
    assert floor.figure.value == pytest.approx(precision_score(y, z >= 0))
    assert cap.figure.value == pytest.approx(np.mean(z[~y] >= 0))
    assert floor.held == (precision_score(y, z >= 0) >= 0.7)
    f1 = Lowered(sp.Goal.parse("maximize f1"), Cells(sp.Task.binary()))
    blocks = block_cells((2 * y + (z >= 0)).astype(np.intp), np.ones(len(y)), 4)
    assert figures(f1, f1.goal, blocks, len(y))[0].value == pytest.approx(f1_score(y, z >= 0))


def test_blocks_hold_all_rows_in_their_order():
    place = np.repeat(np.arange(4), 40)
    blocks = block_cells(place, np.ones(160), 4)
    assert blocks.shape == (BLOCKS, 4)
    assert blocks.sum() == 160
    assert (np.diff(blocks @ np.arange(4)) >= 0).all()
    assert block_cells(place[:3], np.ones(3), 4).shape == (3, 4)


def test_intervals_of_independent_rows_cover_at_least_as_often_as_they_say():
    """True values from the normal distribution; 400 windows of 2,000 rows."""
    tpr, fpr = norm.sf(-1), norm.sf(1)
    truth = (tpr, 0.3 * tpr / (0.3 * tpr + 0.7 * fpr), fpr)
    rng = np.random.default_rng(1)
    covered, widths = np.zeros((400, 3)), np.zeros((400, 3))
    for i in range(400):
        objective, constraints = of(*drawn(rng, 2_000))
        for j, figure in enumerate((objective, *(c.figure for c in constraints))):
            covered[i, j] = figure.low <= truth[j] <= figure.high
            widths[i, j] = figure.high - figure.low
    assert (covered.mean(0) >= 0.94).all()
    plain = 2 * 1.96 * np.sqrt(tpr * (1 - tpr) / (0.3 * 2_000))
    assert widths[:, 0].mean() < 2.5 * plain  # the price of three looks at few blocks


def test_rows_whose_scores_move_make_the_interval_wider():
    rng = np.random.default_rng(2)
    steady, moving, rising = [], [], []
    for _ in range(20):
        steady.append(of(*drawn(rng, 4_096))[0])
        jumps = np.repeat(rng.normal(0, 0.5, 16), 256)
        z, y = drawn(rng, 4_096)
        moving.append(of(z + jumps, y)[0])
        rising.append(of(z + np.linspace(-1, 1, 4_096), y)[0])

    def width(found):
        return np.mean([f.high - f.low for f in found])

    assert width(moving) > 2 * width(steady)
    assert width(rising) > 2 * width(steady)


def test_an_empty_rate_is_not_held_and_its_interval_stays_within_its_range():
    z, y = drawn(np.random.default_rng(3), 500)
    _, (floor, cap) = of(z, y, threshold=99.0)
    assert np.isnan(floor.figure.value)
    assert not floor.held
    assert 0 <= floor.figure.low <= floor.figure.high <= 1
    assert cap.held
    assert cap.figure.value == 0
