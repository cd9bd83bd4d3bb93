"""Training under conditions that break losses: no NaN and no infinity, anywhere, ever.

Every method × every condition, a small network, 15 steps. What is looked at after each step: the
loss, the gradients, the parameters, and all that the loss remembers.
"""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from setpoint.goals import Task
from setpoint.losses import GoalLoss
from setpoint.methods import (
    Costs,
    CrossEntropy,
    Exact,
    Implicit,
    Lagrangian,
    Pairwise,
    SoftSet,
)
from setpoint.surrogates import Annealed


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return GoalLoss(goal, method, guard=False, **options)


STEPS = 15
FEATURES = 4
CLASSES, LABELS = Task.multiclass(range(5)), Task.multilabel(["a", "b", "c"])
GROUPS = Task.binary(groups={"g": ["x", "y"]})
HELD = "maximize recall subject to precision >= 0.9"
#: name -> goal, method, task
LOSSES = {
    "soft f1": ("maximize f1", SoftSet(), None),
    "soft f1, sigmoid": ("maximize f1", SoftSet("sigmoid", cross_entropy=0.0), None),
    "soft f1, grid": ("maximize f1", SoftSet(thresholds="grid", cross_entropy=0.0), None),
    "soft mcc": ("maximize mcc", SoftSet(cross_entropy=0.0), None),
    "soft g_mean": ("maximize g_mean", SoftSet(cross_entropy=0.0), None),
    "soft area": ("maximize auroc", SoftSet(thresholds="grid", cross_entropy=0.0), None),
    "soft constrained": (HELD, SoftSet(cross_entropy=0.0, penalty=100.0), None),
    "soft fair": ('maximize f1 subject to gap(recall, by="g") <= 0.01', SoftSet(), GROUPS),
    "soft macro f1": ("maximize macro(f1)", SoftSet(cross_entropy=0.0), CLASSES),
    "soft mcc, classes": ("maximize mcc", SoftSet(cross_entropy=0.0), CLASSES),
    "soft mcc, dynamic": ("maximize mcc", SoftSet(membership="dynamic"), CLASSES),
    "soft macro f1, dynamic and cold": (
        "maximize macro(f1)",
        SoftSet(membership="dynamic", temperature=Annealed(1, 1e-3, 10), cross_entropy=0.0),
        CLASSES,
    ),
    "soft labels": ("maximize macro(f1)", SoftSet(cross_entropy=0.0), LABELS),
    "costs f1": ("maximize f1", Costs(), None),
    "costs f1, truncated": ("maximize f1", Costs(truncate=2.0), None),
    "costs constrained": (HELD, Costs(rate=100.0), None),
    "costs macro f1": ("maximize macro(f1)", Costs(), CLASSES),
    "costs mcc, classes": ("maximize mcc", Costs(), CLASSES),
    "costs labels": ("maximize macro(f1)", Costs(), LABELS),
    "exact constrained": (HELD, Exact(dual=100.0, anneal=3), None),
    "exact mcc, classes": ("maximize mcc", Exact(anneal=3), CLASSES),
    "exact labels": ("maximize macro(f1)", Exact(anneal=3), LABELS),
    "lagrangian constrained": (HELD, Lagrangian(rate=100.0, augment=10.0), None),
    "lagrangian swap": (HELD, Lagrangian("swap", rate=100.0), None),
    "lagrangian fair": ('maximize f1 subject to gap(recall, by="g") <= 0.01', Lagrangian(), GROUPS),
    "lagrangian curve": ("maximize average_precision", Lagrangian(points=3), None),
    "lagrangian mcc, classes": ("maximize mcc", Lagrangian(), CLASSES),
    "implicit point": ("minimize fnr_at_fpr(0.01)", Implicit(every=1), None),
    "implicit curve": ("maximize auprc(min_recall=0.9)", Implicit(points=3, every=1), None),
    "implicit constrained": (HELD, Implicit(every=1), None),
    "implicit mcc, classes": ("maximize mcc", Implicit(every=1), CLASSES),
    "balanced": ("maximize f1", CrossEntropy("balanced"), None),
    "auroc": ("maximize auroc", Pairwise(), None),
    "auroc, logistic": ("maximize auroc(max_fpr=0.2)", Pairwise("logistic"), None),
    "average precision": ("maximize average_precision", Pairwise(), None),
}


@dataclass(frozen=True)
class Condition:
    """One way in which data, model or training are unkind."""

    rows: int = 16
    positives: float = 0.2
    constant: bool = False  # features
    scale: float = 1.0  # of the features: 1e4 makes extreme logits
    model: torch.dtype = torch.float32
    logits: torch.dtype | None = None  # what they are cast to
    sorted: bool = False  # every batch of one class, the classes in turn
    weight: str | None = None
    accumulate: int = 1
    rate: float = 0.05
    memory: float = 200
    warmup: int = 1


