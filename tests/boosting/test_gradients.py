"""Gradients for trees: against autograd, closed forms and brute force."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, precision_recall_curve

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint.boosting import LightGBMObjective, XGBoostObjective
from setpoint.boosting.cost_gradients import TreeCosts, TreeEntropy, TreeWorth
from setpoint.boosting.soft_set_gradients import TreeSoftSet
from setpoint.boosting.tree_rows import TreeRows, coupled, spread, start_score, tree_rows
from setpoint.goals import Goal, Task
from setpoint.methods import Costs, SoftSet
from setpoint.surrogates import Sigmoid

FLOOR = "maximize recall subject to precision >= 0.7"
CLASSES = Task.multiclass(range(3))
WEIGHTS = pytest.mark.parametrize("weighted", [False, True])


def some_rows(classes=2, n=300, weighted=False, seed=0, spread_by=2.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, spread_by, n if classes == 2 else (n, classes))
    codes = rng.integers(0, classes, n)
    if classes == 2:
        codes = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    w = rng.exponential(1, n) if weighted else None
    return tree_rows(classes, z, codes, w)


def weighed_loss(rows, worth):
    """−Σ w Σ_d u[y, d] log p_d, as torch sees it."""
    z = torch.tensor(rows.scores, requires_grad=True)
    u = torch.tensor(worth.reshape(-1, worth.shape[-1])[rows.codes])
    both = torch.stack([torch.zeros_like(z), z], 1) if z.ndim == 1 else z
    w = torch.ones(len(z)) if rows.weight is None else torch.tensor(rows.weight)
    each = -(u * torch.log_softmax(both, 1)).sum(1) * w
    return z, each


def second(z, each):
    """Derivatives of each row's loss in its own scores, by autograd."""
    (g,) = torch.autograd.grad(each.sum(), z, create_graph=True)
    if z.ndim == 1:
        (h,) = torch.autograd.grad(g.sum(), z)
        return g.detach().numpy(), h.numpy()
    columns = [
        torch.autograd.grad(g[:, k].sum(), z, retain_graph=True)[0] for k in range(g.shape[1])
    ]
    return g.detach().numpy(), torch.stack(columns, 1).numpy()  # (n, K, K)


# --- log loss with costs -----------------------------------------------------------------------


@WEIGHTS
def test_gradients_with_costs_are_those_of_the_loss(weighted):
    rng = np.random.default_rng(1)
    for classes in (2, 4):
        rows, worth = some_rows(classes, weighted=weighted), rng.random((1, classes, classes))
        g, h = TreeWorth(worth).of(rows)
        true_g, true_h = second(*weighed_loss(rows, worth))
        np.testing.assert_allclose(g, true_g, atol=1e-12)
        diagonal = true_h if classes == 2 else np.diagonal(true_h, axis1=1, axis2=2)
        np.testing.assert_allclose(h, diagonal, atol=1e-12)
        if classes > 2:
            one = TreeRows(
                rows.scores[:1], rows.codes[:1], None if not weighted else rows.weight[:1]
            )
            np.testing.assert_allclose(coupled(one, h[:1]), true_h[0], atol=1e-12)


@pytest.mark.parametrize("goal", ["maximize accuracy", "minimize cost(fp=3, fn=3)"])
def test_equal_prices_leave_plain_log_loss_exactly(goal):
    objective = LightGBMObjective(goal)
    run = objective.gradients()
    for seed in range(5):
        rows = some_rows(seed=seed, weighted=True)
        run.renew(rows)
        g, h = run.of(rows)
        np.testing.assert_allclose(g, rows.weight * (rows.p - rows.codes), rtol=0, atol=1e-14)
        np.testing.assert_allclose(h, rows.weight * rows.p * (1 - rows.p), rtol=0, atol=1e-14)
    several = LightGBMObjective("maximize accuracy", task=CLASSES).gradients()
    rows = some_rows(3)
    several.renew(rows)
    np.testing.assert_allclose(several.prices, np.eye(3)[None], rtol=0, atol=1e-14)


def test_costs_of_f1_settle_at_two_minus_f_to_f():
    rows = some_rows(n=500)
    cuts = np.unique(rows.scores)
    best = max(f1_score(rows.codes, rows.scores >= c) for c in cuts)
    run = LightGBMObjective("maximize f1", floor=0.0).gradients()
    moved = []
    for _ in range(1000):
        before = run.prices.copy()
        run.renew(rows)
        moved.append(np.abs(run.prices - before).max())
    c0, c1 = run.prices[0, 0, 0], run.prices[0, 1, 1]
    assert c1 / c0 == pytest.approx((2 - best) / best, rel=0.02)
    assert moved[-1] < 1e-3 * moved[0]
    share = rows.codes.mean()
    assert (1 - share) * c0 + share * c1 == pytest.approx(1)  # a row costs 1 on average


