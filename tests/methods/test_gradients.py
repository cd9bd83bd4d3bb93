"""The closed-form gradients against autograd through the metric trees themselves."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import setpoint as sp
from setpoint.losses import GoalLoss
from setpoint.methods import GRID, Costs, SoftSet
from setpoint.surrogates import Linear, Ramp, Sigmoid


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return GoalLoss(goal, method, guard=False, **options)


BINARY = [
    "maximize f1",
    "maximize f_beta(2)",
    "maximize accuracy",
    "maximize jaccard",
    "maximize mcc",
    "maximize g_mean",
    "maximize balanced_accuracy",
    "maximize kappa",
    "minimize cost(fp=1, fn=10)",
    "maximize youden",
    "maximize 0.5 * precision + 0.5 * recall",
]
MULTICLASS = [
    "maximize macro(f1)",
    "maximize micro(f1)",
    "maximize weighted(f1)",
    "maximize accuracy",
    "maximize mcc",
    "maximize balanced_accuracy",
    "maximize macro(f_beta(0.25))",
    'maximize worst(recall, by="class")',
    "maximize recall.of(1)",
]


def rows(seed, n=60, width=None, positives=0.3):
    rng = torch.Generator().manual_seed(seed)
    if width is None:
        logits = 2 * torch.randn(n, generator=rng, dtype=torch.float64)
        target = (torch.rand(n, generator=rng) < positives).long()
    else:
        logits = 2 * torch.randn(n, width, generator=rng, dtype=torch.float64)
        target = torch.randint(width, (n,), generator=rng)
    weight = torch.rand(n, generator=rng, dtype=torch.float64) + 0.1
    return logits.requires_grad_(), target, weight


def gradients(loss, reference, logits):
    """The two gradients of two scalars in the logits."""
    (ours,) = torch.autograd.grad(loss, logits)
    (theirs,) = torch.autograd.grad(reference, logits)
    return ours, theirs


@pytest.mark.parametrize("surrogate", [Linear(), Linear(delta=0.1), Ramp(), Sigmoid()])
@pytest.mark.parametrize("text", BINARY)
def test_a_batch_at_its_own_totals_has_the_metrics_gradient(text, surrogate):
    logits, target, weight = rows(1)
    loss = bare(text, SoftSet(surrogate, cross_entropy=0.0), memory=0, warmup=0).double()
    value = loss(logits, target, weight=weight)
    goal = loss.goal
    member = surrogate.value(torch.sigmoid(logits))
    reference = goal.objective.soft(target, member, sample_weight=weight)
    high = goal.objective.interval()[1]
    assert value.item() == pytest.approx((high - reference if goal.sign > 0 else reference).item())
    ours, theirs = gradients(value, -goal.sign * reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("surrogate", [Linear(), Sigmoid()])
def test_several_thresholds_are_the_mean_of_each(surrogate):
    logits, target, weight = rows(2)
    method = SoftSet(surrogate, thresholds="grid", cross_entropy=0.25)
    value = bare("maximize f1", method, memory=0, warmup=0).double()(logits, target, weight=weight)
    p = torch.sigmoid(logits)
    scores = [sp.f1.soft(target, surrogate.at(t).value(p), sample_weight=weight) for t in GRID]
    entropy = F.binary_cross_entropy_with_logits(logits, target.double(), weight, reduction="sum")
    reference = 0.75 * (1 - sum(scores) / 9) + 0.25 * entropy / weight.sum()
    assert value.item() == pytest.approx(reference.item())
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("membership", ["softmax", "dynamic"])
@pytest.mark.parametrize("text", MULTICLASS)
def test_several_classes(text, membership):
    logits, target, weight = rows(3, width=4)
    task = sp.Task.multiclass(range(4))
    method = SoftSet(cross_entropy=0.0, membership=membership, temperature=0.7)
    loss = bare(text, method, task=task, memory=0, warmup=0).double()
    value = loss(logits, target, weight=weight)
    member = memberships(logits, membership, 0.7)
    reference = loss.goal.objective.soft(target, member, sample_weight=weight, task=task)
    assert value.item() == pytest.approx(1 - reference.item())
    ours, theirs = gradients(value, -reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


def memberships(logits, kind, temperature):
    """Soft memberships written out again, without the package's closed forms."""
    if kind == "softmax":
        return torch.softmax(logits / temperature, 1)
    p = torch.softmax(logits, 1)
    tau = p.detach().topk(2, 1).values.mean(1)
    columns = []
    for i in range(len(p)):
        t = float(tau[i])
        columns.append(Linear(t).limit(temperature).value(p[i]))
    raw = torch.stack(columns)
    return raw / raw.sum(1, keepdim=True)


