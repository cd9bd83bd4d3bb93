"""The running loss: what it promises of totals, gradients, parts of batches, and its state."""

import copy
import io
import logging
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score

import setpoint as sp
from setpoint._core.errors import DataError, KindError
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


K = 3
CLASSES, LABELS = Task.multiclass(range(K)), Task.multilabel(["a", "b", "c"])
GROUPS = Task.binary(groups={"g": ["x", "y"]})
#: name -> goal, method, task: losses that are functions of totals
SUMS = {
    "soft f1": ("maximize f1", SoftSet(), None),
    "soft f1, grid": ("maximize f1", SoftSet(thresholds="grid"), None),
    "soft f1, sigmoid": ("maximize f1", SoftSet("sigmoid"), None),
    "soft f1, cooling": ("maximize f1", SoftSet(temperature=Annealed(1, 0.1, 4)), None),
    "soft mcc": ("maximize mcc", SoftSet(), None),
    "soft area": ("maximize auroc", SoftSet(thresholds="grid"), None),
    "soft constrained": ("maximize recall subject to precision >= 0.8", SoftSet(), None),
    "soft fair": ('maximize f1 subject to gap(recall, by="g") <= 0.05', SoftSet(), GROUPS),
    "soft macro f1": ("maximize macro(f1)", SoftSet(), CLASSES),
    "soft mcc, dynamic": ("maximize mcc", SoftSet(membership="dynamic"), CLASSES),
    "soft labels": ("maximize macro(f1)", SoftSet(), LABELS),
    "costs f1": ("maximize f1", Costs(), None),
    "costs mcc": ("maximize mcc", Costs(), None),
    "costs truncated": ("maximize f1", Costs(truncate=2.0), None),
    "costs constrained": ("maximize recall subject to precision >= 0.8", Costs(), None),
    "costs equation": ("maximize f1 subject to positive_rate == 0.3", Costs(), None),
    "costs macro f1": ("maximize macro(f1)", Costs(), CLASSES),
    "costs labels": ("maximize macro(f1)", Costs(), LABELS),
    "exact constrained": ("maximize recall subject to precision >= 0.8", Exact(anneal=4), None),
    "exact fair": ('maximize f1 subject to gap(recall, by="g") <= 0.05', Exact(anneal=4), GROUPS),
    "exact macro f1": ("maximize macro(f1)", Exact(anneal=4), CLASSES),
    "exact labels": ("maximize macro(f1)", Exact(truncate=1.0), LABELS),
    "lagrangian constrained": (
        "maximize recall subject to precision >= 0.8",
        Lagrangian(cross_entropy=0.2),
        None,
    ),
    "lagrangian fair": ('maximize f1 subject to gap(recall, by="g") <= 0.05', Lagrangian(), GROUPS),
    "lagrangian equation": (
        "maximize f1 subject to positive_rate == 0.3",
        Lagrangian("external"),
        None,
    ),
    "lagrangian curve": ("maximize auroc(max_fpr=0.5)", Lagrangian("swap", points=3), None),
    "lagrangian macro f1": ("maximize macro(f1)", Lagrangian(), CLASSES),
    "lagrangian labels": ("maximize macro(f1)", Lagrangian(surrogate="linear"), LABELS),
    "implicit point": ("minimize fnr_at_fpr(0.2)", Implicit(every=2), None),
    "implicit curve": ("maximize auprc(min_recall=0.5)", Implicit(points=3), None),
    "implicit constrained": ("maximize recall subject to precision >= 0.8", Implicit(), None),
    "implicit by group": (
        'maximize f1 subject to gap(recall, by="g") <= 0.05',
        Implicit(by="g", cross_entropy=0.2),
        GROUPS,
    ),
    "implicit shifts": ("maximize macro(f1)", Implicit(), CLASSES),
    "cross-entropy": ("maximize f1", CrossEntropy(), None),
    "balanced": ("maximize f1", CrossEntropy("balanced"), None),
    "balanced classes": ("maximize accuracy", CrossEntropy("balanced"), CLASSES),
    "balanced labels": ("maximize macro(f1)", CrossEntropy("balanced"), LABELS),
}
PAIRS = {
    "auroc": ("maximize auroc", Pairwise(), None),
    "partial auroc": ("maximize auroc(max_fpr=0.3)", Pairwise("laplace"), None),
    "average precision": ("maximize average_precision", Pairwise(cross_entropy=0.2), None),
}
ALL = {**SUMS, **PAIRS}
sums = pytest.mark.parametrize("name", SUMS)
every = pytest.mark.parametrize("name", ALL)


def made(name, **options):
    goal, method, task = ALL[name]
    return bare(goal, method, task=task, **options).double()