@pytest.mark.parametrize("goal", ["maximize f1", FLOOR])
def test_costs_settle_even_where_prices_jump(goal):
    """Trees that go to and fro between two sets of scores get costs in between, and calm ones."""
    rng = np.random.default_rng(5)
    codes = (rng.random(300) < 0.3).astype(int)
    ends = [
        tree_rows(2, rng.normal(by * codes + shift, 1), codes) for by, shift in ((1, 2), (3, -2))
    ]
    run = LightGBMObjective(goal).gradients()
    seen = []
    for turn in range(300):
        run.renew(ends[turn % 2])
        seen.append(run.prices[0, 1, 1] / run.prices[0, 0, 0])
    moved = np.abs(np.diff(seen))
    assert moved[:20].max() > 0.01
    assert moved[-20:].max() < 0.1 * moved[:20].max()


@pytest.mark.parametrize("balance", [-2.0, 0.0])
def test_costs_under_a_floor_move_the_best_threshold_to_a_half(balance):
    rng = np.random.default_rng(2)
    base = rng.normal(balance, 1.5, 20_000)
    codes = (rng.random(20_000) < 1 / (1 + np.exp(-base))).astype(int)
    precision, recall, cuts = precision_recall_curve(codes, base)
    met = precision[:-1] >= 0.7
    best = cuts[met][np.argmax(recall[:-1][met])]
    run = LightGBMObjective(FLOOR).gradients()
    for _ in range(400):  # trees that follow the costs at once: odds times c₁/c₀
        run.renew(tree_rows(2, base + np.log(run.prices[0, 1, 1] / run.prices[0, 0, 0]), codes))
    assert np.log(run.prices[0, 1, 1] / run.prices[0, 0, 0]) == pytest.approx(-best, abs=0.15)


def test_several_classes_get_dearer_where_a_constraint_is_broken():
    rng = np.random.default_rng(3)
    n = 600
    codes = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    z = np.log(np.array([0.6, 0.3, 0.1])) + rng.normal(0, 0.5, (n, 3)) + np.eye(3)[codes]
    rows = tree_rows(3, z, codes)
    goal = "maximize accuracy subject to recall.of(2) >= 0.8"
    run = LightGBMObjective(goal, task=CLASSES).gradients()
    for _ in range(60):
        run.renew(rows)
    plain = LightGBMObjective("maximize accuracy", task=CLASSES).gradients()
    plain.renew(rows)
    ratio = run.prices[0, 2, 2] / run.prices[0, 0, 0]
    assert ratio > 3 * plain.prices[0, 2, 2] / plain.prices[0, 0, 0]


def test_groups_have_prices_of_their_own():
    rng = np.random.default_rng(4)
    n = 400
    group = rng.choice(["x", "y"], n)
    z, codes = rng.normal(size=n), rng.integers(0, 2, n)
    objective = LightGBMObjective('maximize recall.on(g="x")', group={"g": group}, floor=0.02)
    data = Data(codes)
    objective(z, data)
    g, _ = objective(z, data)
    for _ in range(300):
        g, _ = objective(z, data)
    pull = np.abs(g / np.abs(1 / (1 + np.exp(-z)) - codes))  # the cost of each row
    own = (group == "x") & (codes == 1)
    assert pull[own].min() > 10 * pull[~own].max()  # nothing else is worth anything
    with pytest.raises(DataError, match="group has 400 rows"):
        objective(z[:10], Data(codes[:10]))


# --- soft-set ------------------------------------------------------------------------------------


def soft_f1(z, y, w, surrogate):
    s = surrogate.value(torch.sigmoid(z))
    tp = (w * y * s).sum()
    return 2 * tp / (tp + (w * s).sum() + (w * y).sum() - tp)


