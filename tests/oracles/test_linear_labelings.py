"""The truth that the exact method is held to, held itself to things known of it."""

from itertools import pairwise, product
from math import comb
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, precision_score, recall_score
from tests.oracles.linear_instances import GOALS, INSTANCES, instance, points
from tests.oracles.linear_labelings import (
    AccuracyAtPrecision,
    Fpor,
    Frop,
    MacroF1,
    Ofbs,
    reachable,
    reachable_classes,
)


@pytest.mark.parametrize(("n", "d"), [(4, 1), (8, 1), (5, 2), (8, 2), (6, 3), (8, 3)])
def test_points_in_general_position_have_as_many_labelings_as_cover_says(n, d):
    """2 Σ_{k ≤ d} C(n − 1, k): Cover, 1965."""
    found = {one.labels for one in reachable(points(n, d, "cloud", seed=1))}
    assert len(found) == 2 * sum(comb(n - 1, k) for k in range(d + 1))
    assert {(0,) * n, (1,) * n} <= found


@pytest.mark.parametrize("seed", range(4))
def test_on_a_line_a_labeling_is_a_cut(seed):
    x = points(7, 1, "grid", seed)[:, 0]
    cuts = np.r_[x.min() - 1, np.unique(x) + 0.5]
    truly = {tuple((side * (x - cut) > 0).astype(int)) for cut in cuts for side in (1, -1)}
    assert {one.labels for one in reachable(x[:, None])} == truly


def test_known_shapes():
    square = np.array([[0, 0], [1, 1], [0, 1], [1, 0]], float)
    assert len(reachable(square)) == 16 - 2  # not the two diagonals
    line = np.array([[0, 0], [1, 1], [2, 2]], float)
    assert len(reachable(line)) == 8 - 2  # not the middle alone
    twice = np.array([[0, 0], [0, 0], [1, 3]], float)
    assert {one.labels for one in reachable(twice)} == {(0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)}


@pytest.mark.parametrize("seed", range(4))
def test_three_classes_on_a_line_are_blocks(seed):
    """The upper envelope of three lines: each class on one stretch, in any order."""
    x = points(6, 1, "grid", seed)[:, 0]
    order = np.argsort(x, kind="stable")
    truly = set()
    for labels in product(range(3), repeat=6):
        sorted_ = [labels[i] for i in order]
        stretches = 1 + sum(a != b for a, b in pairwise(sorted_))
        alike = all(
            a == b for i, a in enumerate(labels) for j, b in enumerate(labels) if x[i] == x[j]
        )
        if alike and stretches == len(set(labels)):
            truly.add(labels)
    assert {one.labels for one in reachable_classes(x[:, None], 3)} == truly


@pytest.mark.parametrize("kind", ["cloud", "grid"])
def test_three_classes_in_the_plane(kind):
    """Whatever chance finds is reachable, and what is reachable has scores that show it."""
    X = points(6, 2, kind)
    found = reachable_classes(X, 3)
    labels = {one.labels for one in found}
    assert len(labels) == len(found)
    for one in found:
        assert tuple((X @ one.w + one.b).argmax(1)) == one.labels
    rng = np.random.default_rng(0)
    z = np.einsum("nd,kdc->knc", X, rng.normal(size=(20000, 2, 3))) + rng.normal(size=(20000, 1, 3))
    by_chance = {tuple(row) for row in z.argmax(2).tolist()}
    assert by_chance <= labels
    assert len(by_chance) > 0.5 * len(labels)


@pytest.mark.parametrize("goal", GOALS)
def test_values_are_those_of_scikit_learn(goal):
    for i in range(0, 40, 3):
        case = instance(goal, i)
        for one in case.reached[i % 5 :: 5]:
            given = (case.y, np.array(one.labels))
            with_weight: Any = {"sample_weight": case.weight, "zero_division": 0}
            precision = precision_score(*given, **with_weight)
            recall = recall_score(*given, **with_weight)
            found = case.value(one.labels)
            match case.wanted:
                case Fpor(alpha):
                    truly = recall if precision >= alpha - 1e-9 else None
                case Frop(alpha):
                    truly = precision if recall >= alpha - 1e-9 else None
                case Ofbs(beta):
                    truly = fbeta_score(*given, beta=beta, **with_weight)
            assert found == pytest.approx(truly, abs=1e-12)


def test_values_of_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    y, weight = np.array([0, 1, 2, 0, 1, 2]), np.array([1, 2, 0.5, 1, 1, 3])
    for labels in rng.integers(3, size=(40, 6)):
        key = tuple(labels.tolist())
        rest: Any = {"sample_weight": weight, "zero_division": 0}
        macro = f1_score(y, labels, average="macro", **rest)
        assert MacroF1()(key, y.tolist(), weight.tolist()) == pytest.approx(macro)
        value = AccuracyAtPrecision(1, 0.6)(key, y.tolist(), weight.tolist())
        precision = precision_score(y == 1, labels == 1, **rest)
        accuracy = accuracy_score(y, labels, sample_weight=weight)
        assert value == (pytest.approx(accuracy) if precision >= 0.6 - 1e-9 else None)


def test_instances_are_of_every_kind():
    """Feasible and not, perfect and not: else the comparisons below say little."""
    fpor = [instance("fpor", i).best for i in INSTANCES]
    assert sum(x is None for x in fpor) >= 5
    for goal in GOALS:
        found = [x for i in INSTANCES if (x := instance(goal, i).best) is not None]
        assert sum(x < 1 for x in found) >= 20
        assert len(set(found)) >= 10


@pytest.mark.parametrize("goal", GOALS)
def test_hard_instances_are_beyond_a_logistic_regression(goal):
    """Its score, cut wherever one likes, is worse: what training for the goal must make good."""
    for i in INSTANCES[40::4]:
        case = instance(goal, i)
        plain = LogisticRegression(C=1e3, max_iter=2000)
        plain.fit(case.X, case.y, sample_weight=case.weight)
        z = case.X @ plain.coef_[0]
        cut = [tuple((z >= at).astype(int).tolist()) for at in [*np.unique(z), np.inf]]
        values = [case.value(labels) for labels in cut]
        assert max((float(x) for x in values if x is not None), default=0) < case.best - 1e-9
