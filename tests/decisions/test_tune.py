"""`tune` against brute force over all thresholds."""

import itertools
import math

import numpy as np
import pytest
from tests.oracles.tune import METRICS12, SENSES, brute_groups, brute_tune, gap, on_group, pooled

import setpoint as sp

PAIRS = list(itertools.product(METRICS12, METRICS12))
PROBLEMS_PER_PAIR = 10
BOUNDS = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)


def problem(random):
    """A small problem with ties, weights half of the time, and both classes."""
    n = int(random.integers(2, 13))
    y = random.integers(0, 2, n)
    y[:2] = (0, 1)
    scores = random.integers(0, random.integers(1, 9) + 1, n) / 8
    if random.random() < 0.3:
        scores = random.normal(size=n)
    weight = None if random.random() < 0.5 else random.choice([0.25, 0.5, 1.0, 2.0, 3.0], n)
    return y, scores, weight


def constraint(random, name):
    op = str(random.choice([">=", "<=", "=="], p=[0.45, 0.45, 0.1]))
    low, high = sp.metric(name).interval()
    bound = float(random.choice(BOUNDS)) * (1 if math.isinf(high) else high)
    return op, max(bound, low)


def agree(rule, brute, weighted):
    assert rule.feasible == brute.feasible
    assert (rule.value if rule.value is not None else 0.0) == pytest.approx(brute.value, abs=1e-11)
    if not weighted:  # sums of weights round in another order, so equal thresholds may part
        assert rule.threshold == brute.threshold


@pytest.mark.parametrize("objective", METRICS12)
def test_every_pair_of_objective_and_constraint_equals_brute_force(objective):
    random = np.random.default_rng(list(METRICS12).index(objective))
    seen = {True: 0, False: 0}
    for held in METRICS12:
        for _ in range(PROBLEMS_PER_PAIR):
            y, scores, weight = problem(random)
            op, bound = constraint(random, held)
            sense = SENSES[objective] if random.random() < 0.8 else random.choice(["max", "min"])
            goal = sp.Goal.parse(f"{sense}imize {objective} subject to {held} {op} {bound!r}")
            rule = sp.tune(goal, y, scores, sample_weight=weight)
            brute = brute_tune(
                METRICS12[objective], sense, [(METRICS12[held], op, bound)], y, scores, weight
            )
            agree(rule, brute, weight is not None)
            seen[brute.feasible] += 1
    assert min(seen.values()) > 0


def test_at_least_two_thousand_problems_are_compared():
    assert len(PAIRS) * PROBLEMS_PER_PAIR >= 2000
    assert len(METRICS12) >= 12


@pytest.mark.parametrize("seed", range(200))
def test_several_constraints_equal_brute_force(seed):
    random = np.random.default_rng(1000 + seed)
    names = random.choice(list(METRICS12), 4)
    y, scores, weight = problem(random)
    held = [(name, *constraint(random, name)) for name in names[1:]]
    text = ", ".join(f"{name} {op} {bound!r}" for name, op, bound in held)
    sense = SENSES[names[0]]
    try:
        goal = sp.check(sp.Goal.parse(f"{sense}imize {names[0]} subject to {text}"))
    except sp.GoalError:
        return  # contradictory by chance: refused before any data is seen
    rule = sp.tune(goal, y, scores, sample_weight=weight)
    constraints = [(METRICS12[name], op, bound) for name, op, bound in held]
    brute = brute_tune(METRICS12[names[0]], sense, constraints, y, scores, weight)
    agree(rule, brute, weight is not None)
    for h, (metric, op, bound) in zip(rule.held, constraints, strict=True):
        alone = brute_tune(METRICS12[names[0]], sense, [(metric, op, bound)], y, scores, weight)
        assert h.alone == alone.feasible
        if rule.feasible:
            rest = [c for c in constraints if c[0] is not metric]
            free = brute_tune(METRICS12[names[0]], sense, rest, y, scores, weight)
            better = (free.value - brute.value) * (1 if sense == "max" else -1) > 1e-11
            assert h.binding == (better and free.feasible) or len({c[0] for c in constraints}) < 3


@pytest.mark.parametrize("objective", METRICS12)
def test_without_constraints(objective):
    random = np.random.default_rng(7)
    for _ in range(20):
        y, scores, weight = problem(random)
        rule = sp.tune(f"{SENSES[objective]}imize {objective}", y, scores, sample_weight=weight)
        brute = brute_tune(METRICS12[objective], SENSES[objective], [], y, scores, weight)
        agree(rule, brute, weight is not None)


def test_the_rule_reports_what_its_decisions_give():
    random = np.random.default_rng(3)
    for _ in range(100):
        y, scores, weight = problem(random)
        rule = sp.tune(
            "maximize recall subject to precision >= 0.5", y, scores, sample_weight=weight
        )
        decided = rule.decide(scores)
        if rule.value is not None:
            assert sp.recall(y, decided, weight) == pytest.approx(rule.value, abs=1e-12)
        if rule.held[0].value is not None:
            assert sp.precision(y, decided, weight) == pytest.approx(rule.held[0].value, abs=1e-12)


