"""The implicit method against thresholds solved, and derivatives taken, without the library.

Assumed, and held here: the loss is the cost of tests/oracles/implicit.py itself (1 − metric where a
metric is maximised). Areas are mean rates over the midpoints of ``points`` equal steps: mean TPR
over FPR, mean precision over recall. ``share`` is a share of the weight of the rows.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tests.oracles import implicit as oracle
from tests.oracles.implicit import Apart, Chosen, Levelled, Points, Rows, Shifted

import setpoint as sp
from setpoint.losses import GoalLoss


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return GoalLoss(goal, method, guard=False, **options)


GROUPS = sp.Task.binary(groups={"group": ["a", "b"]})
CLASSES = sp.Task.multiclass(range(3))
AT_K: dict[str, Any] = {"share": None}  #: 20 of the rows
LEVEL = 'gap(positive_rate, by="group") == 0'

#: number of rows, sharpness, weighted
BATCHES = {"few": (40, 2.0, False), "some": (90, 3.0, True), "many": (200, 5.0, True)}


def midpoints(low, high, points):
    """The middles of equal steps."""
    return tuple(low + (high - low) * (np.arange(points) + 0.5) / points)


#: goal, problem (of the number of rows where it speaks of k), options; one threshold each
PINNED: dict[str, Any] = {
    "fnr at fpr": ("minimize fnr_at_fpr(0.1)", Points("fnr", "fpr", (0.1,), False), {}),
    "tpr at fpr": ("maximize tpr_at_fpr(0.1)", Points("recall", "fpr", (0.1,)), {}),
    "precision at recall": (
        "maximize precision_at_recall(0.8)",
        Points("precision", "recall", (0.8,)),
        {},
    ),
    "recall at precision": (
        "maximize recall_at_precision(0.8)",
        Points("recall", "precision", (0.8,)),
        {},
    ),
    "recall, precision held": (
        "maximize recall subject to precision >= 0.8",
        Points("recall", "precision", (0.8,)),
        {},
    ),
    "precision at k": (
        "maximize precision_at_k(20)",
        lambda n: Points("precision", "positive_rate", (20 / n,)),
        AT_K,
    ),
    "recall at k": (
        "maximize recall_at_k(20)",
        lambda n: Points("recall", "positive_rate", (20 / n,)),
        AT_K,
    ),
    "fnr, fpr held": (
        "minimize fnr subject to fpr <= 0.1",
        Chosen("fnr", (("fpr", None, 1, 0.1),), False),
        {},
    ),
    "two constraints, the first binds": (
        "maximize recall subject to fpr <= 0.1, precision >= 0.3",
        Chosen("recall", (("fpr", None, 1, 0.1), ("precision", None, -1, 0.3))),
        {},
    ),
    "three constraints, the last binds": (
        "maximize recall subject to precision >= 0.2, fpr <= 0.9, positive_rate <= 0.25",
        Chosen(
            "recall",
            (
                ("precision", None, -1, 0.2),
                ("fpr", None, 1, 0.9),
                ("positive_rate", None, 1, 0.25),
            ),
        ),
        {},
    ),
    "constraints from both sides": (
        "maximize precision subject to recall >= 0.6, fpr <= 0.6",
        Chosen("precision", (("recall", None, -1, 0.6), ("fpr", None, 1, 0.6))),
        {},
    ),
    "constraint on a group": (
        'maximize recall subject to fpr.on(group="b") <= 0.2',
        Chosen("recall", (("fpr", 1, 1, 0.2),)),
        {"task": GROUPS},
    ),
}
#: a threshold for each of the points
AREAS: dict[str, Any] = {
    "auroc": ("maximize auroc", Points("recall", "fpr", midpoints(0, 1, 10)), {"points": 10}),
    "auroc, few points": (
        "maximize auroc",
        Points("recall", "fpr", midpoints(0, 1, 3)),
        {"points": 3},
    ),
    "partial auroc": (
        "maximize auroc(max_fpr=0.3, standardized=false)",
        Points("recall", "fpr", midpoints(0, 0.3, 7)),
        {"points": 7},
    ),
    "partial auroc, standardized": (
        "maximize auroc(max_fpr=0.3)",
        Points("recall", "fpr", midpoints(0, 0.3, 7)),
        {"points": 7},
    ),
    "average precision": (
        "maximize average_precision",
        Points("precision", "recall", midpoints(0, 1, 10)),
        {"points": 10},
    ),
    "partial auprc": (
        "maximize auprc(min_recall=0.8)",
        Points("precision", "recall", midpoints(0.8, 1, 5)),
        {"points": 5},
    ),
}
#: the threshold is the best one, not the one a constraint gives
FREE: dict[str, Any] = {
    "best f1": (
        "maximize f1 subject to recall >= 0.05",
        Chosen("f1", (("recall", None, -1, 0.05),)),
        {},
    ),
    "best accuracy": (
        "maximize accuracy subject to fpr <= 0.9",
        Chosen("accuracy", (("fpr", None, 1, 0.9),)),
        {},
    ),
}
BY: dict[str, Any] = {"task": GROUPS, "by": "group"}
SEVERAL: dict[str, Any] = {
    "parity": (f"maximize accuracy subject to {LEVEL}", Levelled("accuracy", "positive_rate"), BY),
    "parity at a recall": (
        f"maximize accuracy subject to {LEVEL}, recall == 0.7",
        Levelled("accuracy", "positive_rate", ("recall", 0.7)),
        BY,
    ),
    "equal chances": (
        'maximize accuracy subject to gap(recall, by="group") == 0',
        Levelled("accuracy", "recall"),
        BY,
    ),
    "nearly parity": (
        'maximize accuracy subject to gap(positive_rate, by="group") <= 0.01',
        lambda n: Levelled("accuracy", "positive_rate", apart=-0.01 if n == 200 else 0.01),
        BY,
    ),
    "each group's own fpr": (
        'maximize recall subject to fpr.on(group="a") <= 0.1, fpr.on(group="b") <= 0.2',
        Apart("recall", "fpr", (0.1, 0.2)),
        BY,
    ),
    "one share": (
        "maximize accuracy subject to positive_rate.of(2) == 0.3",
        Shifted(((2, 0.3),)),
        {"task": CLASSES},
    ),
    "two shares": (
        "maximize accuracy subject to positive_rate.of(2) == 0.3, positive_rate.of(1) == 0.25",
        Shifted(((2, 0.3), (1, 0.25))),
        {"task": CLASSES},
    ),
}
CASES: dict[str, Any] = PINNED | AREAS | FREE | SEVERAL
#: one of a kind of two equations is enough
STEADY = [case for case in CASES if case != "parity at a recall"]


@cache
def batch(name, classes=False):
    """Rows whose share of positives rises with the score, evenly enough for one crossing."""
    n, sharpness, weighted = BATCHES[name]
    rng = np.random.default_rng(n)
    weight = 0.5 + rng.random(n) if weighted else np.ones(n)
    if classes:
        y = rng.integers(3, size=n)
        scores = rng.normal(size=(n, 3))
        scores[np.arange(n), y] += 1.2
        return Rows(scores, y, weight, np.zeros(n, int), sharpness / 2)
    scores = np.sort(1.5 * rng.normal(size=n))
    chance = 1 / (1 + np.exp(0.3 - 1.5 * scores))
    y = np.diff(np.floor(np.cumsum(np.r_[0.5, chance]))).astype(int)
    group = np.arange(n) // 2 % 2
    rows = Rows(scores + 0.7 * group, y, weight, group, sharpness)
    return rows.take(rng.permutation(n))


def setting(case, name) -> Any:
    """Rows, goal, problem and options of a case."""
    goal, problem, options = CASES[case]
    rows = batch(name, options.get("task") is CLASSES)
    n = len(rows.y)
    options = options | ({"share": 20 / n} if options is AT_K else {})
    return rows, goal, problem(n) if callable(problem) else problem, options


@cache
def truth(case, name):
    """Thresholds, cost and gradient, by the oracle."""
    rows, _, problem, _ = setting(case, name)
    return oracle.gradient(problem, rows)


def made(goal, sharpness, **options):
    fixed = {"correction": "soft", "memory": 0, "warmup": 0, "cross_entropy": 0.0}
    return bare(goal, "implicit", sharpness=sharpness, **fixed, **options).double()


def found(goal, rows, dtype=torch.float64, **options):
    """Loss and gradient through the door."""
    loss = made(goal, rows.sharpness, **options)
    logits = torch.tensor(rows.scores, dtype=dtype, requires_grad=True)
    grouped = {"group": torch.tensor(rows.group)} if loss.task.groups else {}
    weight = torch.tensor(rows.weight, dtype=dtype)
    value = loss(logits, torch.tensor(rows.y), weight=weight, **grouped)
    value.backward()
    assert logits.grad is not None
    return value.item(), logits.grad.numpy()


def close(ours, theirs, tolerance):
    """Equal within a share of the greatest entry."""
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


# --- the oracle on its own --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_two_oracles_agree(case):
    rows, _, problem, _ = setting(case, "some")
    _, value, gradient = truth(case, "some")
    assert value == pytest.approx(oracle.value(problem, rows), abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(2):
        direction = rng.choice([-1.0, 1.0], size=rows.scores.shape)
        slope = oracle.slope(problem, rows, direction)
        assert slope == pytest.approx((gradient * direction).sum(), abs=1e-9)


@pytest.mark.parametrize("name", BATCHES)
def test_the_points_are_the_best_that_keep_the_bound(name):
    """One crossing each, so that "at" a rate and "best while a rate is kept" are the same."""
    rows = batch(name)
    grid = np.linspace(rows.scores.min() - 2, rows.scores.max() + 1, 4001)
    precision = oracle.rate("precision", rows, oracle.decided(rows, rows.scores, grid))
    assert np.count_nonzero(np.diff(precision >= 0.8)) == 1
    for case, kept in (
        ("precision at recall", Chosen("precision", (("recall", None, -1, 0.8),))),
        ("recall at precision", Chosen("recall", (("precision", None, -1, 0.8),))),
        ("tpr at fpr", Chosen("recall", (("fpr", None, 1, 0.1),))),
    ):
        np.testing.assert_allclose(truth(case, name)[0], oracle.gradient(kept, rows)[0])


@pytest.mark.parametrize("name", BATCHES)
def test_a_gap_that_may_be_is_used_up_on_the_better_side(name):
    rows, _, problem, _ = setting("nearly parity", name)
    costs = [oracle.value(replace(problem, apart=x * problem.apart), rows) for x in (1, 0, -1)]
    assert costs == sorted(costs)
    assert costs[0] > oracle.value(replace(problem, apart=1.1 * problem.apart), rows)


# --- the method -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradient_are_those_of_the_oracle(case, name):
    """At points that constraints give, at free optima, and at thresholds that hang together."""
    rows, goal, _, options = setting(case, name)
    value, gradient = found(goal, rows, **options)
    _, cost, slope = truth(case, name)
    assert value == pytest.approx(cost, abs=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12)


# --- what must not matter ---------------------------------------------------------------------


@pytest.mark.parametrize("case", STEADY)
def test_a_common_shift_changes_nothing(case):
    rows, goal, _, options = setting(case, "some")
    value, gradient = found(goal, rows, **options)
    scale, own = np.abs(gradient).max(), "by" in options
    assert scale > 0
    loose = (1e-6 if case in FREE or case in SEVERAL else 1e-9) * scale
    for g in (0, 1) if own else (rows.group,):
        np.testing.assert_allclose(gradient[rows.group == g].sum(0), 0, atol=loose)
    shift = np.array([3.25, 0.5, -1.0]) if gradient.ndim == 2 else 3.25 - 2.0 * own * rows.group
    if gradient.ndim == 2:
        np.testing.assert_allclose(gradient.sum(1), 0, atol=1e-9 * scale)
    moved = Rows(rows.scores + shift, rows.y, rows.weight, rows.group, rows.sharpness)
    again, slope = found(goal, moved, **options)
    assert again == pytest.approx(value, abs=1e-6)
    close(slope, gradient, 1e-5)


@pytest.mark.parametrize("case", STEADY)
def test_order_and_the_scale_of_weights_do_not_matter(case):
    rows, goal, _, options = setting(case, "some")
    value, gradient = found(goal, rows, **options)
    order = np.random.default_rng(1).permutation(len(rows.y))
    mixed = rows.take(order)
    heavy = Rows(mixed.scores, mixed.y, 7 * mixed.weight, mixed.group, mixed.sharpness)
    again, slope = found(goal, heavy, **options)
    assert again == pytest.approx(value, abs=1e-8)
    close(slope, gradient[order], 1e-6)


@pytest.mark.parametrize("case", ["fnr at fpr", "precision at recall", "average precision"])
def test_a_weight_of_two_is_the_row_twice_and_of_none_no_row(case):
    rows, goal, _, options = setting(case, "few")
    weight = np.random.default_rng(2).integers(3, size=len(rows.y)).astype(float)
    weighed = Rows(rows.scores, rows.y, weight, rows.group, rows.sharpness)
    value, gradient = found(goal, weighed, **options)
    copies = np.repeat(np.arange(len(rows.y)), weight.astype(int))
    again, slope = found(goal, rows.take(copies), **options)
    assert value == pytest.approx(again, abs=1e-9)
    together = np.bincount(copies, slope, minlength=len(rows.y))
    close(gradient, together, 1e-8)


@pytest.mark.parametrize("case", ["fnr at fpr", "precision at recall"])
def test_the_gradient_of_the_union_is_each_shards_from_added_totals(case):
    rows, goal, problem, _ = setting(case, "many")
    form = {
        "fnr at fpr": oracle.shard_fnr_at_fpr,
        "precision at recall": oracle.shard_precision_at_recall,
    }[case]
    _, gradient = found(goal, rows)
    (cut,) = problem.solve(rows, rows.scores)
    shards = np.split(np.arange(len(rows.y)), [70, 83])
    totals = sum(oracle.shard_totals(rows.take(shard), cut) for shard in shards)
    parts = np.concatenate([form(rows.take(shard), cut, totals) for shard in shards])
    close(parts, truth(case, "many")[2], 1e-11)
    close(gradient, parts, 1e-8)


# --- the edges --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["fnr at fpr", "precision at recall", "auroc", "fnr, fpr held"])
@pytest.mark.parametrize("spread", [1.0, 0.0])
def test_ties_and_equal_scores_are_no_special_case(case, spread):
    rows, goal, problem, options = setting(case, "some")
    tied = Rows(spread * np.round(rows.scores), rows.y, rows.weight, rows.group, rows.sharpness)
    value, gradient = found(goal, tied, **options)
    _, cost, slope = oracle.gradient(problem, tied)
    assert value == pytest.approx(cost, abs=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12)


@pytest.mark.parametrize("recall", [0.99, 0.999])
def test_a_recall_close_to_one(recall):
    rows = batch("some")
    value, gradient = found(f"maximize precision_at_recall({recall})", rows)
    _, cost, slope = oracle.gradient(Points("precision", "recall", (recall,)), rows)
    assert value == pytest.approx(cost, abs=1e-8)
    close(gradient, slope, 1e-6)


@pytest.mark.parametrize("case", [*PINNED, *AREAS, *FREE, "nearly parity"])
def test_single_precision_is_close(case):
    rows, goal, _, options = setting(case, "some")
    value, gradient = found(goal, rows, torch.float32, **options)
    _, cost, slope = truth(case, "some")
    assert value == pytest.approx(cost, abs=1e-4)
    close(gradient, slope, 1e-3)