@pytest.mark.parametrize("text", ["maximize macro(f1)", 'maximize recall.of("b")'])
def test_several_labels(text):
    rng = torch.Generator().manual_seed(4)
    logits = torch.randn(50, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    target = (torch.rand(50, 3, generator=rng) < 0.4).long()
    task = sp.Task.multilabel(["a", "b", "c"])
    loss = bare(text, SoftSet(cross_entropy=0.3), task=task, memory=0, warmup=0).double()
    value = loss(logits, target)
    member = Linear().value(torch.sigmoid(logits))
    entropy = F.binary_cross_entropy_with_logits(logits, target.double())
    reference = 0.7 * (1 - loss.goal.objective.soft(target, member, task=task)) + 0.3 * entropy
    assert value.item() == pytest.approx(reference.item())
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        'maximize f1 subject to gap(positive_rate, by="group") <= 0.01',
        'maximize worst(recall, by="group")',
        'maximize recall subject to precision.on(group="b") >= 0.95',
    ],
)
def test_groups(text):
    logits, target, weight = rows(5)
    codes = torch.arange(60) % 2
    task = sp.Task.binary(groups={"group": ["a", "b"]})
    loss = bare(text, SoftSet(cross_entropy=0.0, penalty=1), task=task, memory=0, warmup=0)
    value = loss.double()(logits, target, weight=weight, group=codes)
    member = Linear().value(torch.sigmoid(logits))
    names = np.array(["a", "b"])[codes.numpy()]

    def soft(expression):
        return expression.soft(target, member, sample_weight=weight, group=names, task=task)

    reference = -soft(loss.goal.objective)
    for constraint in loss.goal.constraints:
        if str(constraint.left).startswith("precision"):
            on = torch.as_tensor(names == "b") * weight
            tp, decided = (member * target * on).sum(), (member * on).sum()
            excess = (0.95 * decided - tp) / (target * on).sum()
            pulled = 0.95 * decided - tp
            excess = pulled / (target * on).sum().detach()
        else:
            excess = soft(constraint.left) - 0.01
        assert excess > 0
        reference = reference + excess
    assert value.item() == pytest.approx(1 + reference.item())
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_soft_area_has_both_end_points():
    logits, target, weight = rows(6)
    loss = bare(
        "maximize auroc", SoftSet(thresholds="grid", cross_entropy=0.0), memory=0, warmup=0
    ).double()
    value = loss(logits, target, weight=weight)
    p, w, y = torch.sigmoid(logits), weight, target.double()
    fpr, tpr = [torch.zeros(())], [torch.zeros(())]
    for t in reversed(GRID):
        h = Linear(t).value(p)
        fpr.append((h * w * (1 - y)).sum() / (w * (1 - y)).sum())
        tpr.append((h * w * y).sum() / (w * y).sum())
    fpr, tpr = (torch.stack([*x, torch.ones((), dtype=torch.float64)]) for x in (fpr, tpr))
    reference = 1 - torch.trapezoid(tpr, fpr)
    assert value.item() == pytest.approx(reference.item())
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    perfect = torch.where(target == 1, 1e4, -1e4).double()
    assert loss(perfect, target, weight=weight).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("text", ["maximize f1", "maximize mcc", "maximize accuracy"])
