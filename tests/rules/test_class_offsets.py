"""Class offsets: the sweep is exact, the search is sound, the shrinkage guards small classes."""

import itertools

import numpy as np
import pytest

import setpoint as sp
from setpoint.expressions import Domain, take_in
from setpoint.rules.class_offsets import OffsetRows, OffsetSweep, decide_classes


def problem(seed, n=60, classes=3):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    scores = random.normal(size=(n, classes)) + np.eye(classes)[y]
    return y, scores, random.uniform(0.5, 2, n)


@pytest.mark.parametrize("seed", range(10))
def test_the_sweep_reads_what_decisions_give(seed):
    y, scores, weight = problem(seed)
    columns = take_in(sp.Task.multiclass([0, 1, 2]), y, scores=scores, sample_weight=weight)
    offsets = np.array([0.2, -0.3, 0.0])
    for text in (
        "macro(f1)",
        "accuracy",
        'worst(recall, by="class")',
        "mcc",
        "micro(precision)",
        "precision.of(1)",
    ):
        ground = sp.metric(text).expand(Domain(columns))
        for index in range(3):
            sweep = OffsetSweep(OffsetRows(columns), offsets, index)
            env = {leaf: sweep.state(leaf, 0, sweep.size) for leaf in ground.leaves()}
            values = np.broadcast_to(ground.read(env).value, sweep.size)
            for i in range(0, sweep.size, 7):
                moved = offsets.copy()
                moved[index] = sweep.offsets[i]
                decided = decide_classes(columns, moved).decided
                exact = sp.metric(text)(y, decided, weight, task=sp.Task.multiclass([0, 1, 2]))
                assert values[i] == pytest.approx(exact, abs=1e-12)


def test_offsets_mend_a_shifted_score():
    y, scores, _ = problem(0, n=600)
    shifted = scores + np.array([2.0, 0.0, 0.0])
    argmax = sp.tune("maximize macro(f1)", y, shifted, task="multiclass", kind="argmax")
    rule = sp.tune("maximize macro(f1)", y, shifted, task="multiclass")
    honest = sp.tune("maximize macro(f1)", y, scores, task="multiclass", kind="argmax")
    assert rule.value > argmax.value + 0.05
    assert rule.value > honest.value - 0.03
    assert sp.macro(sp.f1)(y, rule.decide(shifted), task="multiclass") == rule.value


def test_offsets_come_near_a_grid_search():
    y, scores, _ = problem(1, n=80)
    task = sp.Task.multiclass([0, 1, 2])
    rule = sp.tune("maximize macro(f1)", y, scores - [0, 1.0, 0], task=task)
    grid = np.linspace(-2, 2, 21)
    best = max(
        sp.macro(sp.f1)(y, (scores - [0, 1.0, 0] + [0, a, b]).argmax(1), task=task)
        for a, b in itertools.product(grid, grid)
    )
    assert rule.value >= best - 0.06  # shrunk on purpose


def test_shrinkage_does_not_hurt_fresh_rows_on_average():
    """Tiny rare classes overfit: shrunk offsets must not lose to the plain argmax."""
    gains = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        y = random.choice(6, 600, p=[0.6, 0.25, 0.08, 0.04, 0.02, 0.01])
        y[:6] = range(6)
        scores = (
            random.normal(size=(600, 6))
            + 1.5 * np.eye(6)[y]
            + np.log([0.6, 0.25, 0.08, 0.04, 0.02, 0.01])
        )
        task = sp.Task.multiclass(range(6))
        half = np.arange(600) < 300
        rule = sp.tune("maximize macro(f1)", y[half], scores[half], task=task)
        plain = scores[~half].argmax(1)
        tuned = rule.decide(scores[~half])
        gains.append(
            sp.macro(sp.f1)(y[~half], tuned, task=task)
            - sp.macro(sp.f1)(y[~half], plain, task=task)
        )
    assert np.mean(gains) > -0.01


def test_constraints_on_classes():
    y, scores, _ = problem(2, n=400)
    rule = sp.tune("maximize accuracy subject to recall.of(2) >= 0.9", y, scores, task="multiclass")
    assert rule.held[0].value == pytest.approx(
        sp.recall.of(2)(y, rule.decide(scores), task="multiclass")
    )
    assert rule.feasible
    plain = sp.tune("maximize accuracy", y, scores, task="multiclass", kind="argmax")
    before = sp.recall.of(2)(y, plain.decide(scores), task="multiclass")
    assert rule.held[0].value >= before


def test_the_seed_decides_the_folds_and_nothing_else():
    y, scores, _ = problem(3, n=200)
    rules = [
        sp.tune("maximize macro(f1)", y, scores, task="multiclass", random_state=4)
        for _ in range(2)
    ]
    assert rules[0] == rules[1]


@pytest.mark.parametrize("seed", range(3))
def test_ridges_are_crossed_and_the_order_of_columns_says_nothing(seed):
    """The worst class is a ridge for one offset at a time; a grid of 31 × 31 must not do better."""
    random = np.random.default_rng(seed)
    y = random.choice(3, 503, p=[0.6, 0.3, 0.1])  # no multiple of the folds
    scores = random.normal(size=(503, 3)) + np.eye(3)[y] + np.log([0.6, 0.3, 0.1])
    grid = np.linspace(-4, 4, 31)

    def worst(offsets):
        decided = (scores + offsets).argmax(1)
        return min(np.mean(decided[y == c] == c) for c in range(3))

    best = max(worst(np.array([0, a, b])) for a, b in itertools.product(grid, grid))
    task = sp.Task.multiclass([0, 1, 2])
    assert sp.tune('maximize worst(recall, by="class")', y, scores, task=task).value >= best - 1e-12
    goal = f'maximize macro(f1) subject to worst(recall, by="class") >= {best - 0.05}'
    found = {
        (rule.feasible, round(rule.value, 9))
        for order in itertools.permutations(range(3))
        for rule in [sp.tune(goal, y, scores[:, list(order)], task=sp.Task.multiclass(order))]
    }
    assert len(found) == 1
    assert found.pop()[0]


def test_what_a_search_did_not_see_is_not_claimed():
    y, scores, _ = problem(5, n=200)
    goal = 'maximize accuracy subject to worst(recall, by="class") >= 0.99'
    rule = sp.tune(goal, y, scores, task="multiclass")
    assert not rule.feasible
    assert "no candidate" not in rule.sentence()
    assert "the search did not see every rule" in rule.sentence()
