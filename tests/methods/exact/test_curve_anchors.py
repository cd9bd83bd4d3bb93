"""Anchors along a curve, against scikit-learn's areas and the formula as it is written."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

import setpoint as sp
from setpoint._core.errors import GoalError
from setpoint.methods.exact.curve_anchors import AnchorsProgram, anchors_objection
from setpoint.surrogates import Annealed, Constant
from setpoint.training import RunningLoss

AP = "maximize average_precision"


def program(goal=AP, anchors=10, truncate=None):
    method = SimpleNamespace(anchors=anchors, truncate=truncate)
    return AnchorsProgram(sp.Goal.of(goal), sp.Task.binary(), method)


def made(goal=AP, anchors=10, truncate=None, *, memory=0, warmup=0):
    return RunningLoss(program(goal, anchors, truncate), memory=memory, warmup=warmup).double()


def rows(seed, n=400, share=0.25):
    rng = torch.Generator().manual_seed(seed)
    target = (torch.rand(n, generator=rng) < share).long()
    logits = 1.5 * torch.randn(n, generator=rng, dtype=torch.float64) + 1.5 * target
    return logits.requires_grad_(), target


@pytest.mark.parametrize("seed", range(2))
def test_the_value_is_the_area_up_to_the_grid(seed):
    logits, target = rows(seed, 20000)
    z, y = logits.detach().numpy(), target.numpy()
    truth = average_precision_score(y, z)
    for count, close in ((15, 0.002), (40, 0.001)):
        loss = made(anchors=count)
        found = 1 - loss(logits, target).item()
        assert found == pytest.approx(truth, abs=close)
        cuts = loss.program.reader.thresholds.numpy()
        precision = [y[z >= b].mean() for b in cuts[:, 0]]
        assert found == pytest.approx(np.mean(precision), abs=1e-9)
    part = made("maximize auroc(max_fpr=0.3, standardized=False)", 100)
    part(logits, target)
    recovered = part.program.recovered(part.totals.numpy() / 20000).value
    # scikit-learn scales the area as McClish did
    scaled, low = roc_auc_score(y, z, max_fpr=0.3), 0.5 * 0.3**2
    assert recovered == pytest.approx(low + (2 * scaled - 1) * (0.3 - low), abs=0.001)


def test_levels_are_kept_on_hard_counts():
    logits, target = rows(3, 1000)
    loss = made(anchors=8)
    loss(logits, target)
    positives = logits.detach()[target == 1]
    for k, threshold in enumerate(loss.program.reader.thresholds[:, 0].tolist()):
        level = (k + 0.5) / 8
        kept = float((positives >= threshold).double().mean())
        assert level - 1e-9 <= kept <= level + 1 / len(positives) + 1e-9


@pytest.mark.parametrize("kappa", [None, 3.0, 1.0])
@pytest.mark.parametrize("weighed", [False, True])
def test_pull_is_the_written_formula(kappa, weighed):
    logits, target = rows(4)
    weight = torch.rand(400, dtype=torch.float64) + 0.2
    loss = made(anchors=6, truncate=None if kappa is None else Constant(kappa))
    value = loss(logits, target, weight=weight if weighed else None)
    (ours,) = torch.autograd.grad(value, logits)
    w = (weight if weighed else torch.ones(400, dtype=torch.float64)) / 400
    w = w / w.sum()
    y, written = target.double(), 0.0
    for b in loss.program.reader.thresholds[:, 0]:
        decided = (logits.detach() >= b).double()
        tp, whole = (w * decided * y).sum(), (w * decided).sum()
        each = F.binary_cross_entropy_with_logits(logits - b, y, reduction="none")
        each = each if kappa is None else each.clamp(max=kappa)
        (slope,) = torch.autograd.grad((w * each).sum(), logits, retain_graph=True)
        negative = tp / whole / whole / 6  # −∂precision/∂FP, mean over anchors
        positive = negative * slope[y == 0].sum() / -slope[y == 1].sum()  # its pull sums to 0
        written = written + (w * each * (y * positive + (1 - y) * negative)).sum()
    (theirs,) = torch.autograd.grad(written, logits)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-10)
    assert abs(float(ours.sum())) < 1e-9


def test_scores_may_move_all_together():
    logits, target = rows(5)
    moved = (logits.detach() + 3).requires_grad_()
    one, other = made(truncate=Constant(2.0)), made(truncate=Constant(2.0))
    a, b = one(logits, target), other(moved, target)
    assert a.item() == pytest.approx(b.item())
    torch.testing.assert_close(
        torch.autograd.grad(a, logits)[0], torch.autograd.grad(b, moved)[0], rtol=1e-6, atol=1e-9
    )


def test_tensors_elsewhere_are_read_and_pulled_alike():
    logits, target = rows(6)
    one = program(truncate=Constant(2.0)).double()
    step = torch.zeros((), dtype=torch.long)
    batch, away = (one.rows(logits.detach(), target, None, None) for _ in range(2))
    away.host = away.flat = False
    away.z, away.y, away.p, away.w = away.logits, away.actual, away.probability, None
    one.settle(batch, step, None, True)
    here, memory = one.measure(batch, step)
    there, memory_ = one.measure(away, step)
    torch.testing.assert_close(torch.as_tensor(here), there, rtol=1e-9, atol=1e-9)
    prices = one.price(here / 400, np.zeros(0)).prices
    price_ = one.price(there / 400, torch.zeros(0).double()).prices
    torch.testing.assert_close(torch.as_tensor(prices), price_, rtol=1e-6, atol=1e-9)
    mine = one.pull(batch, memory, prices, 1.0, step, 0.01)
    theirs = one.pull(away, memory_, price_, torch.tensor(1.0), step, torch.tensor(0.01))
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-9)


def test_one_class_batches_stay_finite():
    loss = made(truncate=Constant(1.0), memory=100, warmup=1)
    for step in range(40):
        logits, target = rows(step, 12)
        value = loss(30 * logits, torch.zeros_like(target) + (step // 10) % 2)
        (gradient,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


def test_taking_up_a_run_goes_on_as_if_nothing_happened():
    one = made(truncate=Annealed(8, 2, 10), memory=300, warmup=1)
    for step in range(6):
        one(*rows(step, 50))
    other = made(truncate=Annealed(8, 2, 10), memory=300, warmup=1)
    other.load_state_dict(one.state_dict())
    for step in range(6, 20):
        assert one(*rows(step, 50)).item() == other(*rows(step, 50)).item()


@pytest.mark.parametrize(
    ("goal", "task", "word"),
    [
        ("maximize f1", sp.Task.binary(), "curve"),
        ("maximize average_precision subject to recall >= 0.5", sp.Task.binary(), "constraints"),
        ("maximize macro(auroc)", sp.Task.multiclass(range(3)), "curve"),
        ("maximize precision_at_k(5)", sp.Task.binary(), "share"),
    ],
)
def test_other_goals_are_refused_in_a_sentence(goal, task, word):
    why = anchors_objection(sp.Goal.of(goal), task)
    assert why is not None
    assert word in why
    with pytest.raises(GoalError, match=word):
        AnchorsProgram(sp.Goal.of(goal), task, SimpleNamespace(anchors=5, truncate=None))


def test_a_head_that_cannot_fit_ranks_better_than_by_cross_entropy():
    rng = np.random.default_rng(0)
    y = rng.random(4000) < 0.1
    x = rng.standard_normal((4000, 2))
    far = rng.random(4000) < 0.45
    x[y & far, 0] += 3.2
    x[y & ~far, 1] += 1.6
    x[~y, 1] *= 1.6
    model = LogisticRegression(C=1e4).fit(x, y)
    before = average_precision_score(y, model.decision_function(x))
    head = torch.nn.Linear(2, 1).double()
    with torch.no_grad():
        head.weight.copy_(torch.tensor(model.coef_))
        head.bias.copy_(torch.tensor(model.intercept_))
    inputs, target = torch.tensor(x), torch.tensor(y).long()
    loss = made(truncate=Annealed(8, 2, 100), memory=8192)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for step in range(150):
        some = torch.arange(step * 500, step * 500 + 500) % 4000
        optimizer.zero_grad()
        loss(head(inputs[some])[:, 0], target[some]).backward()
        optimizer.step()
    after = average_precision_score(y, head(inputs)[:, 0].detach().numpy())
    assert after > before + 0.01
