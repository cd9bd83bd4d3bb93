import math

import pytest
import torch
from tests.robustness.small_nets import images, network
from tests.robustness.stand_ins import linear, nearest_wrong
from torch import nn

from setpoint.robustness.attacks.attack_losses import margin, target_margin
from setpoint.robustness.attacks.distances import as_distance
from setpoint.robustness.attacks.min_radius import min_radius
from setpoint.robustness.attacks.projections import reach

NORMS = ["l1", "l2", "linf", "l1.5", "l4"]


@pytest.fixture
def plane():
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(4, 6, generator=draw, dtype=torch.float64)
    bias = 0.1 * torch.randn(4, generator=draw, dtype=torch.float64)
    x = torch.rand(40, 6, generator=draw, dtype=torch.float64)
    return weights, bias, x, (x @ weights.T + bias).argmax(1)


@pytest.mark.parametrize("name", NORMS)
def test_on_a_linear_model_without_a_box_it_is_the_distance_to_the_nearest_plane(name, plane):
    weights, bias, x, y = plane
    found = min_radius(linear(weights, bias), x, y, name, low=-99.0, high=99.0)
    truth = nearest_wrong(weights, bias, x, y, as_distance(name).p)[1]
    assert torch.allclose(as_distance(name)(x, found.x), truth, rtol=2e-3)
    assert float(found.stationarity.max()) < 5e-3
    assert not found.violation.any()


@pytest.mark.parametrize("name", NORMS)
def test_on_a_linear_model_in_a_box_it_is_the_nearest_of_the_half_spaces(name, plane):
    """The least move for each rival is a convex program that ``reach`` solves exactly."""
    weights, bias, x, y = plane
    p = as_distance(name).p
    truth = torch.full((len(x),), math.inf, dtype=torch.float64)
    for rival in range(4):
        g = weights[rival] - weights[y]
        wanted = -((g * x).sum(1) + bias[rival] - bias[y])
        u = reach(g, -x, 1 - x, wanted, p)
        can = (g * u).sum(1) >= wanted * (1 - 1e-12)
        size = torch.where(can & (y != rival), torch.linalg.vector_norm(u, p, dim=1), math.inf)
        truth = torch.minimum(truth, size)
    found = min_radius(linear(weights, bias), x, y, name)
    got = as_distance(name)(x, found.x)
    reachable = truth.isfinite()
    assert int(reachable.sum()) > 30
    assert torch.allclose(got[reachable], truth[reachable], rtol=3e-3)
    assert bool((found.violation[reachable] == 0).all())
    assert bool((found.violation[~reachable] > 0).all())
    assert bool(((found.x >= 0) & (found.x <= 1)).all())


@pytest.mark.parametrize("name", ["l2", "linf"])
def test_in_two_dimensions_it_is_what_a_grid_finds(name):
    net = network(size=2)
    x, y = images(net, 12, size=2)
    ticks = torch.linspace(0, 1, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(ticks, ticks)
    with torch.no_grad():
        decided = net(grid.view(-1, 1, 2, 1)).argmax(1)
    found = min_radius(net, x, y, name)
    got = as_distance(name)(x, found.x)
    for row in range(12):
        gaps = (grid - x[row].flatten()).abs()
        size = gaps.amax(1) if name == "linf" else gaps.norm(dim=1)
        other = size[decided != y[row]]
        if len(other):
            assert float(got[row]) <= float(other.min()) + 1e-6
            assert float(got[row]) >= float(other.min()) - 1.5 / 400
            assert found.violation[row] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_are_wrong_alone_as_in_the_batch_and_lie_on_the_surface(dtype):
    net = network(dtype)
    x, y = images(net, 20, dtype)
    found = min_radius(net, x, y, "l2")
    alone = torch.cat([margin(net(one[None]), y[k : k + 1]) for k, one in enumerate(found.x)])
    assert bool((alone >= 0).all())
    back = x + (found.x - x) * 0.99
    assert float((margin(net(back), y) < 0).double().mean()) > 0.9
    assert found.x.dtype == dtype


def test_a_target_is_farther_than_any_class():
    net = network()
    x, y = images(net, 20)
    target = (y + 1) % 4
    any_class = as_distance("l2")(x, min_radius(net, x, y, "l2").x)
    found = min_radius(net, x, y, "l2", target=target)
    hit = target_margin(net(found.x), target) >= 0
    assert int(hit.sum()) >= 10
    assert bool((as_distance("l2")(x, found.x)[hit] >= any_class[hit] * (1 - 5e-2)).all())
    assert torch.equal(hit, found.violation == 0)


def test_an_image_that_is_already_wrong_has_radius_zero():
    net = network()
    x, y = images(net, 8)
    assert torch.equal(min_radius(net, x, (y + 1) % 4, "l1").x, x)
    assert torch.equal(min_radius(net, x, y, "l1", target=y).x, x)


def test_an_image_on_a_flat_spot_is_rescued():
    """No gradient where the image stands: only another start finds the way."""

    def model(images):
        z = nn.functional.relu(images.flatten(1).sum(1) - 1.2)
        return torch.stack([torch.full_like(z, 0.5), z], 1)

    x = torch.full((3, 4), 0.1, dtype=torch.float64)
    found = min_radius(model, x, torch.zeros(3, dtype=torch.long), "l2")
    # the surface is Σ x = 1.7, which is (1.7 − 0.4) / 2 away
    assert torch.allclose(as_distance("l2")(x, found.x), torch.full((3,), 0.65).double(), rtol=5e-3)


def test_a_constant_model_ends_with_the_margin_that_is_missing():
    def model(images):
        z = images.flatten(1).sum(1, keepdim=True) * 0.0
        return torch.cat([z + 1.0, z], 1)

    x = torch.rand(3, 4, dtype=torch.float64)
    found = min_radius(model, x, torch.zeros(3, dtype=torch.long), "linf")
    assert torch.equal(found.violation, torch.ones(3).double())
    assert bool(torch.isfinite(found.x).all())


def test_rows_do_not_depend_on_the_rows_beside_them():
    net = network()
    x, y = images(net, 9)
    seeds = list(range(9))
    whole = min_radius(net, x, y, "l1", seed=seeds).x
    cuts = [slice(0, 5), slice(5, 9)]
    parts = [min_radius(net, x[cut], y[cut], "l1", seed=seeds[cut]).x for cut in cuts]
    assert torch.allclose(whole, torch.cat(parts), atol=1e-8)


def test_restarts_and_iterations_only_help():
    net = network()
    x, y = images(net, 20)
    short = as_distance("l1")(x, min_radius(net, x, y, "l1", restarts=0, iterations=10).x)
    long = as_distance("l1")(x, min_radius(net, x, y, "l1", restarts=4, iterations=200).x)
    assert float(long.mean()) < float(short.mean())
    assert bool((long <= short * 1.01).all())


def test_progress_goes_up_to_one_and_the_model_is_left_alone():
    net, seen = network(), []
    x, y = images(net, 5)
    found = min_radius(net, x, y, "l2", iterations=20, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert all(one.grad is None for one in net.parameters())
    assert found.forwards >= int(found.iterations.sum())