def test_costs_are_the_metrics_own_prices(text):
    logits, target, _ = rows(7)
    loss = bare(text, Costs(floor=0.0), memory=0, warmup=0).double()
    value = loss(logits, target)
    decided = (logits.detach() >= 0).double().requires_grad_()
    (worth,) = torch.autograd.grad(loss.goal.objective.soft(target, decided), decided)
    # what deciding rightly is worth, for each row: + for positives, − for negatives
    worth = torch.where(target == 1, worth, -worth)
    assert (worth > 0).all()
    weight = worth / worth.mean()
    entropy = F.binary_cross_entropy_with_logits(logits, target.double(), reduction="none")
    ours, theirs = gradients(value, (weight * entropy).mean(), logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_costs_of_f1_are_two_minus_f_to_f():
    logits, target, _ = rows(8)
    loss = bare("maximize f1", Costs(floor=0.0), memory=0, warmup=0).double()
    loss(logits, target)
    worth = loss.prices.view(2, 2)
    f = sp.f1(target.numpy(), (logits >= 0).long().numpy())
    assert float(worth[1, 1] / worth[0, 0]) == pytest.approx((2 - f) / f)
    assert worth[0, 1] == 0
    assert worth[1, 0] == 0


def test_costs_of_recall_at_precision():
    logits, target, _ = rows(9)
    loss = bare(
        "maximize recall subject to precision >= 0.8", Costs(floor=0.0, rate=0.0, multipliers=[2.0])
    ).double()
    for _ in range(2):
        loss(logits, target)
    worth = loss.prices.view(2, 2)
    assert float(worth[1, 1] / worth[0, 0]) == pytest.approx((1 + 2 * 0.2) / (2 * 0.8))


def test_multipliers_settle_at_the_threshold():
    """For recall subject to precision >= α the closed form is λ = t / (α − t)."""
    loss = bare("maximize recall subject to precision >= 0.8", "costs")
    totals = np.array([[0.7, 0.1, 0.05, 0.15]])
    for t in (0.3, 0.5, 0.7):
        found = loss.program.multipliers_at(totals, t)
        assert float(found[0]) == pytest.approx(t / (0.8 - t))


@pytest.mark.parametrize("kind", ["cross-entropy", "balanced", "fixed"])
def test_cross_entropy_is_torchs(kind):
    logits, target, weight = rows(10, width=3)
    task = sp.Task.multiclass(range(3))
    options = {"balanced": {"class_weight": "balanced"}, "fixed": {"class_weight": [1, 2, 3]}}
    loss = bare(
        "maximize accuracy", "cross-entropy", task=task, memory=0, warmup=0, **options.get(kind, {})
    ).double()
    value = loss(logits, target, weight=weight)
    mass = torch.zeros(3, dtype=torch.float64).index_add(0, target, weight)
    u = {
        "cross-entropy": torch.ones(3),
        "balanced": 1 / mass,
        "fixed": torch.tensor([1.0, 2.0, 3.0]),
    }[kind].double()[target]
    entropy = F.cross_entropy(logits, target, reduction="none")
    reference = (weight * u * entropy).sum() / (weight * u).sum()
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", ["maximize auroc", "maximize average_precision"])
def test_pairs_of_a_batch(text):
    logits, target, weight = rows(11)
    loss = bare(text, "pairwise", cross_entropy=0.2, temperature=1.0).double()
    value = loss(logits, target, weight=weight)
    z_p, w_p = logits[target == 1], weight[target == 1]
    z_n, w_n = logits[target == 0], weight[target == 0]
    if text == "maximize auroc":
        pairs = (1 - (z_p[:, None] - z_n[None])).clamp(min=0) ** 2
        w = w_p[:, None] * w_n[None]
        reference = (w * pairs).sum() / w.sum()
    else:
        apart = logits[None] - z_p[:, None]
        step = torch.where(apart <= 0, 0.5 * apart.exp(), 1 - 0.5 * (-apart).exp())
        own = torch.nonzero(target == 1)[:, 0]
        step = step.index_put((torch.arange(len(own)), own), torch.ones(len(own)).double())
        above = (step * weight).sum(1)
        hits = (step * weight * target).sum(1)
        reference = 1 - (w_p * hits / above).sum() / w_p.sum()
    entropy = F.binary_cross_entropy_with_logits(logits, target.double(), weight, reduction="sum")
    reference = 0.8 * reference + 0.2 * entropy / weight.sum()
    assert value.item() == pytest.approx(reference.item())
    ours, theirs = gradients(value, reference, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)
