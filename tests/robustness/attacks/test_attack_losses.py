import pytest
import torch
from torch.nn.functional import log_softmax

from setpoint import DataError
from setpoint.robustness.attacks.attack_losses import (
    checked_loss,
    cross_entropy,
    margin,
    soft_margin,
    target_margin,
)


@pytest.fixture
def logits():
    return torch.randn(50, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_margin_is_what_a_loop_over_classes_gives(logits):
    y = torch.arange(50) % 5
    for row, label, value in zip(logits, y, margin(logits, y), strict=True):
        assert value == max(row[j] for j in range(5) if j != label) - row[label]


def test_a_margin_of_at_least_zero_is_a_mistake_and_a_target_margin_a_hit(logits):
    y = torch.arange(50) % 5
    assert torch.equal(margin(logits, y) >= 0, logits.argmax(1) != y)
    assert torch.equal(target_margin(logits, y) >= 0, logits.argmax(1) == y)
    tie = torch.zeros(1, 3)
    assert margin(tie, torch.tensor([1])) == 0


def test_cross_entropy_is_minus_log_softmax_up_to_its_clip(logits):
    y = torch.arange(50) % 5
    truth = -log_softmax(logits, 1).gather(1, y[:, None])[:, 0]
    assert torch.allclose(cross_entropy(logits, y, clip=1e9), truth, rtol=1e-12)
    assert torch.allclose(cross_entropy(logits, y, clip=1.5), truth.clamp(max=1.5), rtol=1e-12)


def test_cross_entropy_has_a_gradient_where_softmax_has_rounded_to_one():
    logits = torch.tensor([[60.0, 0.0, 0.0]], requires_grad=True)
    y = torch.tensor([0])
    (ours,) = torch.autograd.grad(cross_entropy(logits, y).sum(), logits)
    (plain,) = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, y), logits)
    assert float(ours.abs().max()) > 0
    assert float(plain[0, 0]) == 0


def test_the_soft_margin_lies_just_above_the_margin(logits):
    y = torch.arange(50) % 5
    gap = soft_margin(logits, y) - margin(logits, y)
    assert bool((gap >= 0).all())
    assert bool((gap <= torch.log(torch.tensor(4.0))).all())


def test_an_unknown_loss_is_named_with_those_that_are_known():
    with pytest.raises(DataError, match=r"'hinge'.*'margin', 'cross_entropy'"):
        checked_loss("hinge")