def batch(name, seed, n=40):
    """Logits, target and keywords of one batch."""
    rng = torch.Generator().manual_seed(1000 + seed)
    task = ALL[name][2]
    kind = "binary" if task is None else task.kind
    shape = (n,) if kind == "binary" else (n, K)
    logits = 1.5 * torch.randn(shape, generator=rng, dtype=torch.float64)
    target = (torch.rand(shape, generator=rng) < 0.3).long()
    if kind == "multiclass":
        target = torch.randint(K, (n,), generator=rng)
    more = {}
    if task is not None and task.groups:
        more["group"] = torch.randint(2, (n,), generator=rng)
    return logits, target, more


def weights(seed, n=40):
    return 0.1 + torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def called(loss, logits, target, **more):
    """Value and gradient in the logits."""
    leaf = logits.detach().clone().requires_grad_()
    value = loss(leaf, target, **more)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def warmed(name, calls=4, **options):
    """A loss that has seen a few batches."""
    loss = made(name, **options)
    for i in range(calls):
        logits, target, more = batch(name, i)
        loss.observe(logits, target, weight=weights(i), **more)
    return loss


def picked(more, index):
    return {k: v[index] for k, v in more.items()}


def same(ours, theirs, rtol=1e-10, atol=1e-12):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def buffers(loss):
    return {name: value.clone() for name, value in loss.named_buffers()}


# --- prices times derivatives --------------------------------------------------------------------


@sums
def test_gradients_of_parts_add_up_to_that_of_the_whole(name):
    """At given prices: mass · gradient is a sum over rows, whichever batch a row is in."""
    loss = warmed(name)
    logits, target, more = batch(name, 9)
    w = weights(9)
    _, whole = called(copy.deepcopy(loss), logits, target, weight=w, **more)
    parts = []
    for index in torch.arange(40).split([7, 1, 20, 12]):
        _, gradient = called(
            copy.deepcopy(loss),
            logits[index],
            target[index],
            weight=w[index],
            **picked(more, index),
        )
        parts.append(gradient * w[index].sum() / w.sum())
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-10, atol=1e-13)


@sums
def test_prices_do_not_hold_the_batch_itself(name):
    """A row's gradient does not depend on the other rows of its batch."""
    loss = warmed(name)
    logits, target, more = batch(name, 9)
    other, _, _ = batch(name, 10)
    changed = logits.clone()
    changed[20:] = other[20:]
    _, before = called(copy.deepcopy(loss), logits, target, **more)
    _, after = called(copy.deepcopy(loss), changed, target, **more)
    torch.testing.assert_close(before[:20], after[:20], rtol=1e-12, atol=1e-14)
    assert (before[20:] - after[20:]).abs().max() > 1e-6


def test_at_its_own_totals_a_batch_depends_on_itself():
    logits, target, _ = batch("soft f1", 9)
    changed = logits.clone()
    changed[20:] += 1
    before, after = (
        called(made("soft f1", memory=0, warmup=0), z, target)[1] for z in (logits, changed)
    )
    assert (before[:20] - after[:20]).abs().max() > 1e-5


def angle(a, b):
    return math.degrees(math.acos(float(torch.dot(a, b) / (a.norm() * b.norm()))))