def test_weights_count_like_repeated_rows():
    random = np.random.default_rng(4)
    for _ in range(100):
        y, scores, _ = problem(random)
        times = random.integers(1, 4, y.size)
        goal = "maximize f1 subject to fpr <= 0.5"
        a = sp.tune(goal, y, scores, sample_weight=times)
        b = sp.tune(goal, np.repeat(y, times), np.repeat(scores, times))
        assert (a.threshold, a.value, a.feasible) == (b.threshold, b.value, b.feasible)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_kinds_of_numbers(dtype):
    random = np.random.default_rng(5)
    y = random.integers(0, 2, 200)
    scores = (random.normal(size=200) * 4 + 3 * y).astype(dtype)
    rule = sp.tune("maximize f1", y, scores)
    same = sp.tune("maximize f1", y, scores.astype(np.float64))
    assert rule.threshold == same.threshold
    assert rule.decide(scores).tolist() == (scores.astype(np.float64) >= rule.threshold).tolist()


@pytest.mark.parametrize("seed", range(60))
def test_thresholds_per_group_equal_brute_force(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(6, 15))
    y, scores = random.integers(0, 2, n), random.integers(0, 7, n) / 8
    y[:2] = (0, 1)
    group = random.choice(["a", "b"], n)
    group[:2] = ("a", "b")
    names = random.choice(["recall", "precision", "f1", "accuracy", "positive_rate", "fpr"], 2)
    bound = float(random.choice([0.0, 0.2, 0.5, 0.8]))
    cases = [
        (f'gap({names[1]}, by="group") <= {bound}', (gap(METRICS12[names[1]]), "<=", bound)),
        (f'{names[1]}.on(group="b") >= {bound}', (on_group(METRICS12[names[1]], "b"), ">=", bound)),
        (f"{names[1]} >= {bound}", (pooled(METRICS12[names[1]]), ">=", bound)),
    ]
    text, held = cases[seed % 3]
    goal = f"maximize {names[0]} subject to {text}"
    rule = sp.tune(goal, y, scores, group=group, kind="per-group")
    brute = brute_groups(pooled(METRICS12[names[0]]), "max", [held], y, scores, group)
    assert rule.search == "exact"
    assert rule.feasible == brute.feasible
    assert (rule.value or 0.0) == pytest.approx(brute.value, abs=1e-11)


LOCAL_GOALS = [
    'maximize accuracy subject to gap(recall, by="group") <= 0.02, precision >= 0.6',
    'maximize recall subject to gap(positive_rate, by="group") <= 0.03, precision >= 0.7',
    'maximize f1 subject to worst(recall, by="group") >= 0.5',
]


@pytest.mark.parametrize("goal", LOCAL_GOALS)
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_local_search_over_groups_comes_near_the_exact_one(seed, groups, goal, monkeypatch):
    from setpoint.rules import threshold_blocks as blocks

    random = np.random.default_rng(seed)
    n = 110 * groups
    y = (random.random(n) < 0.4).astype(int)
    scores = np.round(random.normal(size=n) + 1.2 * y, 2)
    group = random.choice(["a", "b", "c"][:groups], n)
    exact = sp.tune(goal, y, scores, group=group, kind="per-group")
    assert exact.search == "exact"
    monkeypatch.setattr(blocks, "FEW", 0)
    local = sp.tune(goal, y, scores, group=group, kind="per-group")
    assert local.search != "exact"
    assert local.feasible == exact.feasible
    assert local.value <= exact.value + 1e-12
    assert local.value >= exact.value - 0.02


def test_thresholds_per_label_equal_label_by_label():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, (60, 3))
    scores = np.round(random.normal(size=(60, 3)) + y, 1)
    rule = sp.tune("maximize macro(f1)", y, scores, task="multilabel")
    singles = [sp.tune("maximize f1", y[:, j], scores[:, j]) for j in range(3)]
    assert rule.value == pytest.approx(np.mean([r.value for r in singles]), abs=1e-12)
    assert [t for _, t in rule.thresholds] == [r.threshold for r in singles]
    assert sp.macro(sp.f1)(y, rule.decide(scores), task="multilabel") == rule.value


def test_a_pooled_multilabel_goal_equals_brute_force():
    random = np.random.default_rng(1)
    for _ in range(20):
        y = random.integers(0, 2, (8, 2))
        y[:2] = ((0, 1), (1, 0))
        scores = random.integers(0, 6, (8, 2)) / 5
        rule = sp.tune("maximize micro(f1)", y, scores, task="multilabel")
        cuts = [np.r_[np.inf, np.unique(scores[:, j])] for j in range(2)]
        best = max(
            sp.micro(sp.f1)(y, scores >= np.array(pair), task="multilabel")
            for pair in itertools.product(*cuts)
        )
        assert rule.value == pytest.approx(best, abs=1e-12)


def test_a_group_without_negatives_stays_undefined_under_weights():
    """0.1 + 0.2 - 0.3 is no negative row: an empty rate must not become a ratio of roundings."""
    y = [0, 1, 1, 1, 0, 1, 1]
    scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    group = ["a", "b", "b", "b", "a", "b", "b"]
    weight = [0.7, 0.1, 0.2, 0.3, 0.1, 0.7, 0.4]
    rule = sp.tune(
        'maximize recall subject to fpr.on(group="b") <= 0.5',
        y,
        scores,
        group=group,
        sample_weight=weight,
    )
    assert not rule.feasible
    assert rule.held[0].value is None
