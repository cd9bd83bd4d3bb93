"""What others do, and odd models and distances, must not spoil the figures."""

import math

import pytest
import torch

import setpoint as sp
from setpoint.robustness.evaluate import evaluate


def rude(model, x, y):
    """An attack that trains on the side and leaves the model so."""
    model.train()
    model(x).sum().backward()
    return x


def test_an_attack_that_leaves_the_model_in_training_changes_nothing():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))
    net.eval()
    x = torch.rand(8, 6)
    y = net(x).argmax(1)
    before = {name: part.clone() for name, part in net.state_dict().items()}
    found = evaluate(net, x, y, "l2", 1e-4, attacks=[rude], radius=False)
    assert found.levels[0].right == 8
    assert not any(part.training for part in net.modules())
    assert all(w.grad is None for w in net.parameters())
    assert all(torch.equal(part, before[name]) for name, part in net.state_dict().items())


class Infinite(torch.nn.Module):
    """Sure of image 0 beyond all numbers, with a third class that never wins."""

    def forward(self, x):
        sure = torch.where(x[:, 0] > 0.9, torch.inf, x[:, 0])
        return torch.stack([sure, x[:, 1], torch.full_like(x[:, 0], -torch.inf)], 1)


def test_one_image_without_a_margin_does_not_save_the_others():
    x = torch.tensor([[1.0, 0.1], [0.5, 0.4], [0.6, 0.5], [0.45, 0.4]])
    found = evaluate(Infinite(), x, torch.zeros(4, dtype=torch.long), "linf", 0.2)
    assert found.levels[0].right == 1
    assert [bool(math.isinf(r)) for r in found.table["radius"]] == [True, False, False, False]


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_logits_may_have_another_precision_than_the_images(kind, distance):
    torch.manual_seed(0)
    net = torch.nn.Linear(6, 3).to(kind)
    x = torch.rand(8, 6)
    y = net(x.to(kind)).argmax(1)
    found = evaluate(lambda x: net(x.to(kind)), x, y, distance, 3.0)
    assert found.levels[0].right < 8
    assert not any(ran.failures for ran in found.attacks)


def test_half_precision_is_refused():
    net = torch.nn.Linear(6, 3).half()
    with pytest.raises(sp.KindError, match="float32"):
        evaluate(net, torch.rand(4, 6).half(), torch.zeros(4, dtype=torch.long), "l2", 0.5)


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (lambda a, b: (a - b).square().sum(1) / (a - b).abs().sum(1), "nan"),
        (lambda a, b: torch.ones(len(a)), "is 1 between"),
        (lambda a, b: (a - b).norm(dim=1) - 9, "is -9 between"),
        (lambda a, b: a.nothing(), "raised AttributeError"),
    ],
)
def test_a_distance_that_is_none_is_refused(distance, said):
    net = torch.nn.Linear(6, 3)
    x = torch.rand(4, 6)
    with pytest.raises(sp.DataError, match=said):
        evaluate(net, x, net(x).argmax(1), distance, 0.5)
