import math

import pytest
import torch
from tests.robustness.small_nets import images, network
from tests.robustness.stand_ins import linear
from torch import nn

from setpoint import DataError, KindError
from setpoint.robustness.attacks.attack_losses import cross_entropy, margin, target_margin
from setpoint.robustness.attacks.distances import as_distance
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.projections import project, reach

NORMS = ["l1", "l2", "linf", "l1.5", "l4"]


def greatest_linear(weights, bias, x, y, p, eps, classes):
    """Max over rivals of the greatest margin of a linear model in ball ∩ box, by bisection.

    g·u over ‖u‖_p ≤ eps in the box is greatest at the least move that reaches its own value, so the
    value is found by asking how far each wish is.
    """
    flat = x.flatten(1)
    best = torch.full((len(x),), -math.inf, dtype=torch.float64)
    for rival in range(classes):
        g = weights[rival] - weights[y]
        base = (g * flat).sum(1) + bias[rival] - bias[y]
        least, most = torch.zeros(len(x)).double(), (g.abs()).sum(1)
        for _ in range(80):
            middle = 0.5 * (least + most)
            u = reach(g, -flat, 1 - flat, middle, p)
            far = torch.linalg.vector_norm(u, p, dim=1) > eps
            short = (g * u).sum(1) < middle * (1 - 1e-9)
            least, most = (
                torch.where(far | short, least, middle),
                torch.where(far | short, middle, most),
            )
        best = torch.where(y == rival, best, torch.maximum(best, base + least))
    return best


@pytest.mark.parametrize("name", NORMS)
def test_on_a_linear_model_the_greatest_margin_is_found(name):
    """Exact for each rival, box included; past 0.01 the loss is flat: it only has to get there."""
    draw = torch.Generator().manual_seed(3)
    weights = torch.randn(4, 6, generator=draw, dtype=torch.float64)
    bias = 0.1 * torch.randn(4, generator=draw, dtype=torch.float64)
    x = torch.rand(40, 6, generator=draw, dtype=torch.float64)
    y = (x @ weights.T + bias).argmax(1)
    p = as_distance(name).p
    eps = {1.0: 0.7, 1.5: 0.55, 2.0: 0.45, 4.0: 0.35, math.inf: 0.27}[p]
    found = max_loss(linear(weights, bias), x, y, name, eps)
    with torch.no_grad():
        got = margin(found.x @ weights.T + bias, y)
    truth = greatest_linear(weights, bias, x, y, p, eps, 4)
    assert bool((got <= truth + 1e-6).all())
    assert torch.allclose(got.clamp(max=0.01), truth.clamp(max=0.01), atol=2e-3)
    assert torch.equal(got >= 0, truth >= 0)
    assert 5 < int((truth >= 0).sum()) < 35  # some resist and some do not


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_point_is_in_the_ball_and_in_the_box(name, dtype):
    net = network(dtype)
    x, y = images(net, 12, dtype)
    eps = {"l1": 0.6, "linf": 0.1}.get(name, 0.25)
    found = max_loss(net, x, y, name, eps, iterations=10)
    assert found.x.dtype == dtype
    assert bool(((found.x >= 0) & (found.x <= 1)).all())
    assert not found.violation.any()
    assert bool((as_distance(name)(x, found.x) <= eps).all())
    assert bool(((found.stationarity >= 0) & (found.stationarity <= 1 + 1e-5)).all())


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_no_random_point_and_no_plain_climb_does_better(name):
    """Beside 300 steps of plain projected ascent on the margin from five random starts."""
    net = network()
    x, y = images(net, 30)
    p, eps = as_distance(name).p, {"l1": 0.8, "linf": 0.15}.get(name, 0.4)
    found = max_loss(net, x, y, name, eps)
    ours = margin(net(found.x), y).detach()
    flat, draw = x.flatten(1), torch.Generator().manual_seed(1)
    radius = torch.full((30,), eps, dtype=torch.float64)
    best = torch.full((30,), -math.inf, dtype=torch.float64)
    for _ in range(5):
        u = project(torch.randn(flat.shape, generator=draw).double(), -flat, 1 - flat, radius, p)
        for turn in range(60):
            at = (flat + u).requires_grad_()
            value = margin(net(at.view_as(x)), y)
            (g,) = torch.autograd.grad(value.sum(), at)
            best = torch.maximum(best, value.detach())
            step = eps * 0.5 * (1 - turn / 60)
            way = g.sign() if math.isinf(p) else g / g.norm(dim=1, keepdim=True)
            u = project(u + step * way, -flat, 1 - flat, radius, p)
    assert not bool(((best >= 0) & (ours < 0)).any())
    assert float(ours.clamp(max=0.01).mean()) >= float(best.clamp(max=0.01).mean()) - 1e-4


def test_a_target_is_reached_or_not_and_is_what_is_climbed_for():
    net = network()
    x, y = images(net, 30)
    target = (y + 1) % 4
    found = max_loss(net, x, y, "l2", 1.0, target=target)
    plain = max_loss(net, x, y, "l2", 1.0)
    hits = target_margin(net(found.x), target) >= 0
    assert int(hits.sum()) >= 15
    assert int(hits.sum()) >= int((target_margin(net(plain.x), target) >= 0).sum())


