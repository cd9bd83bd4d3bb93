"""The Lagrangian method: its two readings, its prices, its thresholds, and what it comes to."""

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, confusion_matrix, fbeta_score, roc_auc_score

import setpoint as sp
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import Lagrangian


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return GoalLoss(goal, method, guard=False, **options)


HELD = "maximize recall subject to precision >= 0.8"
DUALS = ["additive", "external", "swap"]


def rows(n=400, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return torch.tensor(rng.normal(size=n) + y - 0.4), torch.tensor(y)


def own_totals(goal, task=None, **options):
    """A loss in double precision that prices each batch at its own totals, from the first on."""
    return bare(goal, "lagrangian", task=task, memory=0, warmup=0, **options).double()


# --- rates by the names that others give them ----------------------------------------------------


def table(y, decided):
    tn, fp, fn, tp = confusion_matrix(y, decided).ravel()
    return tp, fp, fn, tn, len(y)


#: name -> goal in our words, its value from the confusion table
RATES = {
    "positive_prediction_rate": ("positive_rate", lambda tp, fp, fn, tn, n: (tp + fp) / n),
    "negative_prediction_rate": ("1 - positive_rate", lambda tp, fp, fn, tn, n: (tn + fn) / n),
    "error_rate": ("error_rate", lambda tp, fp, fn, tn, n: (fp + fn) / n),
    "accuracy_rate": ("accuracy", lambda tp, fp, fn, tn, n: (tp + tn) / n),
    "true_positive_rate": ("recall", lambda tp, fp, fn, tn, n: tp / (tp + fn)),
    "false_negative_rate": ("fnr", lambda tp, fp, fn, tn, n: fn / (tp + fn)),
    "false_positive_rate": ("fpr", lambda tp, fp, fn, tn, n: fp / (fp + tn)),
    "true_negative_rate": ("specificity", lambda tp, fp, fn, tn, n: tn / (fp + tn)),
    "true_positive_proportion": ("tp / (tp + fp + fn + tn)", lambda tp, fp, fn, tn, n: tp / n),
    "false_negative_proportion": ("fn / (tp + fp + fn + tn)", lambda tp, fp, fn, tn, n: fn / n),
    "false_positive_proportion": ("fp / (tp + fp + fn + tn)", lambda tp, fp, fn, tn, n: fp / n),
    "true_negative_proportion": ("tn / (tp + fp + fn + tn)", lambda tp, fp, fn, tn, n: tn / n),
    "precision": ("precision", lambda tp, fp, fn, tn, n: tp / (tp + fp)),
    "f_score": ("f_beta(2)", lambda tp, fp, fn, tn, n: 5 * tp / (5 * tp + 4 * fn + fp)),
    "inverse precision": ("(tp + fp) / tp", lambda tp, fp, fn, tn, n: (tp + fp) / tp),
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_every_rate_is_read_exactly_and_trained(name, sense):
    text, value = RATES[name]
    z, y = rows()
    loss = own_totals(f"{sense} {text}")
    leaf = z.clone().requires_grad_()
    shown = loss(leaf, y)
    shown.backward()
    assert shown.isfinite()
    assert leaf.grad.isfinite().all()
    assert leaf.grad.abs().max() > 0
    wanted = value(*table(y.numpy(), z.numpy() >= 0))
    assert loss.recover().value == pytest.approx(wanted)
    if name == "f_score":
        assert wanted == pytest.approx(fbeta_score(y, z >= 0, beta=2))


@pytest.mark.parametrize("name", RATES)
def test_every_rate_can_be_bounded(name):
    """A floor in the middle of what is there now: excess as brute force says, in its own units."""
    text, value = RATES[name]
    z, y = rows()
    now = value(*table(y.numpy(), z.numpy() >= 0))
    loss = own_totals(
        f"maximize f1 subject to {text} >= {0.9 * now:.6f}, {text} <= {1.2 * now:.6f}"
    )
    loss.observe(z, y)
    low, high = (c.excess for c in loss.recover().constraints)
    assert low == pytest.approx(round(0.9 * now, 6) - now)
    assert high == pytest.approx(now - round(1.2 * now, 6))


def best_at(y, z, value, held):
    """The best value over the thresholds at which a bound is held."""
    found = [table(y, z >= t) for t in z]
    return max(value(*x) for x in found if held(*x))


#: name -> goal in our words, its value from scores
POINTS = {
    "roc_auc": ("auroc", roc_auc_score),
    "pr_auc": ("average_precision", average_precision_score),
    "precision_at_recall": (
        "precision_at_recall(0.7)",
        lambda y, z: best_at(
            y, z, RATES["precision"][1], lambda tp, fp, fn, *_: tp >= 0.7 * (tp + fn)
        ),
    ),
    "recall_at_precision": (
        "recall_at_precision(0.6)",
        lambda y, z: best_at(
            y, z, RATES["true_positive_rate"][1], lambda tp, fp, *_: tp >= 0.6 * (tp + fp)
        ),
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_every_curve_and_point_is_trained_with_thresholds_of_its_own(name):
    text, value = POINTS[name]
    z, y = rows(200)
    exact = sp.metric(text)(y.numpy(), z.numpy())
    assert exact == pytest.approx(value(y.numpy(), z.numpy()))
    loss = bare(f"maximize {text}", "lagrangian", memory=500, dual="swap").double()
    leaf = z.clone().requires_grad_()
    for _ in range(800):  # the scores stay: only thresholds and multipliers move
        shown = loss(leaf, y)
    (gradient,) = torch.autograd.grad(shown, leaf)
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0
    found = loss.recover()
    assert len(found.thresholds) == (10 if "auc" in name else 1)
    assert found.value == pytest.approx(exact, abs=0.05)
    assert max(c.excess for c in found.constraints) <= 0.03


def test_inverse_precision_at_a_recall():
    """Its bound stands as a constraint: the language has no inverse of a best value."""
    z, y = rows()
    loss = own_totals("minimize (tp + fp) / tp subject to recall >= 0.7")
    loss.observe(z, y)
    assert loss.recover().value == pytest.approx(1 / sp.precision(y.numpy(), z.numpy() >= 0))


# --- prices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dual", DUALS)
@pytest.mark.parametrize("augment", [0.0, 2.0])
def test_the_gradient_is_that_of_the_lagrangian_written_out(dual, augment):
    """w₀ (1 − recall) + [w + ρ v]₊ (b D̃ − Ñ)/P over soft cells, v over exact ones."""
    z, y = rows()
    loss = own_totals(HELD, dual=dual, augment=augment, sharpness=3.0)
    for _ in range(4):  # multipliers that are not those of the start
        loss.observe(z, y)
    mover = loss.program.dual
    top, paid = mover.weights(loss.multipliers.clone().numpy(), (False,))
    leaf = z.clone().requires_grad_()
    ours = torch.autograd.grad(loss(leaf, y), leaf)[0]
    other = z.clone().requires_grad_()
    soft = torch.sigmoid(3 * other)
    positives = y.double().sum()
    tp, decided = (soft * y).sum(), soft.sum()
    hard = (z >= 0).double()
    v = 0.8 - (hard * y).sum() / hard.sum()
    charged = max(0.0, float(paid[0]) + augment * float(v))
    written = top * (1 - tp / positives) + charged * (0.8 * decided - tp) / positives
    theirs = torch.autograd.grad(written, other)[0]
    torch.testing.assert_close(ours, theirs, rtol=2e-3 if augment else 1e-7, atol=1e-9)
    assert charged > 0


@pytest.mark.parametrize("dual", DUALS)
def test_multipliers_move_by_exact_decisions_alone(dual):
    """Soft decisions that break the bound leave the multiplier at rest while the hard ones hold."""
    y = torch.tensor([1, 1, 0, 0, 0, 0, 0, 0])
    z = torch.tensor([0.1, 0.1] + [-0.1] * 6, dtype=torch.float64)  # right, and hardly
    loss = own_totals(HELD, dual=dual)
    before = loss.recover().constraints[0].multiplier
    for _ in range(5):
        loss.observe(z, y)
    assert loss.recover().constraints[0].multiplier <= max(before, 0.01)
    assert loss.recover().constraints[0].excess == pytest.approx(-0.2)
    soft = torch.sigmoid(5 * z)
    assert (soft * y).sum() / soft.sum() < 0.8, "soft precision is broken"
    for _ in range(5):
        loss.observe(-z, y)
    assert loss.recover().constraints[0].multiplier > 1e-3


def test_where_nothing_is_decided_a_floor_on_precision_gets_cheaper():
    z, y = rows()
    loss = own_totals(HELD)
    for _ in range(5):
        loss.observe(z, y)
    dear = loss.multipliers.item()
    for _ in range(3):
        loss.observe(z - 100, y)
    assert loss.multipliers.item() == pytest.approx(dear - 3 * 0.2, abs=1e-6)


def test_multipliers_are_in_the_units_of_the_constraint():
    """λ (b D − N)/P is λ D/P for each unit of b − N/D."""
    z, y = rows()
    loss = own_totals(HELD)
    loss.observe(z, y)
    (held,) = loss.recover().constraints
    decided = float((z >= 0).sum() / y.sum())
    assert held.multiplier == pytest.approx(loss.multipliers.item() * decided)


def test_classes_and_labels_are_read_exactly():
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(300, 3, generator=rng, dtype=torch.float64)
    y = torch.randint(3, (300,), generator=rng)
    loss = own_totals(
        "maximize macro(f1) subject to recall.of(2) >= 0.5", Task.multiclass(range(3))
    )
    loss.observe(z, y)
    recall = float((z.argmax(1)[y == 2] == 2).double().mean())
    assert loss.recover().constraints[0].excess == pytest.approx(0.5 - recall)
    several = own_totals(
        'maximize macro(f1) subject to precision.of("b") >= 0.5', Task.multilabel(["a", "b", "c"])
    )
    labels = torch.randint(2, (300, 3), generator=rng)
    several.observe(z, labels)
    precision = float(labels[:, 1][z[:, 1] >= 0].double().mean())
    assert several.recover().constraints[0].excess == pytest.approx(0.5 - precision)


def test_groups_are_read_exactly():
    z, y = rows()
    group = torch.arange(400) % 2
    task = Task.binary(groups={"g": ["x", "y"]})
    goals = {
        'gap(recall, by="g") <= 0.01': lambda a, b: abs(a - b) - 0.01,
        'worst(recall, by="g") >= 0.9': None,
        'recall.on(g="y") >= 0.9': lambda a, b: 0.9 - b,
    }
    a, b = (float((z >= 0)[y & (group == g)].double().mean()) for g in (0, 1))
    for text, excess in goals.items():
        loss = own_totals(f"maximize accuracy subject to {text}", task)
        loss.observe(z, y, group=group)
        found = [c.excess for c in loss.recover().constraints]
        wanted = [0.9 - a, 0.9 - b] if excess is None else [excess(a, b)]
        assert found == pytest.approx(wanted)


# --- thresholds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["maximize auroc(max_fpr=0.4)", "maximize auprc(min_recall=0.5)"])
def test_the_tilt_is_the_slope_of_the_lagrangian_in_the_threshold(goal):
    """By differences of the value, with multipliers held and no augmentation."""
    z, y = rows()
    loss = own_totals(goal, points=3, augment=0.0)
    for _ in range(8):
        loss.observe(z, y)
    # the next call moves the thresholds first, and then reads the tilt there with these multipliers
    state = loss.multipliers.clone()
    loss.observe(z, y)
    tilt, at = loss.program.tilt.clone(), loss.program.reader.thresholds.clone()

    def value(thresholds):
        twin = copy.deepcopy(loss).eval()
        twin.program.reader.thresholds.copy_(thresholds)
        twin.multipliers.copy_(state)
        return twin(z, y).item()

    assert tilt.abs().max() > 1e-3
    for t in range(3):
        bump = torch.zeros(3, dtype=torch.float64)
        bump[t] = 1e-5
        slope = (value(at + bump) - value(at - bump)) / 2e-5
        assert tilt[t].item() == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_a_run_is_taken_up_where_it_was_left():
    batches = [rows(64, seed) for seed in range(20)]

    def made():
        return bare("maximize auroc(max_fpr=0.3)", "lagrangian", points=4, memory=300).double()

    whole, half, rest = made(), made(), made()
    for z, y in batches:
        shown = whole.observe(z, y)
    for z, y in batches[:9]:
        half.observe(z, y)
    rest.load_state_dict(half.state_dict())
    for z, y in batches[9:]:
        again = rest.observe(z, y)
    assert torch.equal(shown, again)
    assert rest.recover() == whole.recover()
    assert max(map(abs, whole.recover().thresholds)) > 0.1


def test_evaluation_moves_nothing():
    z, y = rows()
    loss = bare("maximize auroc", "lagrangian", points=3).double()
    for _ in range(3):
        loss.observe(z, y)
    before = copy.deepcopy(loss.state_dict())
    loss.eval()
    loss((z + 1).requires_grad_(), y)
    assert all(
        torch.equal(a, b) for a, b in zip(before.values(), loss.state_dict().values(), strict=True)
    )


# --- what it comes to ----------------------------------------------------------------------------


def data(n=2000, features=10, informative=4, seed=1):
    x, y = make_classification(
        n,
        features,
        n_informative=informative,
        n_redundant=0 if features == 2 else 2,
        weights=[0.8 if features == 2 else 0.85],
        flip_y=0.02,
        class_sep=1.0 if features == 2 else 0.8,
        random_state=seed,
    )
    return torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32), torch.tensor(y)


def trained(loss, x, y, group=None, steps=500, batch=256):
    """Logits of a linear model trained by the loss alone."""
    rng = torch.Generator().manual_seed(0)
    model = torch.nn.Linear(x.shape[1], 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        row = torch.randint(len(y), (batch,), generator=rng)
        optimizer.zero_grad()
        loss(model(x[row])[:, 0], y[row], group=None if group is None else group[row]).backward()
        optimizer.step()
        falling.step()
    return model(x)[:, 0].detach()


def best_recall(z, y, floor):
    order = torch.argsort(-z)
    hits = torch.cumsum((y[order] == 1).double(), 0)
    held = hits / torch.arange(1, len(y) + 1) >= floor
    return float((hits * held).max() / (y == 1).sum())


@pytest.mark.parametrize("dual", DUALS)
def test_recall_under_a_floor_on_precision_against_brute_force(dual):
    """Two features: every direction and every cut. Cross-entropy ranks by a worse direction."""
    x, y = data(features=2, informative=2, seed=3)
    turns = torch.arange(360) * torch.pi / 180
    every = x @ torch.stack([turns.cos(), turns.sin()])
    best = max(best_recall(z, y, 0.8) for z in every.T)
    plain = best_recall(trained(bare("maximize f1", "cross-entropy"), x, y), y, 0.8)
    z = trained(bare(HELD, "lagrangian", memory=2000, dual=dual), x, y)
    recall, precision = (float(m(y.numpy(), (z >= 0).numpy())) for m in (sp.recall, sp.precision))
    assert precision >= 0.77
    assert recall >= best - 0.04
    assert recall > plain
    assert plain < best - 0.05


def test_a_gap_between_groups_is_closed():
    x, y = data()
    rng = np.random.default_rng(0)
    group = torch.tensor((rng.random(len(y)) < np.where(y == 1, 0.75, 0.4)).astype(int))
    x = torch.cat([x, group[:, None] - 0.5], 1)
    task = Task.binary(groups={"group": ["a", "b"]})
    goal = Goal.parse('maximize accuracy subject to gap(positive_rate, by="group") <= 0.05')

    def judged(z):
        decided = (z >= 0).double()
        gap = abs(float(decided[group == 0].mean() - decided[group == 1].mean()))
        return float((decided == y).double().mean()), gap

    accuracy, gap = judged(trained(bare(goal, "lagrangian", task=task, memory=2000), x, y, group))
    plain, wide = judged(trained(bare("maximize accuracy", "cross-entropy"), x, y))
    assert wide > 0.1
    assert gap <= 0.07
    assert accuracy >= plain - 0.05


def test_a_curve_is_trained_where_it_is_asked_for():
    x, y = data(3000)
    goal = "auprc(min_recall=0.9)"
    curve = sp.metric(goal)
    loss = bare(f"maximize {goal}", "lagrangian", points=4, memory=2000)
    z = trained(loss, x, y)
    plain = trained(bare("maximize f1", "cross-entropy"), x, y)
    assert curve(y.numpy(), z.numpy()) > curve(y.numpy(), plain.numpy()) + 0.01
    assert loss.recover().value == pytest.approx(curve(y.numpy(), z.numpy()), abs=0.05)


def test_the_method_says_what_it_is():
    made = Lagrangian(surrogate="ramp")
    assert made.surrogate == "ramp"
    assert Lagrangian(rate=3.0).mover(True).rate == 3.0
    assert Lagrangian("swap").mover(True).rate == 3 * Lagrangian("swap").mover().rate
