"""The eliminated form: costs on a loss that is cut off, against the formula as it is written."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import GoalLoss
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.confusion.soft_decisions import HardClasses, HardSteps
from setpoint.methods.costs import Costs
from setpoint.methods.exact.elimination import FIRMNESS, EliminatedProgram, by_margin
from setpoint.methods.method import ready
from setpoint.surrogates import Annealed, Constant
from setpoint.training import RunningLoss


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return GoalLoss(goal, method, guard=False, **options)


FPOR = "maximize recall subject to precision >= 0.8"
FROP = "maximize precision subject to recall >= 0.7"
GROUPS = sp.Task.binary(groups={"group": ["a", "b"]})
CLASSES = sp.Task.multiclass(range(4))
LABELS = sp.Task.multilabel(["a", "b", "c"])


def program(goal, task=None, kappa=None, start=None, firmness=0.0, floor=0.02):
    task = task or sp.Task.binary()
    method = Costs(None if kappa is None else Constant(kappa), floor=floor)
    lowered = Lowered(ready(method, sp.Goal.of(goal), task), Cells(task))
    tables, side, _ = lowered.cells.shape
    reader = HardClasses(tables, side) if task.kind == "multiclass" else HardSteps(tables)
    start = [1.0] * len(lowered.constraints) if start is None else start
    return EliminatedProgram(lowered, reader, start, method, firmness=firmness)


def made(goal, task=None, kappa=None, *, memory=0, warmup=0, **options):
    return RunningLoss(program(goal, task, kappa, **options), memory=memory, warmup=warmup).double()


def rows(seed, n=60, width=None, task=None):
    rng = torch.Generator().manual_seed(seed)
    shape = (n,) if width is None else (n, width)
    logits = 2 * torch.randn(shape, generator=rng, dtype=torch.float64)
    if task is CLASSES:
        target = torch.randint(width, (n,), generator=rng)
    else:
        target = (torch.rand(shape, generator=rng) < 0.4).long()
    weight = torch.rand(n, generator=rng, dtype=torch.float64) + 0.1
    return logits.requires_grad_(), target, weight


def worth_of(loss, cells):
    """u[table, actual, decided] by autograd through the goal's own values, shifted and scaled."""
    program = loss.program
    c = torch.as_tensor(cells, dtype=torch.float64).reshape(1, -1).requires_grad_()
    values = program.lowered.read(c)[0][0]
    lagrangian = values[0] + (program.start.double() * values[1:]).sum()
    (slope,) = torch.autograd.grad(lagrangian, c)
    u = -slope.reshape(program.cells.shape)
    u = u - u.amin(2, keepdim=True)
    mass = c.detach().reshape(program.cells.shape).sum(2)
    mean = (mass * u.amax(2)).sum() / program.labels
    eye = torch.eye(program.cells.side, dtype=torch.float64)
    return u / mean + program.method.floor * eye


def cut(each, kappa):
    """min(each, κ), whose slope beyond κ is 0."""
    return each if kappa is None else each.clamp(max=kappa)