@WEIGHTS
@pytest.mark.parametrize("name", ["linear", "sigmoid"])
def test_soft_set_descends_the_soft_goal(name, weighted):
    rows = some_rows(weighted=weighted)
    method = SoftSet(surrogate=name, cross_entropy=0.3)
    run = TreeSoftSet(Goal.parse("maximize f1"), Task.binary(), method)
    run.renew(rows)
    g, _ = run.of(rows)
    w = torch.ones(300).double() if rows.weight is None else torch.tensor(rows.weight)
    z = torch.tensor(rows.scores, requires_grad=True)
    y = torch.tensor(rows.codes)
    (true,) = torch.autograd.grad(-soft_f1(z, y, w, method.surrogate), z)
    soft = (g - 0.3 * w.numpy() * (rows.p - rows.codes)) / 0.7
    factor = soft @ true.numpy() / (true.numpy() @ true.numpy())
    np.testing.assert_allclose(soft, factor * true.numpy(), atol=1e-10)
    # the scale: what the decision about a row is worth is 1 on average
    s = method.surrogate.value(torch.sigmoid(z)).detach()
    tp, whole = float((w * y * s).sum()), float((w * s).sum() + (w * y).sum() - (w * y * s).sum())
    f = 2 * tp / (tp + whole)
    worth = np.where(rows.codes == 1, (2 - f), f) / (tp + whole)  # |∂F1/∂s| of a row, by hand
    assert factor == pytest.approx(float(w.sum() / (w.numpy() * worth).sum()), rel=1e-6)


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        (2, {"surrogate": "linear"}),
        (2, {"surrogate": "sigmoid"}),
        (2, {"surrogate": Sigmoid(sharpness=30.0)}),
        (2, {"thresholds": "grid"}),
        (2, {"temperature": 0.5, "surrogate": "sigmoid"}),
        (3, {}),
        (3, {"temperature": 0.5}),
    ],
)
def test_hessians_bound_the_curvature(classes, options):
    """At fixed prices a row's loss curves by finite differences; h is never less, and positive."""
    task = Task.binary() if classes == 2 else CLASSES
    goal = Goal.parse("maximize f1" if classes == 2 else "maximize macro(f1)")
    run = TreeSoftSet(goal, task, SoftSet(cross_entropy=0.2, **options))
    rows = some_rows(classes, weighted=True)
    run.renew(rows)
    _, h = run.of(rows)
    assert (h > 0).all()
    eps = 1e-5
    for k in range(1 if classes == 2 else classes):
        step = eps if classes == 2 else eps * np.eye(classes)[k]
        sides = [
            run.of(TreeRows(rows.scores + by, rows.codes, rows.weight))[0] for by in (step, -step)
        ]
        curve = (sides[0] - sides[1]) / (2 * eps)
        mine, curve = (h, curve) if classes == 2 else (h[:, k], curve[:, k])
        near = curve > mine * (1 + 1e-4) + 1e-9
        # a knot of a piecewise linear step falls between the two sides for hardly any row
        assert near.mean() <= (0.01 if classes == 2 else 0.0)


def test_a_leaf_of_one_mind_steps_by_at_most_one():
    rows = some_rows(spread_by=6.0)
    run = TreeSoftSet(Goal.parse(FLOOR), Task.binary(), SoftSet(cross_entropy=0.0))
    for _ in range(20):
        run.renew(rows)
    g, h = run.of(rows)
    positive = rows.codes == 1
    assert abs(g[positive].sum() / h[positive].sum()) <= 1 + 1e-9


def test_a_soft_area_can_be_boosted():
    rows = some_rows()
    run = TreeSoftSet(Goal.parse("maximize auroc"), Task.binary(), SoftSet(thresholds="grid"))
    run.renew(rows)
    g, h = run.of(rows)
    assert np.isfinite(g).all()
    assert (h > 0).all()
    assert g[rows.codes == 1].mean() < 0 < g[rows.codes == 0].mean()


# --- starts, runs, refusals ----------------------------------------------------------------------


class Data:
    """What LightGBM and XGBoost pass to an objective."""

    def __init__(self, label, weight=None):
        self.label, self.weight = np.asarray(label, np.float32), weight

    def get_label(self):
        return self.label

    def get_weight(self):
        return self.weight


def test_start_scores_are_the_best_constants():
    y, w = np.array([0, 1, 1, 2, 2, 2]), np.array([1.0, 2, 1, 1, 1, 2])
    start = start_score(y, w, 3)
    np.testing.assert_allclose(np.exp(start), np.array([1, 3, 4]) / 8)
    z = np.tile(start, (6, 1))
    g, _ = TreeEntropy(3, None).of(tree_rows(3, z, y, w))
    np.testing.assert_allclose(g.sum(0), 0, atol=1e-12)  # no constant is better
    two = start_score(np.minimum(y, 1), w, 2)
    g, _ = TreeEntropy(2, None).of(tree_rows(2, spread(two, 6), np.minimum(y, 1), w))
    assert g.sum() == pytest.approx(0, abs=1e-12)
    assert np.isfinite(start_score(np.zeros(3, int), None, 2)).all()  # a class without rows
    about = XGBoostObjective("maximize accuracy", task=CLASSES).start(y, w)
    np.testing.assert_allclose(about, start - start.mean())


