"""The compiled loss is the eager one: values, gradients and what is remembered."""

import pytest
import torch

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


# torch's own tracer instantiates autograd functions, and warns of it
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit:DeprecationWarning",  # torch's own import
)

CLASSES, LABELS = Task.multiclass(range(3)), Task.multilabel(["a", "b"])
HELD = "maximize recall subject to precision >= 0.8"
LOSSES = {
    "soft f1": ("maximize f1", SoftSet(), None, {}),
    "soft f1, grid": ("maximize f1", SoftSet(thresholds="grid"), None, {}),
    "soft constrained": (HELD, SoftSet(), None, {}),
    "costs constrained": (HELD, Costs(), None, {}),
    "costs macro f1": ("maximize macro(f1)", Costs(), CLASSES, {}),
    "balanced": ("maximize f1", CrossEntropy("balanced"), None, {}),
    "soft f1 in parts": ("maximize f1", SoftSet(), None, {"accumulate": 2}),
    "soft f1 at its own totals": ("maximize f1", SoftSet(), None, {"memory": 0}),
    "implicit point": ("minimize fnr_at_fpr(0.2)", Implicit(every=2), None, {}),
    "implicit constrained": (HELD, Implicit(every=2), None, {}),
    "lagrangian constrained": (HELD, Lagrangian("swap"), None, {}),
    "exact constrained": (HELD, Exact(anneal=5), None, {}),
}
SLOW = {
    "soft f1, sigmoid and cooling": (
        "maximize f1",
        SoftSet("sigmoid", temperature=Annealed(1, 0.1, 5)),
        None,
        {},
    ),
    "soft f1, cooling": ("maximize f1", SoftSet(temperature=Annealed(1, 0.1, 5)), None, {}),
    "soft mcc": ("maximize mcc", SoftSet(), None, {}),
    "soft area": ("maximize auroc", SoftSet(thresholds="grid"), None, {}),
    "soft macro f1": ("maximize macro(f1)", SoftSet(), CLASSES, {}),
    "soft mcc, dynamic": ("maximize mcc", SoftSet(membership="dynamic"), CLASSES, {}),
    "soft labels": ("maximize macro(f1)", SoftSet(), LABELS, {}),
    "costs truncated": ("maximize f1", Costs(truncate=Annealed(4, 1, 5)), None, {}),
    "costs mcc": ("maximize mcc", Costs(), None, {}),
    "costs equation": ("maximize f1 subject to positive_rate == 0.3", Costs(), None, {}),
    "costs in parts": (HELD, Costs(), None, {"accumulate": 3}),
    "costs labels": ("maximize macro(f1)", Costs(), LABELS, {}),
    "implicit curve": ("maximize auprc(min_recall=0.2)", Implicit(points=3, every=1), None, {}),
    "exact curve": ("maximize average_precision", Exact(anneal=5, anchors=3), None, {}),
    "exact macro f1": ("maximize macro(f1)", Exact(anneal=5), CLASSES, {}),
    "exact labels": ("maximize macro(f1)", Exact(anneal=5), LABELS, {}),
    "lagrangian curve": ("maximize auroc(max_fpr=0.5)", Lagrangian(points=3), None, {}),
    "lagrangian parts": ("maximize auroc", Lagrangian(points=2), None, {"accumulate": 2}),
    "lagrangian equation": (
        "maximize f1 subject to positive_rate == 0.3",
        Lagrangian("external"),
        None,
        {},
    ),
    "lagrangian macro f1": ("maximize macro(f1)", Lagrangian(), CLASSES, {}),
    "lagrangian labels": ("maximize macro(f1)", Lagrangian(surrogate="linear"), LABELS, {}),
    "cross-entropy": ("maximize f1", CrossEntropy(), None, {}),
    "balanced classes": ("maximize accuracy", CrossEntropy("balanced"), CLASSES, {}),
    "auroc": ("maximize auroc", Pairwise(cross_entropy=0.2), None, {}),
    "average precision": ("maximize average_precision", Pairwise(), None, {}),
}
CASES = [
    *(pytest.param(*case, id=name) for name, case in LOSSES.items()),
    *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, case in SLOW.items()),
]


