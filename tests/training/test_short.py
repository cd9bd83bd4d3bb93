"""The short way of the commonest batch says what the general way says."""

import copy

import pytest
import torch

import setpoint as sp
from setpoint.methods import Costs, CrossEntropy, Implicit, SoftSet
from setpoint.surrogates import Linear, Ramp
from setpoint.training.running_loss import EVERY

CASES = {
    "f1": ("maximize f1", SoftSet()),
    "f1 alone": ("maximize f1", SoftSet(cross_entropy=0.0)),
    "ramp": ("maximize jaccard", SoftSet(Ramp())),
    "accuracy": ("maximize accuracy", SoftSet(Linear(delta=0.1))),
    "cost": ("minimize cost(fp=1, fn=10)", SoftSet()),
    "two fractions": ("maximize 0.5 * precision + 0.5 * recall", SoftSet()),
    "grid": ("maximize f1", SoftSet(thresholds="grid")),
    "other thresholds": ("maximize f_beta(2)", SoftSet(thresholds=(0.123, 0.5, 0.87))),
    "costs": ("maximize f1", Costs()),
    "costs, rewarding mistakes": ("maximize fpr + 0.1 * recall", Costs()),
    "entropy": ("maximize f1", CrossEntropy()),
    "balanced": ("maximize f1", CrossEntropy("balanced")),
    "weights": ("maximize f1", CrossEntropy((1, 3))),
    "fnr at fpr": ("minimize fnr_at_fpr(0.1)", Implicit(every=3)),
    "part of a curve": ("maximize auprc(min_recall=0.5)", Implicit(points=4, every=2, pool=50)),
    "share decided": ("maximize precision_at_k(3)", Implicit(share=0.15)),
}


def warm(name):
    """Two equal losses past the first calls; one of them never takes the short way."""
    goal, method = CASES[name]
    loss = sp.GoalLoss(goal, method, memory=2000)
    rng = torch.Generator().manual_seed(0)
    for _ in range(2 * EVERY + 2):
        z, y = batch(rng, 20)
        loss(z, y)
    other = copy.deepcopy(loss)
    other._plain = False
    return loss, other, rng


def batch(rng, n, share=0.2, scale=2.0):
    y = (torch.rand(n, generator=rng) < share).float()
    return scale * torch.randn(n, generator=rng) + y, y


def both(loss, other, z, y):
    """Values and gradients of the two ways."""
    found = []
    for way in (loss, other):
        leaf = z.clone().requires_grad_()
        value = way(leaf, y)
        value.backward()
        found.append((value.detach(), leaf.grad))
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_short_way_is_the_general_way(name):
    loss, other, rng = warm(name)
    assert loss._program.short is not None
    loss(*batch(rng, 20)[:2])
    other.load_state_dict(loss.state_dict())
    assert loss._brief
    for i in range(30):
        n = (1, 7, 64, 500)[i % 4]
        z, y = batch(rng, n, share=(0.0, 0.1, 0.5, 1.0)[i // 8], scale=(1.0, 1e4)[i % 5 == 4])
        (value, gradient), (value_, gradient_) = both(loss, other, z, y)
        assert loss._brief
        assert not other._brief
        torch.testing.assert_close(value, value_, rtol=2e-5, atol=1e-6)
        torch.testing.assert_close(gradient, gradient_, rtol=2e-4, atol=1e-6)
    for key, buffer in other.state_dict().items():
        torch.testing.assert_close(loss.state_dict()[key], buffer, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_that_is_not_finite_is_left_out(name):
    loss, _, rng = warm(name)
    loss(*batch(rng, 20))
    before = loss.totals.clone()
    z, y = batch(rng, 20)
    z[3] = float("nan")
    assert not loss(z, y).isfinite()
    if not isinstance(CASES[name][1], CrossEntropy) and not name.startswith("costs"):
        assert torch.equal(loss.totals, before)
    assert loss.totals.isfinite().all()
    assert loss.prices.isfinite().all()
    assert loss(*batch(rng, 20)).isfinite()


def test_copies_files_and_other_batches_leave_the_short_way():
    loss, _, rng = warm("f1")
    loss(*batch(rng, 20))
    assert loss._brief
    twin = copy.deepcopy(loss)
    twin(*batch(rng, 20))
    assert not torch.equal(twin.totals, loss.totals)  # arrays of its own
    fresh = sp.GoalLoss(*CASES["f1"], memory=2000, warmup=10**6)
    fresh._brief = True
    fresh.load_state_dict(loss.state_dict())
    assert not fresh._brief
    z, y = batch(rng, 20)
    steps = int(loss.steps)
    loss(z, y, weight=torch.ones(20))
    loss(z.double(), y.double())
    loss(z[:, None], y)
    assert int(loss.steps) == steps + 3
    twin = copy.deepcopy(loss)
    twin._plain = False
    torch.testing.assert_close(loss(z, y.long()), twin(z, y.long()))
    torch.testing.assert_close(loss.totals, twin.totals)
    torch.testing.assert_close(loss(z, y.bool()), twin(z, y.bool()))
    loss.eval()
    before = loss.totals.clone()
    loss(z, y)
    assert torch.equal(loss.totals, before)
