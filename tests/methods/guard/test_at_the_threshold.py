"""The method acts at the window's threshold, no harder than its bound; small parts of the guard."""

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.guarded_program import LOUDEST
from setpoint.methods.guard.operating_point import NEWEST, followed, operating_point
from setpoint.methods.guard.recent_rows import ObservedRows
from setpoint.methods.guard.window_decisions import cell_of
from setpoint.methods.guard.window_figures import block_cells, figures

FLOOR = "maximize recall subject to precision >= 0.5"
CELLS = Cells(sp.Task.binary())


def fed(goal, method, shift, steps=100, seed=0):
    """A loss after steps on scores around ``shift``, so that its threshold is far from 0."""
    loss = sp.GoalLoss(goal, method)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        y = (rng.random(64) < 0.2).astype(np.float32)
        z = (rng.normal(size=64) + 2 * y + shift).astype(np.float32)
        logits = torch.from_numpy(z).requires_grad_()
        loss(logits, torch.from_numpy(y)).backward()
    return loss


def pulls(loss, z, y):
    """The method's own part of the gradient of rows: the whole less cross-entropy's part."""
    leaf = torch.tensor(z, dtype=torch.float32).requires_grad_()
    target = torch.tensor(y, dtype=torch.float32)
    loss(leaf, target).backward()
    plain = (torch.sigmoid(leaf.detach()) - target) / len(z)
    return (leaf.grad - (1 - (1 - loss.program.anchor)) * plain).numpy()


@pytest.mark.parametrize("shift", [-4.0, 3.0])
def test_a_soft_method_pulls_rows_at_the_threshold_hardest(shift):
    loss = fed(FLOOR, "soft-set", shift)
    theta = float(loss.program.threshold)
    assert abs(theta) > 1.5
    z = np.array([theta, theta - 3, theta + 3, 0.0])
    pull = np.abs(pulls(loss, z, np.array([1.0, 1.0, 1.0, 1.0])))
    assert pull[0] > 2 * max(pull[1], pull[2])
    assert pull[0] > pull[3]


@pytest.mark.parametrize("method", ["soft-set", "costs", "exact", "lagrangian"])
@pytest.mark.parametrize("goal", [FLOOR, "maximize f1", "minimize fnr subject to fpr <= 0.01"])
@pytest.mark.parametrize("shift", [-4.0, 0.0, 4.0])
def test_no_row_is_pulled_harder_than_so_many_times_as_by_cross_entropy_there(method, goal, shift):
    loss = fed(goal, method, shift)
    theta = float(loss.program.threshold)
    z = np.tile(np.linspace(theta - 5, theta + 5, 40), 2)
    y = np.repeat([0.0, 1.0], 40)
    at_threshold = np.abs(1 / (1 + np.exp(theta - z)) - y) / len(z)
    own = np.abs(pulls(loss, z, y))
    assert (own <= (1 - loss.program.anchor) * LOUDEST * at_threshold * 1.001 + 1e-6).all()


@pytest.mark.parametrize("method", ["soft-set", "costs", "exact"])
def test_the_prices_of_the_window_reach_the_method(method):
    loss = fed(FLOOR, method, -1.0)
    program = loss.program
    assert float(program.price_now[0]) > 0
    state = program.inner.dual_state(program.price_now.numpy())
    torch.testing.assert_close(loss.multipliers.double(), torch.as_tensor(state).double())


def test_a_threshold_stays_where_the_newest_rows_are_decided_like_the_others():
    scores = np.random.default_rng(0).normal(size=8 * NEWEST)
    assert followed(1.0, scores) == 1.0
    assert followed(99.0, scores) == 99.0
    assert followed(1.0, scores[: 4 * NEWEST - 1] - 9) == 1.0  # too few to tell


@pytest.mark.parametrize("shift", [-2.0, 1.0])
def test_a_threshold_follows_the_newest_rows_where_they_are_decided_otherwise(shift):
    scores = np.random.default_rng(1).normal(size=8 * NEWEST)
    scores[-NEWEST:] += shift
    moved = followed(1.0, scores)
    share = np.mean(scores >= 1.0)
    assert np.mean(scores[-NEWEST:] >= moved) == pytest.approx(share, abs=2 / NEWEST)
    assert (moved < 1.0) == (shift < 0)


def test_a_row_at_the_threshold_is_decided_positive():
    rows = ObservedRows(np.array([0.5, 0.4]), np.ones(2), np.ones(2), np.zeros(2, int))
    assert cell_of(CELLS, rows, 0.5).tolist() == [3, 2]


def test_the_margin_counts_weights_as_so_many_rows():
    """One row of 200 with nearly all the weight leaves next to nothing to be sure by."""
    rng = np.random.default_rng(2)
    y = (rng.random(4_000) < 0.3).astype(float)
    scores = rng.normal(size=4_000) + 1.5 * y
    weight = np.where(np.arange(4_000) % 20 == 0, 1.0, 1e-6)
    lowered = Lowered(sp.Goal.parse("maximize recall subject to precision >= 0.6"), CELLS)
    heavy = weight > 0.5
    place = np.zeros(4_000, int)
    every = operating_point(lowered, ObservedRows(scores, y, weight, place), 1.5)
    few = ObservedRows(scores[heavy], y[heavy], weight[heavy], place[heavy])
    alone = operating_point(lowered, few, 1.5)
    without = operating_point(lowered, few, 0.0)
    assert every.cells[1] == pytest.approx(alone.cells[1], abs=0.02)
    assert alone.cells[1] < without.cells[1] - 0.05


def figure_of(scores, y):
    place = (2 * y + (scores >= 0)).astype(np.intp)
    goal = sp.Goal.parse("maximize recall subject to precision >= 0.6, fpr <= 0.5")
    blocks = block_cells(place, np.ones(len(y)), 4)
    return figures(Lowered(goal, CELLS), goal, blocks, len(y))


def test_a_trend_makes_an_interval_wider_than_the_same_blocks_in_no_order():
    rng = np.random.default_rng(3)
    widths = []
    for _ in range(20):
        y = rng.random(4_096) < 0.5
        drift = np.repeat(np.linspace(-0.8, 0.8, 16), 256)
        scores = rng.normal(size=4_096) + drift
        rising = figure_of(scores, y)[0]
        order = np.concatenate(
            np.arange(4_096).reshape(16, 256)[
                [7, 9, 2, 13, 5, 10, 0, 15, 12, 3, 8, 6, 14, 1, 11, 4]
            ]
        )
        mixed = figure_of(scores[order], y[order])[0]
        widths.append((rising.high - rising.low, mixed.high - mixed.low))
    rising, mixed = np.mean(widths, 0)
    assert rising > 1.3 * mixed


def test_what_is_certain_has_its_whole_interval_on_one_side():
    rng = np.random.default_rng(4)
    y = rng.random(8_000) < 0.5
    scores = rng.normal(size=8_000) + 4 * y - 2  # precision about .98, fpr about .02
    _, (floor, cap) = figure_of(scores, y)
    assert floor.held
    assert floor.certain
    assert cap.certain
    few = slice(0, 12)
    _, (floor, _) = figure_of(scores[few] * 0 + 1, np.arange(12) < 8)  # 8 of 12
    assert floor.held
    assert not floor.certain