@pytest.mark.parametrize("kappa", [None, 8.0, 2.0, 1.0, 0.7, 0.3])
@pytest.mark.parametrize("goal", [FPOR, FROP, "maximize f1", "maximize fpr + 0.1 * recall"])
@pytest.mark.parametrize("weighed", [False, True])
def test_binary_pull_is_the_written_formula(goal, kappa, weighed):
    logits, target, weight = rows(1)
    weight = weight if weighed else torch.ones_like(weight)
    loss = made(goal, kappa=kappa)
    value = loss(logits, target, weight=weight if weighed else None)
    (ours,) = torch.autograd.grad(value, logits)
    w = weight / weight.sum()
    place = target * 2 + (logits.detach() >= 0)
    u = worth_of(loss, torch.zeros(4, dtype=torch.float64).index_add_(0, place, w))[0]
    no, yes = cut(F.softplus(logits), kappa), cut(F.softplus(-logits), kappa)
    written = (w * (u[target, 0] * no + u[target, 1] * yes)).sum()
    (theirs,) = torch.autograd.grad(written, logits)
    assert theirs.abs().max() > 0
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kappa", [None, 2.0, 0.7])
def test_groups_have_costs_of_their_own(kappa):
    logits, target, weight = rows(2, 80)
    group = torch.arange(80) % 2
    goal = 'maximize f1 subject to precision.on(group="b") >= 0.9'
    loss = made(goal, GROUPS, kappa)
    value = loss(logits, target, weight=weight, group=group)
    (ours,) = torch.autograd.grad(value, logits)
    w = weight / weight.sum()
    place = group * 4 + target * 2 + (logits.detach() >= 0)
    u = worth_of(loss, torch.zeros(8, dtype=torch.float64).index_add_(0, place, w))
    no, yes = cut(F.softplus(logits), kappa), cut(F.softplus(-logits), kappa)
    written = (w * (u[group, target, 0] * no + u[group, target, 1] * yes)).sum()
    (theirs,) = torch.autograd.grad(written, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


def by_levels(z, u, kappa):
    """Σ_l (u_l − u_{l+1}) min(log(1 + exp(−m_l)), κ) of one row, in plain Python."""
    order = sorted(range(len(u)), key=lambda d: -float(u[d]))
    whole = 0.0
    for k in range(1, len(order)):
        margin = z[order[:k]].max() - z[order[k:]].max()
        each = cut(F.softplus(-margin), kappa)
        whole = whole + (u[order[k - 1]] - u[order[k]]) * each
    return whole


@pytest.mark.parametrize("kappa", [None, 2.0, 1.0, 0.7])
@pytest.mark.parametrize(
    "goal",
    [
        "maximize macro(f1)",
        'maximize worst(recall, by="class")',
        "maximize accuracy subject to precision.of(1) >= 0.9",
        "maximize accuracy subject to recall.of(1) >= 0.6, recall.of(2) >= 0.6",
    ],
)
def test_classes_by_margins(goal, kappa):
    logits, target, weight = rows(3, 40, 4, CLASSES)
    loss = made(goal, CLASSES, kappa)
    value = loss(logits, target, weight=weight)
    (ours,) = torch.autograd.grad(value, logits)
    w = weight / weight.sum()
    place = target * 4 + logits.detach().argmax(1)
    u = worth_of(loss, torch.zeros(16, dtype=torch.float64).index_add_(0, place, w))[0]
    written = sum(w[i] * by_levels(logits[i], u[target[i]], kappa) for i in range(40))
    (theirs,) = torch.autograd.grad(written, logits)
    assert theirs.abs().max() > 0
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kappa", [None, 1.0])
def test_labels_are_so_many_tables(kappa):
    logits, target, _ = rows(4, 30, 3)
    loss = made("maximize macro(f1)", LABELS, kappa)
    (ours,) = torch.autograd.grad(loss(logits, target), logits)
    label = torch.arange(3).repeat(30).view(30, 3)
    place = (label * 4 + target * 2 + (logits.detach() >= 0)).flatten()
    cells = torch.zeros(12, dtype=torch.float64).index_add_(0, place, torch.ones(90).double() / 30)
    u = worth_of(loss, cells)
    no, yes = cut(F.softplus(logits), kappa), cut(F.softplus(-logits), kappa)
    written = (u[label, target, 0] * no + u[label, target, 1] * yes).sum() / 90
    (theirs,) = torch.autograd.grad(written, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_the_levels_add_up_to_the_worth_of_the_decision(seed, k):
    # where every margin is wide, nothing is lost but what the decision is worth less than the best
    rng = np.random.default_rng(seed)
    u = np.sort(rng.integers(0, 4, k))[::-1] * 0.5
    u = u[rng.permutation(k)]
    z = 1e3 * rng.permutation(k).astype(float)
    lost = by_levels(torch.tensor(z), torch.tensor(u.copy()), 1.0)
    assert float(lost) == pytest.approx(u.max() - u[z.argmax()])


def test_two_classes_are_the_logit_of_their_difference():
    logits, target, weight = rows(5)
    pair = torch.stack([torch.zeros_like(logits), logits], 1).detach().requires_grad_()
    task = sp.Task.multiclass([0, 1])
    two = made("maximize f1.of(1)", task, 1.5)
    one = made("maximize f1", None, 1.5)
    (ours,) = torch.autograd.grad(two(pair, target, weight=weight), pair)
    (theirs,) = torch.autograd.grad(one(logits, target, weight=weight), logits)
    torch.testing.assert_close(ours[:, 1], theirs, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours[:, 0], -theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("goal", [FPOR, FROP, "maximize f1", "maximize mcc"])
def test_without_truncation_and_firmness_binary_is_costs(goal):
    method = Costs()
    ours = made(goal, memory=500, warmup=1)
    theirs = bare(goal, method, memory=500).double()
    never = made(goal, kappa=80.0, memory=500, warmup=1)
    for step in range(12):
        logits, target, weight = rows(step)
        found = []
        for loss in (ours, theirs, never):
            value = loss(logits, target, weight=weight)
            found.append((value.detach(), torch.autograd.grad(value, logits)[0]))
        for one in (found[0], found[2]):
            for mine, costs in zip(one, found[1], strict=True):
                torch.testing.assert_close(mine, costs, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.multipliers, theirs.multipliers, rtol=1e-6, atol=1e-9)


# --- costs in closed form ---


def ratio(goal, cells, start=(), **options):
    """Worth of a right positive : of a right negative."""
    # no floor: the closed forms are about the goal alone
    found = program(goal, start=list(start), floor=0.0, **options).price(
        np.array([cells]), np.array(start)
    )
    tn, fp, fn, tp = found.prices[0]
    assert fp == 0
    assert fn == 0
    return tp / tn


@given(
    st.floats(0.02, 0.5), st.floats(0.1, 0.95), st.floats(0.001, 0.3), st.floats(0.05, 20),
    st.floats(0.3, 0.95), st.floats(0.25, 4),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_costs_have_closed_forms(share, recall, wrong, dual, level, beta):
    tp, fp = share * recall, (1 - share) * wrong
    cells = [1 - share - fp, fp, share - tp, tp]
    p = tp / (tp + fp)
    goal = f"maximize recall subject to precision >= {level}"
    assert ratio(goal, cells, [dual]) == pytest.approx((1 + dual * (1 - level)) / (dual * level))
    goal = f"maximize precision subject to recall >= {level}"
    assert ratio(goal, cells, [dual]) == pytest.approx((1 - p + dual * recall / p) / p)
    f = (1 + beta**2) * tp / (tp + fp + beta**2 * share)
    assert ratio(f"maximize f_beta({beta})", cells) == pytest.approx((1 + beta**2 - f) / f)


def test_firm_prices_run_ahead_of_the_multiplier():
    # precision is 1/2 with 20 % decided, of 20 % positives: broken by (.8 − .5) · .2 / .2
    cells, broken = [0.7, 0.1, 0.1, 0.1], 0.3
    for firmness in (0.0, 2.0):
        dual = np.exp(firmness * broken)
        found = ratio(FPOR, cells, [1.0], firmness=firmness)
        assert found == pytest.approx((1 + dual * 0.2) / (dual * 0.8))
    tensors = program(FPOR, start=[1.0], firmness=FIRMNESS, kappa=1.0)
    price = tensors.price(torch.tensor([cells]), torch.tensor([1.0])).prices
    plain = tensors.price(np.array([cells]), np.array([1.0])).prices
    torch.testing.assert_close(price, torch.tensor(plain).float(), rtol=1e-5, atol=1e-6)


# --- as a loss ---


def test_tensors_elsewhere_are_pulled_alike():
    # where the rows do not lie on the host nothing is numpy's; the same sums come out
    for task, width in ((None, None), (CLASSES, 4)):
        logits, target, weight = rows(6, 50, width, task)
        one = program("maximize accuracy", task, 1.0).double()
        batch = one.rows(logits.detach(), target, weight, None)
        step = torch.zeros((), dtype=torch.long)
        totals, _ = one.measure(batch, step)
        prices = one.price(totals / totals.sum(), np.zeros(0)).prices
        for on in (1.0, 0.0):
            here = one.pull(batch, None, prices, on, step, 0.01)
            away = one.rows(logits.detach(), target, weight, None)
            away.host = away.flat = False
            away.z, away.y, away.p, away.w = away.logits, away.actual, away.probability, weight
            there = one.pull(
                away, None, torch.tensor(prices), torch.tensor(on), step, torch.tensor(0.01)
            )
            torch.testing.assert_close(here, there, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("task", [None, CLASSES])
def test_one_class_batches_stay_finite(task):
    goal = FPOR if task is None else "maximize accuracy subject to precision.of(1) >= 0.9"
    loss = made(goal, task, 0.7, memory=100, warmup=1, firmness=FIRMNESS)
    for step in range(30):
        logits, target, _ = rows(step, 12, None if task is None else 4, task)
        value = loss(40 * logits, torch.zeros_like(target) + step % 2)
        (gradient,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()
    assert torch.isfinite(loss.multipliers).all()


def test_taking_up_a_run_goes_on_as_if_nothing_happened():
    one = made(FPOR, kappa=1.0, memory=300, warmup=1, firmness=FIRMNESS)
    for step in range(5):
        logits, target, _ = rows(step)
        one.observe(logits, target)
    other = made(FPOR, kappa=1.0, memory=300, warmup=1, firmness=FIRMNESS)
    other.load_state_dict(one.state_dict())
    for step in range(5, 10):
        logits, target, _ = rows(step)
        assert one(logits, target).item() == other(logits, target).item()
    torch.testing.assert_close(one.multipliers, other.multipliers)


# --- what it is for ---


def reachable(x, y):
    """The best F1 of any score w x + b on a line, by trying every cut both ways."""
    cuts = [np.r_[-np.inf, z] for z in (x, -x)]
    found = [f1(z >= t, y) for z, own in zip((x, -x), cuts, strict=True) for t in own]
    return max(found)


def f1(decided, y):
    return 2 * (decided & (y > 0)).sum() / (decided.sum() + y.sum())


def test_few_points_with_an_outlier_reach_the_best_cut():
    # cross-entropy cannot give the positive at −4 up, and shifts for its sake
    x = np.array([-2.5, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 2.5, -4])
    y = np.array([0.0] * 5 + [1.0] * 6)
    inputs, target = torch.tensor(x)[:, None], torch.tensor(y)
    method = Costs(Annealed(8, 1, 100))
    lowered = Lowered(sp.Goal.of("maximize f1"), Cells(sp.Task.binary()))
    ours = RunningLoss(EliminatedProgram(lowered, HardSteps(1), [], method), memory=0).double()
    found = []
    head = torch.nn.Linear(1, 1).double()
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    for loss in (F.binary_cross_entropy_with_logits, ours):
        optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            loss(head(inputs)[:, 0], target).backward()
            optimizer.step()
        found.append(f1((head(inputs)[:, 0] >= 0).numpy(), y))
    assert found[0] < reachable(x, y) - 0.05
    assert found[1] == pytest.approx(reachable(x, y))


def test_rows_that_were_given_up_pull_no_more():
    z = torch.tensor([[3.0, 0.0, 0.0], [-9.0, 0.0, 1.0]], dtype=torch.float64)
    one = program("maximize accuracy", sp.Task.multiclass(range(3)), 2.0).double()
    batch = one.rows(z, torch.tensor([0, 0]), None, None)
    slope = by_margin(batch, torch.eye(3, dtype=torch.float64), float(np.exp(-2)))
    assert slope[0].abs().sum() > 0
    assert slope[1].abs().sum() == 0