def test_runs_do_not_mix_and_begin_anew():
    first, second_ = some_rows(seed=0), some_rows(seed=1)
    objective = LightGBMObjective("maximize f1")
    a, b = Data(first.codes), Data(second_.codes)

    turns = [  # turn by turn, as cross-validation does
        (objective(first.scores, a)[0], objective(second_.scores, b)[0]) for _ in range(3)
    ]
    other = LightGBMObjective("maximize f1")
    data = Data(first.codes)
    for step in range(3):
        np.testing.assert_array_equal(other(first.scores, data)[0], turns[step][0])
    begin = np.full(300, -0.3)
    objective(begin, a)  # a run whose scores are all alike has only begun
    np.testing.assert_array_equal(objective(first.scores, a)[0], turns[0][0])
    for copied in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        np.testing.assert_array_equal(copied(first.scores, a)[0], turns[0][0])


def test_nothing_is_priced_before_the_first_tree():
    objective = LightGBMObjective(FLOOR)
    y = np.array([0, 0, 0, 1])
    g, _ = objective(np.full(4, -1.0), Data(y))
    np.testing.assert_allclose(g, 1 / (1 + np.exp(1)) - y)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: LightGBMObjective("maximize auroc"), GoalError, "pairwise"),
        (lambda: LightGBMObjective("maximize auroc", "pairwise"), KindError, "costs"),
        (lambda: LightGBMObjective("maximize f1", "soft"), KindError, "soft-set"),
        (lambda: LightGBMObjective("maximize f1", truncate=2.0), KindError, "hessian"),
        (lambda: LightGBMObjective("maximize f1", task="multiclass"), KindError, "range"),
        (
            lambda: LightGBMObjective("maximize f1", task=Task.multilabel(["a", "b"])),
            KindError,
            "multil",
        ),
        (lambda: LightGBMObjective('maximize recall.on(g="x")'), GoalError, '"g"'),
        (
            lambda: LightGBMObjective("maximize f1", "cross-entropy", class_weight="search"),
            GoalError,
            "tune rows",
        ),
    ],
)
def test_what_cannot_be_boosted_is_refused_at_once(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("scores", "label", "weight", "words"),
    [
        (np.zeros(3), [0, 1, 2], None, "got 2"),
        (np.zeros(3), [0, 1, 0.5], None, "got 0.5"),
        (np.zeros(3), [0, 1], None, "one per row"),
        (np.zeros((3, 2)), [0, 1, 0], None, "num_class"),
        (np.zeros(3), [0, 1, 0], [1, -1, 1], "0 or more"),
        (np.zeros(3), [0, 1, 0], [1, np.nan, 1], "finite"),
    ],
)
def test_rows_that_no_library_should_hand_over(scores, label, weight, words):
    with pytest.raises(DataError, match=words):
        tree_rows(2, scores, label, weight)


def test_class_weights_as_for_networks():
    rows = some_rows(3, weighted=True)
    run = LightGBMObjective(
        "maximize accuracy", "cross-entropy", class_weight="balanced", task=CLASSES
    ).gradients()
    run.renew(rows)
    mass = np.bincount(rows.codes, rows.weight)
    np.testing.assert_allclose(np.diag(run.prices[0]) * mass, mass.sum() / 3)
    fixed = TreeEntropy(2, (1.0, 4.0)).of(some_rows())[0]
    plain = TreeEntropy(2, None).of(some_rows())[0]
    np.testing.assert_allclose(fixed, plain * np.where(some_rows().codes == 1, 4, 1))


def test_costs_take_multipliers_that_are_given():
    """With λ fixed the costs of recall under precision >= α are 1 + λ(1 − α) : λα."""
    rows, method = some_rows(n=2000), Costs(multipliers=(2.0,), rate=0.0, floor=0.0)
    run = TreeCosts(Goal.parse(FLOOR), Task.binary(), method, lambda rows: 0.0)
    for _ in range(3000):
        run.renew(rows)
    share = rows.codes.mean()
    want = (1 / share + 2 * 0.3 / share) / (2 * 0.7 / share)
    assert run.prices[0, 1, 1] / run.prices[0, 0, 0] == pytest.approx(want, rel=0.01)
