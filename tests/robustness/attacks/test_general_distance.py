"""Attacks under any distance: closed forms of linear models, and never a point outside."""

import pytest
import torch
from tests.robustness.small_nets import images, network
from tests.robustness.stand_ins import linear, nearest_wrong

from setpoint import DataError, KindError
from setpoint.robustness.attacks.attack_losses import margin, target_margin
from setpoint.robustness.attacks.bisection import inside, outside
from setpoint.robustness.attacks.general_distance import general_max_loss, general_min_radius
from setpoint.robustness.attacks.min_radius import min_radius
from setpoint.solvers.batched import folded

SCALES = torch.tensor([1.0, 2.0, 0.5, 1.5, 1.0, 0.7], dtype=torch.float64)


def weighed(x, other):
    """‖D (x − x')‖₂: with D x in place of x it is the Euclidean distance."""
    return ((x - other) * SCALES.to(x)).norm(dim=1)


def weighed_problem(count=20):
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(4, 6, generator=draw, dtype=torch.float64)
    bias = 0.1 * torch.randn(4, generator=draw, dtype=torch.float64)
    x = 0.4 + 0.2 * torch.rand(count, 6, generator=draw, dtype=torch.float64)
    y = (x @ weights.T + bias).argmax(1)
    _, radius = nearest_wrong(weights / SCALES, bias, x * SCALES, y, 2)
    return linear(weights, bias), x, y, radius


def euclid(x, other):
    return (x - other).flatten(1).norm(dim=1)


class Features:
    """‖φ(x) − φ(x')‖₂ with φ the unit-length hidden layer of another network."""

    def __init__(self, dtype=torch.float64):
        self.net = network(dtype, seed=7)[:2]

    def __call__(self, x, other):
        a, b = (torch.nn.functional.normalize(torch.tanh(self.net(z)), dim=1) for z in (x, other))
        return ((a - b).square().sum(1) + 1e-24).sqrt()


def test_least_radius_of_a_linear_model_is_the_closed_form():
    model, x, y, radius = weighed_problem()
    found = general_min_radius(model, x, y, weighed, low=-9.0, high=9.0, iterations=80)
    far = weighed(x, found.x)
    assert (margin(model(found.x), y) >= 0).all()
    assert (far >= radius * (1 - 1e-9)).all()  # nothing can be nearer
    assert (far <= radius * 1.01).all()
    assert (found.violation == 0).all()


def test_greatest_loss_succeeds_from_the_closed_form_on_and_not_before():
    model, x, y, radius = weighed_problem()
    for share, wanted in ((1.01, True), (0.99, False)):
        eps = radius * share
        found = general_max_loss(model, x, y, weighed, eps, low=-9.0, high=9.0, iterations=80)
        assert (weighed(x, found.x) <= eps).all()
        assert ((margin(model(found.x), y) >= 0) == wanted).all()


def test_as_near_as_the_attack_that_projects():
    model = network()
    x, y = images(model, 16)
    ours = general_min_radius(model, x, y, euclid, restarts=4)
    theirs = min_radius(model, x, y, "l2")
    far, near = euclid(x, ours.x), euclid(x, theirs.x)
    assert (margin(model(ours.x), y) >= 0).all()
    assert ((ours.x >= 0) & (ours.x <= 1)).all()
    assert far.median() <= near.median() * 1.02


@pytest.mark.parametrize(
    ("dtype", "loss"), [(torch.float64, "margin"), (torch.float32, "cross_entropy")]
)
def test_never_outside_and_more_than_steps_with_projection(dtype, loss):
    model, seen = network(dtype), Features(dtype)
    x, y = images(model, 16, dtype)
    eps = 0.15
    found = general_max_loss(model, x, y, seen, eps, loss=loss, restarts=2, iterations=100)
    assert (seen(x, found.x) <= eps).all()
    assert ((found.x >= 0) & (found.x <= 1)).all()
    assert (found.violation == 0).all()
    assert found.x.dtype == dtype
    won = margin(model(found.x), y) >= 0
    assert 0 < won.sum() < len(won)  # otherwise nothing is compared
    z = x + 1e-3
    beaten = torch.zeros_like(won)
    for _ in range(100):  # normalised gradient steps, each pulled back on the segment
        z = z.detach().requires_grad_()
        (g,) = torch.autograd.grad(margin(model(z), y).sum(), z)
        z = (z + 0.02 * g / g.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None]).detach()
        z = inside(x, z.clamp(0, 1), lambda w: seen(x, w) <= eps)
        beaten |= margin(model(z), y) >= 0
    assert won.sum() >= beaten.sum()