def test_cross_entropy_is_made_larger_than_the_margin_attack_makes_it():
    net = network()
    x, y = images(net, 30)
    entropy = max_loss(net, x, y, "linf", 0.1, loss="cross_entropy")
    edge = max_loss(net, x, y, "linf", 0.1)
    ours, other = (cross_entropy(net(found.x), y).detach() for found in (entropy, edge))
    assert float(ours.mean()) >= float(other.mean())
    assert bool((ours >= cross_entropy(net(x), y) - 1e-12).all())


def test_a_confident_network_does_not_stop_cross_entropy():
    """Logits times 100: softmax rounds to one and the plain gradient is zero."""
    net = network(torch.float32)
    x, y = images(net, 20, torch.float32)

    def sure(images):
        return 100.0 * net(images)

    found = max_loss(sure, x, y, "l2", 1.0, loss="cross_entropy")
    assert int((margin(net(found.x), y) >= 0).sum()) >= 15


def test_rows_do_not_depend_on_the_rows_beside_them_and_seeds_decide():
    net = network()
    x, y = images(net, 10)
    seeds = list(range(100, 110))
    whole = max_loss(net, x, y, "l1", 0.3, seed=seeds).x
    cuts = [slice(0, 7), slice(7, 10)]
    parts = [max_loss(net, x[cut], y[cut], "l1", 0.3, seed=seeds[cut]).x for cut in cuts]
    assert torch.allclose(whole, torch.cat(parts), atol=1e-9)
    assert not torch.equal(whole, max_loss(net, x, y, "l1", 0.3, seed=7).x)


def test_the_model_is_left_as_it_was():
    net = network()
    x, y = images(net, 6)
    before = [one.clone() for one in net.parameters()]
    max_loss(net, x, y, "l2", 0.3, iterations=10)
    assert all(one.grad is None for one in net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert not x.requires_grad


def test_progress_goes_up_to_one_and_images_are_counted():
    net, seen, rows = network(), [], [0]
    x, y = images(net, 6)

    def counted(images):
        rows[0] += len(images)
        return net(images)

    found = max_loss(counted, x, y, "l2", 0.05, iterations=10, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert found.forwards == rows[0]
    assert int(found.iterations.sum()) <= rows[0]


def test_an_image_that_is_already_wrong_and_a_radius_of_zero_stay():
    net = network()
    x, y = images(net, 8)
    wrong = (y + 1) % 4
    assert torch.equal(max_loss(net, x, y, "l2", 0.0).x, x)
    found = max_loss(net, x, wrong, "l2", 0.1)
    assert bool((margin(net(found.x), wrong) >= 0).all())


def test_a_radius_for_each_image():
    net = network()
    x, y = images(net, 8)
    eps = torch.linspace(0.05, 0.8, 8, dtype=torch.float64)
    found = max_loss(net, x, y, "l2", eps, iterations=10)
    assert bool((as_distance("l2")(x, found.x) <= eps).all())


def test_flat_spots_and_nan_leave_the_image_in_the_box():
    x = torch.rand(5, 6, dtype=torch.float64)
    y = torch.zeros(5, dtype=torch.long)

    def flat(images):
        return images.flatten(1)[:, :3] * 0.0 + torch.tensor([1.0, 0.0, 0.0])

    def broken(images):
        z = images.flatten(1)[:, :2]
        moved = ((images - x[: len(images)]).abs().sum(1, keepdim=True) > 0) if len(z) == 5 else 0
        return torch.where(torch.as_tensor(moved), torch.nan, z + torch.tensor([5.0, 0.0]))

    for model in (flat, broken):
        found = max_loss(model, x, y, "l2", 0.2, iterations=10)
        assert bool(torch.isfinite(found.x).all())
        assert bool(((found.x >= 0) & (found.x <= 1)).all())


def test_what_cannot_be_asked_is_said():
    net = network()
    x, y = images(net, 4)
    with pytest.raises(DataError, match="outside its box"):
        max_loss(net, 2 * x, y, "l2", 0.1)
    with pytest.raises(DataError, match="eps is -1"):
        max_loss(net, x, y, "l2", -1.0)
    with pytest.raises(DataError, match="loss is 'hinge'"):
        max_loss(net, x, y, "l2", 0.1, loss="hinge")
    with pytest.raises(DataError, match="classes 0 to 3"):
        max_loss(net, x, y + 9, "l2", 0.1)
    with pytest.raises(KindError, match="y is torch"):
        max_loss(net, x, y.double(), "l2", 0.1)
    with pytest.raises(KindError, match="logits"):
        max_loss(lambda images: images.sum(), x, y, "l2", 0.1)
    with pytest.raises(DataError, match="logits for image 0 are not finite"):
        max_loss(lambda images: net(images) * math.nan, x, y, "l2", 0.1)
    with pytest.raises(DataError, match=r"Dropout in training mode.*model.eval\(\)"):
        max_loss(nn.Sequential(net, nn.Dropout()).train(), x, y, "l2", 0.1)


def test_no_images_are_no_mistake():
    net = network()
    x, y = images(net, 4)
    found = max_loss(net, x[:0], y[:0], "l2", 0.1)
    assert len(found.x) == len(found.stationarity) == 0