def test_small_batches_are_unbiased_with_running_totals_and_not_without():
    """An epoch of batches of 16, 2.3 % positives: the mean gradient against that of all rows."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(12_000, generator=rng) < 0.023).long()
    x = torch.randn(12_000, 7, generator=rng, dtype=torch.float64)
    x[:, 6] = 1
    x[:, :3] += y[:, None] * torch.tensor([1.0, 0.6, 0.3], dtype=torch.float64)
    start = [1.0, 0.5, 0.0, 0.2, -0.2, 0.0, -1.5]
    line = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    member = SoftSet().surrogate.value(torch.sigmoid(x @ line))
    (whole,) = torch.autograd.grad(1 - sp.f1.soft(y, member), line)
    logits = (x @ line).detach()
    angles = {}
    for memory in (8192, 0):
        loss = bare("maximize f1", SoftSet(cross_entropy=0.0), memory=memory, warmup=0).double()
        loss.observe(logits, y)  # the totals are full when the epoch begins
        mean = torch.zeros(7, dtype=torch.float64)
        for index in torch.randperm(12_000, generator=rng).split(16):
            _, gradient = called(loss, logits[index], y[index])
            mean += x[index].T @ gradient
        angles[memory] = angle(mean, whole)
    assert angles[8192] <= 5
    assert angles[0] > 20


# --- parts of a batch ----------------------------------------------------------------------------


class Line(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.inner = torch.nn.Linear(4, width or 1, dtype=torch.float64)
        with torch.no_grad():
            rng = torch.Generator().manual_seed(3)
            for p in self.parameters():
                p.copy_(0.5 * torch.randn(p.shape, generator=rng, dtype=torch.float64))

    def forward(self, x):
        return self.inner(x) if self.width else self.inner(x)[:, 0]


def stream(name, steps, n):
    for step in range(steps):
        _, target, more = batch(name, 50 + step, n)
        rng = torch.Generator().manual_seed(step)
        x = torch.randn(n, 4, generator=rng, dtype=torch.float64)
        first = target if target.ndim == 1 else target[:, 0]
        x[:, 0] += first
        yield x, target, more


def trained(name, parts, optimizer, steps=4, n=60):
    kind = "binary" if ALL[name][2] is None else ALL[name][2].kind
    model = Line(None if kind == "binary" else K)
    loss = made(name, accumulate=parts, memory=200)
    if optimizer == "sgd":
        moved = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    else:
        moved = torch.optim.Adam(model.parameters(), lr=0.05)
    for x, target, more in stream(name, steps, n):
        moved.zero_grad()
        for index in torch.arange(n).chunk(parts):
            value = loss(model(x[index]), target[index], **picked(more, index))
            (value / parts).backward()
        moved.step()
    return model, loss


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@sums
def test_a_batch_in_parts_makes_the_same_steps_as_the_whole(name, optimizer):
    model, loss = trained(name, 1, optimizer)
    for parts in (2, 3, 4, 5):
        ours, running = trained(name, parts, optimizer)
        same(ours.parameters(), model.parameters(), rtol=1e-8, atol=1e-10)
        for buffer in ("totals", "prices", "multipliers", "steps"):
            torch.testing.assert_close(
                getattr(running, buffer), getattr(loss, buffer), rtol=1e-8, atol=1e-10
            )
    start = Line(model.width)
    pairs = zip(model.parameters(), start.parameters(), strict=True)
    assert max((a - b).abs().max() for a, b in pairs) > 0.01


def test_parts_of_a_batch_move_nothing_before_the_last():
    loss = made("costs constrained", accumulate=3)
    for i in range(7):
        before = buffers(loss)
        logits, target, _ = batch("costs constrained", i)
        loss.observe(logits, target)
        moved = not torch.equal(loss.totals, before["totals"])
        assert moved == (i % 3 == 2)
    assert loss.steps.item() == 2


# --- state ---------------------------------------------------------------------------------------


def loaded(loss, name, **options):
    file = io.BytesIO()
    torch.save(loss.state_dict(), file)
    file.seek(0)
    fresh = made(name, **options)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    return fresh


COPIES = {
    "state_dict": loaded,
    "deepcopy": lambda loss, name, **options: copy.deepcopy(loss),
    "pickle": lambda loss, name, **options: pickle.loads(pickle.dumps(loss)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("accumulate", [1, 3])
@every
def test_a_copy_goes_on_exactly_where_the_original_was(name, accumulate, how):
    options = {"accumulate": accumulate, "memory": 300}
    loss = warmed(name, calls=7, **options)  # in the middle of a batch in three parts
    other = COPIES[how](loss, name, **options)
    frozen = buffers(loss)
    for i in range(20, 26):
        logits, target, more = batch(name, i)
        called(other, logits, target, **more)
    for key, value in loss.named_buffers():
        assert torch.equal(value, frozen[key]), f"{key} is shared"
    other = COPIES[how](loss, name, **options)
    for i in range(20, 26):
        logits, target, more = batch(name, i)
        one, two = (called(x, logits, target, **more) for x in (loss, other))
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])
    for key, value in loss.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key


@pytest.mark.parametrize("cast", ["half", "bfloat16"])
@pytest.mark.parametrize(
    "name", ["soft f1", "soft f1, grid", "costs constrained", "soft macro f1", "balanced", "auroc"]
)
def test_no_cast_narrows_what_the_loss_remembers(name, cast):
    goal, method, task = ALL[name]
    loss = bare(goal, method, task=task)
    for i in range(3):
        logits, target, more = batch(name, i)
        loss.observe(logits.float(), target, weight=1e4 * weights(i).float(), **more)
    before = buffers(loss)
    getattr(loss, cast)()
    for key, value in loss.named_buffers():
        if value.is_floating_point():
            assert value.dtype == torch.float32, key
            assert torch.equal(value, before[key]), f"{key} was rounded on the way"
    logits, target, more = batch(name, 5)
    dtype = {"half": torch.float16, "bfloat16": torch.bfloat16}[cast]
    value, gradient = called(loss, logits.to(dtype), target, **more)
    assert value.isfinite()
    assert gradient.dtype == dtype
    assert gradient.isfinite().all()


@pytest.mark.parametrize(
    "cast",
    [lambda x: x.double(), lambda x: x.to(torch.float64), lambda x: x.to("cpu", torch.float64)],
)
def test_double_is_double(cast):
    loss = cast(bare("maximize recall subject to precision >= 0.8", "costs"))
    for value in (loss.totals, loss.prices, loss.multipliers):
        assert value.dtype == torch.float64
    assert loss.float().totals.dtype == torch.float32


def test_float32_and_float64_agree():
    for name in ("soft f1", "soft f1, grid", "costs constrained", "soft macro f1", "balanced"):
        goal, method, task = ALL[name]
        narrow, wide = bare(goal, method, task=task), made(name)
        for i in range(5):
            logits, target, more = batch(name, i)
            a = called(narrow, logits.float(), target, **more)
            b = called(wide, logits.float().double(), target, **more)
            same([x.double() for x in a], b, rtol=1e-4, atol=1e-6)


def test_a_loss_in_a_model_is_saved_and_moved_with_it():
    model = torch.nn.ModuleDict({"line": torch.nn.Linear(2, 1), "loss": bare("maximize f1")})
    assert "loss.totals" in model.state_dict()
    assert not list(model["loss"].parameters())
    model.double()
    assert model["loss"].totals.dtype == torch.float64


# --- rows ----------------------------------------------------------------------------------------


@every
def test_the_order_of_rows_does_not_matter(name):
    loss = warmed(name)
    logits, target, more = batch(name, 9)
    w, order = weights(9), torch.randperm(40, generator=torch.Generator().manual_seed(0))
    one, two = copy.deepcopy(loss), copy.deepcopy(loss)
    value, gradient = called(one, logits, target, weight=w, **more)
    other, permuted = called(
        two, logits[order], target[order], weight=w[order], **picked(more, order)
    )
    same((other, permuted), (value, gradient[order]))
    same((two.totals, two.prices), (one.totals, one.prices))


@pytest.mark.parametrize("name", [name for name in ALL if name != "average precision"])
def test_a_weight_is_a_repetition(name):
    """Up to what is forgotten, which counts rows: with a memory without end.

    Average precision is left out: a row's smooth rank counts the row itself in full and others at
    the same score by half, so a copy is not a double weight.
    """
    weighed, repeated = (made(name, memory=1e15) for _ in range(2))
    for i in range(4):
        logits, target, more = batch(name, i)
        times = torch.randint(1, 4, (40,), generator=torch.Generator().manual_seed(i))
        again = torch.arange(40).repeat_interleave(times)
        value, gradient = called(weighed, logits, target, weight=times.double(), **more)
        other, pieces = called(repeated, logits[again], target[again], **picked(more, again))
        summed = torch.zeros_like(gradient).index_add_(0, again, pieces)
        same((other, summed), (value, gradient), rtol=1e-9)
        same((repeated.totals,), (weighed.totals,), rtol=1e-9)


@every
def test_rows_of_weight_0_have_no_influence(name):
    with_, without = (made(name, memory=1e15) for _ in range(2))
    for i in range(4):
        logits, target, more = batch(name, i)
        w = weights(i)
        w[::3] = 0
        logits = logits.clone()
        logits[::3] *= 1e3
        kept = torch.nonzero(w)[:, 0]
        value, gradient = called(with_, logits, target, weight=w, **more)
        other, fewer = called(
            without, logits[kept], target[kept], weight=w[kept], **picked(more, kept)
        )
        same((value, gradient[kept]), (other, fewer), rtol=1e-9)
        assert (gradient[::3] == 0).all()
        same((with_.totals,), (without.totals,), rtol=1e-9)


@every
def test_the_scale_of_weights_does_not_matter(name):
    one, two = made(name), made(name)
    for i in range(4):
        logits, target, more = batch(name, i)
        a = called(one, logits, target, weight=weights(i), **more)
        b = called(two, logits, target, weight=1e-3 * weights(i), **more)
        same(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["soft macro f1", "soft labels", "costs macro f1", "balanced labels"]
)
def test_logits_in_any_layout(name):
    logits, target, _ = batch(name, 0)
    straight, turned = made(name), made(name)
    for _ in range(2):
        a = called(straight, logits, target)
        leaf = logits.t().contiguous().requires_grad_()
        value = turned(leaf.t(), target)
        (gradient,) = torch.autograd.grad(value, leaf)
        same(a, (value.detach(), gradient.t()))


def test_a_column_of_logits_and_targets_of_any_kind():
    logits, target, _ = batch("soft f1", 0)
    expected = None
    for y in (
        target,
        target.bool(),
        target.double(),
        target.float(),
        target.int(),
        target[:, None],
    ):
        for z in (logits, logits[:, None], torch.stack([logits, logits], 1)[:, 0]):
            loss = made("soft f1")
            for _ in range(2):
                value, gradient = called(loss, z, y)
            found = value, gradient.reshape(-1)
            expected = found if expected is None else expected
            same(found, expected)


# --- what is not finite --------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
@every
def test_a_nan_batch_does_not_poison_the_totals(name, accumulate):
    loss = warmed(name, calls=4, accumulate=accumulate)
    logits, target, more = batch(name, 9)
    bad = logits.clone()
    bad[3] = math.nan
    for _ in range(accumulate):
        loss.observe(bad, target, **more)
    for _ in range(4):
        value, gradient = called(loss, logits, target, **more)
    for key, buffer in loss.named_buffers():
        assert buffer.isfinite().all(), key
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_a_nan_batch_is_seen_in_the_value():
    loss = warmed("soft f1")
    logits, target, _ = batch("soft f1", 9)
    logits[3] = math.nan
    assert loss(logits.requires_grad_(), target).isnan()


def test_after_a_nan_batch_the_stream_goes_on_as_if_it_had_not_been():
    """But for the step it counts and what is forgotten meanwhile."""
    one, two = warmed("soft f1", memory=1e15), warmed("soft f1", memory=1e15)
    logits, target, _ = batch("soft f1", 9)
    bad = logits.clone()
    bad[0] = math.nan
    two.observe(bad, target)
    same(called(two, logits, target), called(one, logits, target))


# --- warm-up and memory --------------------------------------------------------------------------


def entropy_of(name, logits, target, w):
    task = ALL[name][2]
    if task is not None and task.kind == "multiclass":
        each = F.cross_entropy(logits, target, reduction="none")
    else:
        each = F.binary_cross_entropy_with_logits(logits, target.double(), reduction="none")
        each = each if each.ndim == 1 else each.mean(1)
    return (w * each).sum() / w.sum()


@pytest.mark.parametrize("warmup", [0, 1, 3])
@sums
def test_warm_up_is_plain_cross_entropy(name, warmup):
    loss = made(name, warmup=warmup)
    for i in range(max(warmup, 1) + 1):
        logits, target, more = batch(name, i)
        w = weights(i)
        value, gradient = called(loss, logits, target, weight=w, **more)
        leaf = logits.clone().requires_grad_()
        entropy = entropy_of(name, leaf, target, w)
        (theirs,) = torch.autograd.grad(entropy, leaf)
        if i < max(warmup, 1):
            same((value, gradient), (entropy.detach(), theirs), rtol=1e-9)
        elif name != "cross-entropy":
            assert (gradient - theirs).abs().max() > 1e-6


@pytest.mark.parametrize("accumulate", [1, 2])
def test_multipliers_wait_for_the_end_of_the_warm_up(accumulate):
    loss = made("costs constrained", warmup=3, accumulate=accumulate)
    for i in range(5 * accumulate):
        before = loss.multipliers.clone()
        logits, target, _ = batch("costs constrained", i)
        loss.observe(logits, target)
        moved = not torch.equal(before, loss.multipliers)
        assert moved == (i >= 3 * accumulate and (i + 1) % accumulate == 0)


@pytest.mark.parametrize(
    "name", ["soft f1", "soft f1, grid", "soft macro f1", "costs f1", "balanced"]
)
def test_without_memory_every_batch_is_on_its_own(name):
    loss = made(name, memory=0, warmup=0)
    logits, target, more = batch(name, 0)
    first = called(loss, logits, target, **more)
    for i in range(1, 4):
        z, y, m = batch(name, i)
        called(loss, 3 * z, y, **m)
    assert all(map(torch.equal, called(loss, logits, target, **more), first))


def test_rows_are_forgotten_at_the_rate_that_is_said():
    loss = made("cross-entropy", memory=100)
    loss.observe(torch.zeros(40, dtype=torch.float64), torch.ones(40))
    for _ in range(10):  # 100 rows later
        loss.observe(torch.zeros(10, dtype=torch.float64), torch.zeros(10))
    assert loss.totals[0, 1].item() == pytest.approx(40 / math.e)


# --- multipliers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "broken"),
    [
        ("maximize recall subject to precision >= 0.8", 3.0),
        ("maximize precision subject to recall >= 0.8", -3.0),
        ("maximize recall subject to fpr <= 0.1", 3.0),
        ("maximize accuracy subject to positive_rate <= 0.4", 3.0),
    ],
)
def test_multipliers_rise_while_a_constraint_is_broken_and_fall_otherwise(goal, broken):
    loss = bare(goal, "costs", memory=60).double()
    target = (torch.arange(60) % 3 == 0).long()
    bad = torch.full((60,), broken, dtype=torch.float64)
    good = torch.where(target == 1, 5.0, -5.0).double()
    loss.observe(bad, target)
    rising, falling = [loss.multipliers.item()], []
    for _ in range(6):
        loss.observe(bad, target)
        rising.append(loss.multipliers.item())
    for _ in range(3):  # until the totals have forgotten
        loss.observe(good, target)
    for _ in range(6):
        falling.append(loss.multipliers.item())
        loss.observe(good, target)
    assert rising == sorted(set(rising))
    assert falling == sorted(set(falling), reverse=True)


def test_the_multiplier_of_an_equation_goes_both_ways():
    target = (torch.arange(60) % 3 == 0).long()
    ends = []
    for logit in (3.0, -3.0):
        loss = bare(
            "maximize f1 subject to positive_rate == 0.3", Costs(multipliers=[0.0]), memory=60
        ).double()
        for _ in range(5):
            loss.observe(torch.full((60,), logit, dtype=torch.float64), target)
        ends.append(loss.multipliers.item())
    assert ends[0] > 0 > ends[1]


def test_the_growth_of_a_multiplier_is_the_one_documented():
    """exp(rate · violation) while the running totals are renewed once."""
    loss = bare(
        "maximize recall subject to fpr <= 0.1", Costs(rate=0.5), memory=6000, warmup=0
    ).double()
    target = (torch.arange(60) % 3 == 0).long()
    always = torch.full((60,), 3.0, dtype=torch.float64)
    loss.observe(always, target)
    start = loss.multipliers.item()
    share = 1 - math.exp(-60 / 6000)
    for _ in range(50):
        loss.observe(always, target)
    assert loss.multipliers.item() / start == pytest.approx(math.exp(0.5 * 0.9 * share * 50))


def test_the_penalty_grows_where_a_constraint_is_broken_and_up_to_its_bound():
    loss = bare(
        "maximize recall subject to precision >= 0.8", SoftSet(penalty=3.0, rate=2.0), memory=60
    ).double()
    target = (torch.arange(60) % 3 == 0).long()
    seen = {}
    for name, logit in (
        ("broken", torch.full((60,), 3.0)),
        ("held", torch.where(target == 1, 9.0, -9.0)),
    ):
        fresh = copy.deepcopy(loss)
        seen[name] = [1.0]
        for _ in range(40):
            fresh.observe(logit.double(), target)
            seen[name].append(float(fresh.multipliers[0]))
    assert sorted(seen["broken"]) == seen["broken"]
    assert seen["broken"][-1] == 3.0
    assert sorted(seen["held"], reverse=True) == seen["held"]
    assert 0 < seen["held"][-1] < 1


@pytest.mark.parametrize(("bound", "logit"), [(0.9, -2.0), (0.1, 2.0)])
def test_an_equation_gets_dearer_on_either_side(bound, logit):
    goal = f"maximize accuracy subject to positive_rate == {bound}"
    loss = bare(goal, SoftSet(rate=2.0), memory=60)
    target = (torch.arange(60) % 3 == 0).long()
    for _ in range(20):
        loss.observe(torch.full((60,), logit), target)
    assert float(loss.multipliers[0]) > 1


def test_evaluation_changes_nothing():
    loss = made("soft f1")
    logits, target, _ = batch("soft f1", 0)
    loss.observe(logits, target)
    before = copy.deepcopy(loss.state_dict())
    loss.eval()
    value = loss(logits, target)
    assert value.isfinite()
    assert all(torch.equal(v, before[k]) for k, v in loss.state_dict().items())


# --- recovery ------------------------------------------------------------------------------------


def test_recover_reads_the_goal_at_the_totals():
    logits, target, _ = batch("costs f1", 0, n=200)
    decided = (logits >= 0).long()
    loss = made("costs f1")
    loss.observe(logits, target)
    assert loss.recover().value == pytest.approx(f1_score(target, decided))
    assert loss.recover().constraints == ()
    soft = made("soft f1")
    soft.observe(logits, target)
    member = SoftSet().surrogate.value(torch.sigmoid(logits))
    assert soft.recover().value == pytest.approx(sp.f1.soft(target, member).item())
    cost = bare("minimize cost(fp=1, fn=10)", "costs").double()
    cost.observe(logits, target)
    expected = sp.cost(fp=1, fn=10)(target.numpy(), decided.numpy())
    assert cost.recover().value == pytest.approx(expected)
    assert expected > 0


def test_recover_of_a_batch_in_parts_and_weights():
    logits, target, _ = batch("costs f1", 0, n=120)
    w = weights(0, 120)
    loss = made("costs f1", accumulate=2)
    for index in torch.arange(120).split(60):
        loss.observe(logits[index], target[index], weight=w[index])
    expected = f1_score(target, logits >= 0, sample_weight=w)
    assert loss.recover().value == pytest.approx(expected)


def test_recover_tells_excess_and_multiplier_of_each_constraint():
    logits, target, _ = batch("costs constrained", 0, n=200)
    decided = (logits >= 0).long()
    loss = bare(
        "maximize accuracy subject to precision >= 0.8, fpr <= 0.9", Costs(multipliers=[2.0, 3.0])
    ).double()
    loss.observe(logits, target)
    found = loss.recover()
    assert found.value == pytest.approx(float((decided == target).double().mean()))
    (precision, broken, dear), (fpr, held, cheap) = found.constraints
    assert (precision, fpr) == ("precision >= 0.8", "fpr <= 0.9")
    tp, positive = int((decided & target).sum()), int(target.sum())
    assert broken == pytest.approx(0.8 - tp / int(decided.sum()))
    assert held == pytest.approx(int((decided & (1 - target)).sum()) / (200 - positive) - 0.9)
    assert broken > 0 > held
    assert (dear, cheap) == (2.0, 3.0)


def test_the_loss_prints_goal_and_method():
    text = repr(bare("maximize f1", "costs"))
    assert "maximize f1" in text
    assert "Costs" in text


# --- what a user is told -------------------------------------------------------------------------


def notices(caplog, loss, target_of, calls=450):
    caplog.set_level(logging.WARNING, logger="setpoint")
    caplog.clear()
    rng = torch.Generator().manual_seed(0)
    for i in range(calls):
        target = target_of(i)
        loss.observe(torch.randn(len(target), generator=rng), target)
    return [r.getMessage() for r in caplog.records if r.name == "setpoint"]


def rare(i):
    return (torch.arange(16) < (i % 10 == 0)).long()


def test_batches_without_positives_are_said_once(caplog):
    for method in ("soft-set", "costs"):
        (text,) = notices(caplog, bare("maximize f1", method), rare)
        assert "90%" in text
        assert "class" in text


def test_pairs_without_a_pair_are_said_once(caplog):
    (text,) = notices(caplog, bare("maximize auroc", "pairwise"), rare)
    assert "one class only" in text


def test_accuracy_under_imbalance_is_said_once(caplog):
    (text,) = notices(caplog, bare("maximize accuracy"), lambda i: (torch.arange(32) < 1).long())
    assert "accuracy" in text
    assert "3.1%" in text


@pytest.mark.parametrize(
    "goal",
    ["maximize f1", "maximize accuracy subject to recall >= 0.8", "maximize balanced_accuracy"],
)
def test_nothing_is_said_where_there_is_nothing_to_say(caplog, goal):
    found = notices(caplog, bare(goal, "costs"), lambda i: (torch.arange(32) < 2).long())
    assert found == []


def test_the_library_is_silent_by_default_on_balanced_batches(caplog):
    assert notices(caplog, bare("maximize accuracy"), lambda i: torch.arange(16) % 2) == []


# --- wrong input ---------------------------------------------------------------------------------

Z, Y = torch.zeros(4), torch.tensor([1, 0, 0, 1])
NAN, INF = math.nan, math.inf
TWO = Task.binary(groups={"g": ["x", "y"], "h": ["u", "v"]})


@pytest.mark.parametrize(
    ("task", "logits", "target", "more", "error", "words"),
    [
        (None, [0.0, 1.0], Y, {}, KindError, "tensor of floats"),
        (None, Z.numpy(), Y, {}, KindError, "tensor of floats"),
        (None, Z.long(), Y, {}, KindError, "int64"),
        (None, Z.to(torch.complex64), Y, {}, KindError, "complex64"),
        (None, Z, [1, 0, 0, 1], {}, KindError, "target must be a tensor"),
        (None, Z, Y[:3], {}, DataError, "agree"),
        (None, Z, torch.stack([Y, Y]), {}, DataError, "agree"),
        (None, Z.view(2, 2), Y.view(2, 2), {}, DataError, "Task.multiclass"),
        (None, Z.view(4, 1, 1), Y, {}, DataError, r"per pixel target has shape \(4, 1\)"),
        (None, Z[0], Y[0], {}, DataError, r"\(n,\) or \(n, 1\)"),
        (None, Z[:0], Y[:0], {}, DataError, "empty"),
        (None, Z, torch.tensor([1, 0, 2, 1]), {}, DataError, "got 2"),
        (None, Z, torch.tensor([1, 0, 0.5, 1]), {}, DataError, "got 0.5"),
        (None, Z, torch.tensor([1, 0, NAN, 1]), {}, DataError, "got nan"),
        (None, Z + NAN, Y, {}, DataError, "NaN"),
        (None, Z + INF, Y, {}, DataError, "infinity"),
        (None, Z, Y.to("meta"), {}, KindError, "meta"),
        (None, Z, Y, {"weight": Z.to("meta")}, KindError, "meta"),
        (None, Z, Y, {"weight": [1, 1, 1, 1]}, KindError, "weight must be a tensor"),
        (None, Z, Y, {"weight": torch.ones(3)}, DataError, r"\(4,\)"),
        (None, Z, Y, {"weight": torch.ones(4, 1)}, DataError, r"\(4,\)"),
        (None, Z, Y, {"weight": -torch.ones(4)}, DataError, "negative"),
        (None, Z, Y, {"weight": torch.tensor([1, NAN, 1, 1])}, DataError, "finite"),
        (None, Z, Y, {"weight": torch.tensor([1, INF, 1, 1])}, DataError, "finite"),
        (CLASSES, Z, Y, {}, DataError, r"\(n, 3\)"),
        (CLASSES, torch.zeros(4, 2), Y, {}, DataError, r"\(n, 3\)"),
        (CLASSES, torch.zeros(4, 3), torch.tensor([0, 1, 3, 0]), {}, DataError, "got 3"),
        (CLASSES, torch.zeros(4, 3), torch.tensor([0, -1, 1, 0]), {}, DataError, "got -1"),
        (CLASSES, torch.zeros(4, 3), torch.zeros(4, 3), {}, DataError, "one class index per row"),
        (CLASSES, torch.zeros(4, 3), torch.tensor([0, 1.5, 1, 0]), {}, DataError, "1.5"),
        (LABELS, torch.zeros(4, 2), torch.zeros(4, 2), {}, DataError, r"\(n, 3\)"),
        (LABELS, torch.zeros(4, 3), Y, {}, DataError, "agree"),
        (LABELS, torch.zeros(4, 3), torch.zeros(3, 4), {}, DataError, "agree"),
        (LABELS, torch.zeros(4, 3), torch.full((4, 3), 2), {}, DataError, "got 2"),
        (GROUPS, Z, Y, {}, DataError, "group="),
        (GROUPS, Z, Y, {"group": torch.tensor([0, 1, 2, 0])}, DataError, "does not declare"),
        (GROUPS, Z, Y, {"group": torch.tensor([0, -1, 1, 0])}, DataError, "does not declare"),
        (GROUPS, Z, Y, {"group": torch.zeros(4)}, DataError, "code"),
        (GROUPS, Z, Y, {"group": Y[:3]}, DataError, "code"),
        (GROUPS, Z, Y, {"group": list("xyxy")}, KindError, "tensor"),
        (GROUPS, Z, Y, {"group": {"other": Y}}, DataError, '"g"'),
        (TWO, Z, Y, {"group": Y}, DataError, "2 group columns"),
        (TWO, Z, Y, {"group": {"g": 0 * Y, "h": 2 * Y}}, DataError, "does not declare"),
    ],
)
def test_wrong_input_is_a_sentence(task, logits, target, more, error, words):
    if task in (CLASSES, LABELS):
        goal = "maximize macro(f1)"
    elif task is None:
        goal = "maximize f1"
    else:
        goal = 'maximize f1 subject to gap(recall, by="g") <= 0.1'
    loss = bare(goal, task=task)
    before = buffers(loss)
    with pytest.raises(error, match=words) as raised:
        loss(logits, target, **more)
    assert len(str(raised.value).split()) >= 4
    for key, value in loss.named_buffers():
        assert torch.equal(value, before[key]), f"{key} moved"


@pytest.mark.parametrize(
    "options",
    [
        {"memory": -1},
        {"memory": NAN},
        {"memory": INF},
        {"memory": "a"},
        {"warmup": -1},
        {"warmup": 1.5},
        {"warmup": NAN},
        {"warmup": INF},
        {"warmup": None},
        {"accumulate": 0},
        {"accumulate": 1.5},
        {"accumulate": True},
        {"accumulate": INF},
        {"accumulate": 2, "memory": 0},
    ],
)
def test_odd_options_are_sentences(options):
    with pytest.raises(KindError, match="|".join(options)) as error:
        bare("maximize f1", **options)
    assert len(str(error.value).split()) >= 4


# --- autocast ------------------------------------------------------------------------------------


@every
def test_autocast_changes_nothing_but_the_logits(name):
    goal, method, task = ALL[name]
    inside, outside = (bare(goal, method, task=task) for _ in range(2))
    for i in range(4):
        logits, target, more = batch(name, i)
        logits = logits.bfloat16()
        w = weights(i).float()
        with torch.autocast("cpu", torch.bfloat16):
            found = called(inside, logits, target, weight=w, **more)
        expected = called(outside, logits, target, weight=w, **more)
        assert found[0].dtype == torch.float32
        assert found[1].dtype == torch.bfloat16
        assert all(map(torch.equal, found, expected))


def test_a_model_under_autocast_learns():
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(400, generator=rng) < 0.3).long()
    x = torch.randn(400, 5, generator=rng) + y[:, None]
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    loss = bare("maximize f1")
    scores = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
            value = loss(logits, y)
        assert logits.dtype == torch.bfloat16
        value.backward()
        optimizer.step()
        scores.append(f1_score(y, logits.detach().float()[:, 0] >= 0, zero_division=0))
    assert all(p.isfinite().all() for p in model.parameters())
    assert scores[-1] > max(0.8, scores[0] + 0.1)


def test_backward_scales_like_any_loss():
    """A gradient scaler multiplies the loss; the gradient follows."""
    for dtype in (torch.float64, torch.float32, torch.float16):
        loss = bare("maximize f1")
        logits, target, _ = batch("soft f1", 0)
        for _ in range(2):
            leaf = logits.to(dtype).requires_grad_()
            value = loss(leaf, target)
        (plain,) = torch.autograd.grad(value, leaf, retain_graph=True)
        (scaled,) = torch.autograd.grad(1024 * value, leaf)
        torch.testing.assert_close(scaled.double() / 1024, plain.double(), rtol=2e-3, atol=1e-5)


def test_values_without_gradients_are_those_of_evaluation():
    """Validation inside a training loop: nothing is remembered."""
    one, two = made("soft f1"), made("soft f1")
    for i in range(3):
        logits, target, _ = batch("soft f1", i)
        called(one, logits, target)
        called(two, logits, target)
        with torch.no_grad():
            value = one(logits, target)
        assert value == called(two.eval(), logits, target)[0]
        assert not value.requires_grad
        two.train()
    np.testing.assert_array_equal(one.totals.numpy(), two.totals.numpy())