def test_targets():
    model = network()
    x, y = images(model, 8)
    target = (y + 1) % 4
    found = general_min_radius(
        model, x, y, euclid, target=target, low=-3.0, high=3.0, iterations=60
    )
    assert (target_margin(model(found.x), target) >= 0).all()
    free = general_min_radius(model, x, y, euclid, low=-3.0, high=3.0, iterations=60)
    assert (euclid(x, found.x) >= euclid(x, free.x) * 0.999).all()  # a class costs more than any
    eps = euclid(x, found.x) * 1.05
    lost = general_max_loss(
        model, x, y, euclid, eps, target=target, low=-3.0, high=3.0, iterations=60
    )
    assert (target_margin(model(lost.x), target) >= 0).double().mean() >= 0.9
    assert (euclid(x, lost.x) <= eps).all()


def test_images_do_not_know_of_each_other():
    model = network()
    x, y = images(model, 4)
    whole = general_min_radius(model, x, y, euclid, restarts=2, iterations=60)
    parts = general_min_radius(model, x, y, euclid, restarts=2, iterations=60, batch=4)
    # the same draws: what is left is rounding, which kinks make larger
    torch.testing.assert_close(euclid(x, whole.x), euclid(x, parts.x), atol=0, rtol=1e-2)
    assert whole.x.shape == x.shape


def test_done_images_stay_and_no_room_is_no_room():
    model = network()
    x, y = images(model, 8)
    wrong = (y + 1) % 4
    for found in (
        general_min_radius(model, x, wrong, euclid),
        general_max_loss(model, x, wrong, euclid, 0.3, iterations=10),
        general_max_loss(model, x, y, euclid, 0.0, iterations=10),
    ):
        assert torch.equal(found.x, x)
        assert (found.violation == 0).all()


def test_progress_counts_and_an_empty_batch():
    model = network()
    x, y = images(model, 4)
    told, calls = [], 0

    def counted(z):
        nonlocal calls
        calls += len(z)
        return model(z)

    found = general_max_loss(
        counted, x, y, euclid, 0.1, restarts=2, iterations=10, batch=4, progress=told.append
    )
    assert told == [0.5, 1.0]
    assert calls - 4 <= found.forwards <= calls  # the images themselves are asked for once
    assert (found.iterations > 0).all()
    none = general_min_radius(model, x[:0], y[:0], euclid)
    assert none.x.shape == (0, 1, 2, 4)


def test_what_cannot_be_meant_is_said():
    model = network()
    x, y = images(model, 2)
    with pytest.raises(KindError, match="restarts=0"):
        general_max_loss(model, x, y, euclid, 0.1, restarts=0)
    with pytest.raises(DataError, match="eps is -1"):
        general_max_loss(model, x, y, euclid, -1.0)
    with pytest.raises(KindError, match="one number for each"):
        general_min_radius(model, x, y, lambda a, b: (a - b).sum())
    with pytest.raises(DataError, match="loss is 'hinge'"):
        general_max_loss(model, x, y, euclid, 0.1, loss="hinge")


def test_segments_return_what_was_measured():
    x = torch.zeros(3, 2, dtype=torch.float64)
    z = torch.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]], dtype=torch.float64)
    back = inside(x, z, lambda w: w.norm(dim=1) <= 1, halvings=40)
    assert (back.norm(dim=1) <= 1).all()
    torch.testing.assert_close(back.norm(dim=1), torch.tensor([1.0, 0.5, 1.0]).double())
    out = outside(x, z, lambda w: w.norm(dim=1) >= 1, halvings=40)
    wanted = torch.tensor([1.0, 0.5, 1.0]).double()  # the second never was outside: left alone
    torch.testing.assert_close(out.norm(dim=1), wanted)
    assert (out.norm(dim=1)[[0, 2]] >= 1).all()


def test_folding_asks_for_the_same():
    sides = torch.tensor([[-1.0, 0.0], [3.0, -5.0], [3.0, 4.0]])
    one = folded(lambda x: x)(sides)
    assert ((one <= 0) == (sides <= 0).all(1)).all()
    torch.testing.assert_close(one, torch.tensor([0.0, 3.0, 5.0]) / 2**0.5)