def batch(task, seed, n=24):
    rng = torch.Generator().manual_seed(seed)
    width = () if task is None else (len(task.classes),)
    logits = 1.5 * torch.randn((n, *width), generator=rng, dtype=torch.float64)
    target = (torch.rand(logits.shape, generator=rng) < 0.3).long()
    if task is CLASSES:
        target = torch.randint(3, (n,), generator=rng)
    weight = 0.1 + torch.rand(n, generator=rng, dtype=torch.float64)
    return logits, target, weight


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(("goal", "method", "task", "options"), CASES)
def test_compiled_is_eager(goal, method, task, options):
    eager, twin = (bare(goal, method, task=task, **options) for _ in range(2))
    follow(eager, twin, task, torch.float32, rtol=1e-4, atol=1e-6)


GUARDED = {
    "costs constrained": (HELD, "costs", None, {}),
    "costs constrained, in parts": (HELD, "costs", None, {"accumulate": 2}),
    "soft constrained": (HELD, "soft-set", None, {}),
    "implicit constrained": (HELD, Implicit(every=2), None, {}),
    "costs macro f1": ("maximize macro(f1)", "costs", CLASSES, {}),
    "soft class floor": (
        "maximize accuracy subject to recall.of(2) >= 0.9",
        "soft-set",
        CLASSES,
        {},
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_loss_reads_its_window_out_of_the_graph(name):
    """60 steps: three readings, at the last of which the method has all its share."""
    goal, method, task, options = GUARDED[name]
    eager, twin = (GoalLoss(goal, method, task=task, **options) for _ in range(2))
    follow(eager, twin, task, torch.float32, steps=60, rtol=1e-4, atol=1e-6)
    if eager.program.searches:
        assert eager.threshold != 0
        assert twin.threshold == pytest.approx(eager.threshold, rel=1e-4)
    assert torch.equal(twin.program.evidence, eager.program.evidence)
    torch.testing.assert_close(twin.program.price_now, eager.program.price_now, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", ["soft f1", "soft f1 in parts", "costs constrained"])
def test_compiled_is_eager_in_double(name):
    goal, method, task, options = LOSSES[name]
    eager, twin = (bare(goal, method, task=task, **options).double() for _ in range(2))
    follow(eager, twin, task, torch.float64, rtol=1e-9, atol=1e-12)


def follow(eager, twin, task, dtype, steps=6, **close):
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for step in range(steps):
        logits, target, weight = batch(task, step)
        found = []
        for loss in (eager, compiled):
            leaf = logits.to(dtype).requires_grad_()
            value = loss(leaf, target, weight=weight.to(dtype))
            found.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(theirs, ours, **close)
        for name in ("totals", "prices", "multipliers", "steps"):
            torch.testing.assert_close(getattr(twin, name), getattr(eager, name), **close)


def test_a_model_and_its_loss_in_one_graph():
    """Forward, loss and backward of a training step, compiled together."""
    torch.manual_seed(0)
    ends = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        loss = bare("maximize f1")

        def step(x, y, model=model, loss=loss):
            return loss(model(x), y)

        call = torch.compile(step, fullgraph=True, backend="aot_eager") if compiled else step
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        rng = torch.Generator().manual_seed(1)
        for _ in range(5):
            y = (torch.rand(20, generator=rng) < 0.4).long()
            x = torch.randn(20, 3, generator=rng) + y[:, None]
            optimizer.zero_grad()
            call(x, y).backward()
            optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-6)
    assert ends[0].abs().max() > 0.1


def test_the_compiled_loss_takes_batches_of_other_sizes():
    eager, twin = (bare("maximize f1") for _ in range(2))
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for step, n in enumerate((24, 24, 7, 33)):
        logits, target, _ = batch(None, step, n)
        logits = logits.float().requires_grad_()
        assert compiled(logits, target).item() == pytest.approx(
            eager(logits, target).item(), rel=1e-5
        )
    torch.testing.assert_close(twin.totals, eager.totals)
    assert eager.totals.sum() > 0