CONDITIONS = {
    "batches of one class": Condition(sorted=True),
    "batches of one row": Condition(rows=1),
    "no positives": Condition(positives=0.0),
    "no negatives": Condition(positives=1.0),
    "constant features": Condition(constant=True),
    "logits of 1e4": Condition(scale=1e4),
    "bfloat16 model": Condition(model=torch.bfloat16),
    "float16 logits": Condition(logits=torch.float16, scale=30.0),
    "weights 0 and 1e6": Condition(weight="0 and 1e6"),
    "all weights 0": Condition(weight="all 0"),
    "accumulation": Condition(accumulate=3, rows=3),
    "a rate of 100": Condition(rate=100.0),
    "no memory": Condition(memory=0, warmup=0),
}
WORST = {
    name: replace(condition, scale=1e3, rate=10.0, model=torch.bfloat16)
    for name, condition in CONDITIONS.items()
    if name in ("batches of one class", "weights 0 and 1e6", "accumulation")
}
CONDITIONS |= {f"{name}, everything at once": condition for name, condition in WORST.items()}


def drawn(task, condition, step, rng):
    """Features and target of one batch; the last class of several never occurs."""
    n = condition.rows
    kind = "binary" if task is None else task.kind
    if kind == "multiclass":
        target = torch.randint(4, (n,), generator=rng)
        if condition.sorted:
            target = torch.full((n,), step % 4)
        if condition.positives == 0:
            target = torch.zeros(n, dtype=torch.long)
        first = target
    else:
        shape = (n,) if kind == "binary" else (n, 3)
        target = (torch.rand(shape, generator=rng) < condition.positives).long()
        if condition.sorted:
            target = torch.full(shape, (step // 3) % 2)
        first = target if target.ndim == 1 else target[:, 0]
    x = torch.randn(n, FEATURES, generator=rng) + first[:, None]
    x = torch.ones_like(x) if condition.constant else x
    return condition.scale * x, target


def weights(kind, n, rng):
    if kind is None:
        return None
    if kind == "all 0":
        return torch.zeros(n)
    return torch.tensor([0.0, 1e6, 1.0])[torch.randint(3, (n,), generator=rng)]


def finite(*tensors):
    # a sum of finite numbers is finite in float64, and costs half of isfinite().all()
    return all(math.isfinite(t.double().sum().item()) for t in tensors)


def ended(goal, method, task, condition):
    """What was not finite, and at which step; None if nothing was."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    width = 1 if task is None or task.kind == "binary" else len(task.classes)
    model = nn.Sequential(nn.Linear(FEATURES, 6), nn.ReLU(), nn.Linear(6, width))
    model = model.to(condition.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=condition.rate)
    loss = bare(
        goal,
        method,
        task=task,
        accumulate=condition.accumulate,
        memory=condition.memory,
        warmup=condition.warmup,
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(condition.accumulate):
            x, target = drawn(task, condition, step, rng)
            logits = model(x.to(condition.model))
            if condition.logits is not None:
                logits = logits.to(condition.logits)
            if not finite(logits):
                return f"the model's own logits, step {step}"
            group = torch.arange(condition.rows) % 2 if task is GROUPS else None
            weight = weights(condition.weight, condition.rows, rng)
            value = loss(logits, target, weight=weight, group=group)
            (value / condition.accumulate).backward()
            if not finite(value.detach()):
                return f"the loss, step {step}"
            if not finite(loss.totals, loss.prices, loss.multipliers):
                return f"the totals, prices or multipliers, step {step}"
        if not finite(*(p.grad for p in model.parameters())):
            return f"the gradients, step {step}"
        # squared losses grow without bound: at a rate of 100 the model itself would overflow
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        if not finite(*model.parameters()):
            return f"the parameters, step {step}"
    return next((name for name, buffer in loss.named_buffers() if not finite(buffer)), None)


@pytest.mark.parametrize("words", CONDITIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_nothing_is_ever_not_finite(name, words):
    assert ended(*LOSSES[name], CONDITIONS[words]) is None


@pytest.mark.parametrize("far", [60.0, 90.0, 100.0])
def test_a_class_that_is_nearly_never_decided_and_never_there(far):
    """Its F1 is 0 over a mass near the least that a float holds."""
    loss = bare("maximize macro(f1)", SoftSet(cross_entropy=0.0), task=Task.multiclass(range(3)))
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=rng)
    logits[:, 2] = -far
    for _ in range(4):
        leaf = logits.clone().requires_grad_()
        loss(leaf, torch.arange(8) % 2).backward()
        assert finite(loss.totals, loss.prices, leaf.grad)


def test_there_are_at_least_300_runs():
    assert len(LOSSES) * len(CONDITIONS) >= 300
