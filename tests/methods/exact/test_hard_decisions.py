"""Hard rows, walks and monotone goals, against brute force and scikit-learn."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

import setpoint as sp
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.exact.hard_decisions import HardRows, walk
from setpoint.methods.exact.step_tie import directions

FPOR = "maximize recall subject to precision >= 0.8"
GOALS = [FPOR, "maximize precision subject to recall >= 0.6", "maximize f1", "maximize mcc"]
GROUPS = Task.binary(groups={"g": ["x", "y"]})
CLASSES = Task.multiclass(range(3))


def _rows(goal, task, z, y, weight=None, group=None):
    tensors = [None if x is None else torch.as_tensor(x) for x in (z, y, weight, group)]
    return HardRows(Goal.parse(goal).lowered, task, *tensors)


def _brute(hard, z, q):
    """The best rank over a point in every interval between neighbouring borders."""
    moving = np.abs(q) > 1e-9
    borders = np.unique(-z[moving] / q[moving])
    ends = np.concatenate([[borders[0] - 1], borders, [borders[-1] + 1]])
    middles = (ends[1:] + ends[:-1]) / 2
    return min(hard.rank(z + g * q) for g in middles)


@given(st.integers(0, 10_000), st.sampled_from(GOALS), st.booleans())
@example(2345, FPOR, False)  # most borders are 0, and beyond the last one it is best
@settings(max_examples=80, deadline=None)
def test_the_best_point_of_a_line_is_that_of_brute_force(seed, goal, weighted):
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 30))
    # differences of whole numbers over a few values: ties are common
    z, q = r.integers(-4, 5, n) + 0.0, r.integers(-2, 3, n) + 0.0
    y, w = (r.random(n) < 0.4).astype(float), r.random(n) + 0.1 if weighted else None
    if not np.abs(q).any():
        return
    hard = _rows(goal, Task.binary(), z, y, w)
    gamma, rank = hard.along(z, q)
    best = _brute(hard, z, q)
    assert tuple(rank) == pytest.approx(tuple(best), abs=1e-10)
    assert tuple(hard.rank(z + gamma * q)) == pytest.approx(tuple(rank), abs=1e-10)


@pytest.mark.parametrize("block", [2, 6, 14])
def test_blocks_of_a_line_give_what_the_whole_gives(block, monkeypatch):
    r = np.random.default_rng(7)
    z, q, y = r.normal(size=37), r.normal(size=37), (r.random(37) < 0.4).astype(float)
    hard = _rows(FPOR, Task.binary(), z, y)
    whole = hard.along(z, q)
    monkeypatch.setattr("setpoint.methods.exact.hard_decisions.BLOCK", block)
    assert hard.along(z, q) == whole


def test_a_line_of_groups_counts_each_group_apart():
    r = np.random.default_rng(0)
    z, q, y = r.normal(size=40), r.normal(size=40), (r.random(40) < 0.5).astype(float)
    goal = 'maximize f1 subject to gap(recall, by="g") <= 0.2'
    hard = _rows(goal, GROUPS, z, y, group=r.integers(0, 2, 40))
    gamma, rank = hard.along(z, q)
    assert tuple(rank) == pytest.approx(tuple(_brute(hard, z, q)), abs=1e-10)
    assert rank.feasible
    assert tuple(hard.rank(z + gamma * q)) == pytest.approx(tuple(rank), abs=1e-10)


def test_ranks_are_what_scikit_learn_says():
    r = np.random.default_rng(1)
    z, y, w = r.normal(size=200), (r.random(200) < 0.3).astype(float), r.random(200)
    d = z >= 0
    rank = _rows(FPOR, Task.binary(), z, y, w).rank(z)
    assert -rank.objective == pytest.approx(recall_score(y, d, sample_weight=w), abs=1e-7)
    lack = 0.8 - precision_score(y, d, sample_weight=w)
    assert rank.excess == pytest.approx(max(lack, 0), abs=1e-7)
    several = r.normal(size=(200, 3))
    c = r.integers(0, 3, 200)
    rank = _rows("maximize macro(f1)", CLASSES, several, c).rank(several)
    assert -rank.objective == pytest.approx(f1_score(c, several.argmax(1), average="macro"))


def test_nothing_decided_is_not_feasible():
    z = np.full(5, -1.0)
    assert not _rows(FPOR, Task.binary(), z, np.array([1.0, 0, 0, 1, 0])).rank(z).feasible


@pytest.mark.parametrize("goal", GOALS)
def test_a_walk_is_never_worse_and_says_what_the_weights_do(goal):
    r = np.random.default_rng(2)
    X, y = r.normal(size=(60, 3)) * [1, 50, 0.01] + 3, (r.random(60) < 0.4).astype(float)
    W = r.normal(size=(1, 4))
    at = lambda W: X @ W[0, :-1] + W[0, -1]  # noqa: E731
    hard = _rows(goal, Task.binary(), at(W), y)
    moved, rank = walk(hard, X, W, 200, 0)
    assert rank < hard.rank(at(W))
    assert tuple(hard.rank(at(moved))) == pytest.approx(tuple(rank), abs=1e-9)
    assert np.abs(moved).max() < 1e4 * np.abs(W).max()  # it does not grow from step to step
    again, _ = walk(hard, X, W, 200, 0)
    np.testing.assert_array_equal(moved, again)


def test_a_walk_of_several_classes_raises_macro_f1():
    r = np.random.default_rng(3)
    c = r.integers(0, 3, 90)
    X = r.normal(size=(90, 2)) + 1.2 * np.eye(3)[c][:, :2]
    W = r.normal(size=(3, 3))
    z = X @ W[:, :-1].T + W[:, -1]
    hard = _rows("maximize macro(f1)", CLASSES, z, c)
    moved, rank = walk(hard, X, W, 150, 0)
    z = X @ moved[:, :-1].T + moved[:, -1]
    assert -rank.objective == pytest.approx(f1_score(c, z.argmax(1), average="macro"))
    assert -rank.objective > 0.55


def test_a_walk_of_labels_moves_one_label_at_a_time():
    r = np.random.default_rng(4)
    X, y = r.normal(size=(50, 2)), (r.random((50, 3)) < 0.4).astype(float)
    y[:, 1] = X[:, 0] > 0.3
    W = r.normal(size=(3, 3))
    z = X @ W[:, :-1].T + W[:, -1]
    hard = _rows("maximize macro(f1)", Task.multilabel(["a", "b", "c"]), z, y)
    moved, rank = walk(hard, X, W, 200, 0)
    z = X @ moved[:, :-1].T + moved[:, -1]
    assert -rank.objective == pytest.approx(f1_score(y, z >= 0, average="macro"))


@pytest.mark.parametrize(
    ("goal", "task", "expected"),
    [
        (FPOR, Task.binary(), [-1, 1]),
        ("maximize precision subject to recall >= 0.8", Task.binary(), [-1, 1]),
        ("maximize f_beta(2)", Task.binary(), [-1, 1]),
        ("maximize mcc", Task.binary(), [-1, 1]),
        ("minimize cost(fp=1, fn=5)", Task.binary(), [-1, 1]),
        ("maximize min(precision, recall)", Task.binary(), [-1, 1]),
        ("maximize recall subject to positive_rate <= 0.1", Task.binary(), [-1, 0]),
        ("maximize recall subject to positive_rate == 0.1", Task.binary(), [0, 0]),
        ("maximize recall subject to fpr >= 0.1", Task.binary(), [1, 1]),
        ("maximize macro(f1)", CLASSES, [1, 1, 1]),
        ("maximize accuracy subject to precision.of(0) >= 0.9", CLASSES, [1, 1, 1]),
        ('maximize f1 subject to gap(recall, by="g") <= 0.1', GROUPS, [-1, 0, -1, 0]),
    ],
)
def test_which_way_a_goal_wants_memberships_to_move(goal, task, expected):
    found = directions(Lowered(Goal.parse(goal).lowered, Cells(task)))
    assert found.tolist() == expected


@given(st.integers(0, 10_000), st.sampled_from([sp.f1, sp.mcc, sp.g_mean]))
@settings(max_examples=40, deadline=None)
def test_what_is_monotone_is_never_worse_for_one_more_right_decision(seed, metric):
    r = np.random.default_rng(seed)
    n = int(r.integers(3, 15))
    y, d = r.integers(0, 2, n), r.integers(0, 2, n)
    if not (d != y).any() or y.min() == y.max():
        return
    better = d.copy()
    i = int(r.choice(np.flatnonzero(d != y)))
    better[i] = y[i]
    assert metric(y, better) >= metric(y, d) - 1e-12


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 100.0]), st.sampled_from([0, 64, 1e3]))
@settings(max_examples=40, deadline=None)
def test_the_threshold_is_that_of_tune_wherever_the_scores_lie(seed, scale, offset):
    r = np.random.default_rng(seed)
    y = (r.random(40) < 0.4).astype(float)
    z = ((y + r.normal(size=40)) * scale + offset).astype(np.float32)
    where, rank = _rows("maximize f1", Task.binary(), z, y).threshold(z.astype(float))
    assert -rank.objective == pytest.approx(sp.tune("maximize f1", y == 1, z).value)
    assert sp.f1(y == 1, (torch.tensor(z) >= where).numpy()) == pytest.approx(-rank.objective)
