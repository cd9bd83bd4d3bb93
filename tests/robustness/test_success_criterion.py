"""The one criterion: clipping, ties, distances in float64, logits that are no numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robustness.stand_ins import linear

import setpoint as sp
from setpoint.robustness.attacks.distances import as_distance
from setpoint.robustness.success_criterion import RELATIVE, Judge


def identity(x):
    """Logits that are the pixels."""
    return x


def judge(distance="l2", model=identity, **more):
    return Judge(model, as_distance(distance), **more)


def test_points_are_clipped_before_anything_else():
    x = torch.tensor([[0.9, 0.1]])
    moved = torch.tensor([[0.9, 1.7]])
    seen = []
    found = judge(model=lambda z: (seen.append(z.clone()), z)[1])(x, torch.tensor([0]), moved)
    assert found.x.tolist() == [[pytest.approx(0.9), 1.0]]
    assert seen[0].tolist() == found.x.tolist()
    assert float(found.distance) == pytest.approx(0.9, rel=1e-6)  # not 1.6
    assert found.prediction.tolist() == [1]


@pytest.mark.parametrize(("strict", "wrong", "said"), [(False, True, 1), (True, False, 0)])
def test_a_tie_is_wrong_unless_strict(strict, wrong, said):
    x = torch.tensor([[0.5, 0.5, 0.2]])
    found = judge(strict=strict)(x, torch.tensor([0]), x)
    assert (found.wrong.tolist(), found.prediction.tolist()) == ([wrong], [said])
    assert float(found.margin) == 0.0


def test_a_target_is_reached_by_it_alone():
    x = torch.tensor([[0.5, 0.1, 0.2], [0.5, 0.1, 0.2], [0.5, 0.1, 0.2]])
    moved = torch.tensor([[0.1, 0.5, 0.2], [0.1, 0.2, 0.5], [0.5, 0.2, 0.5]])
    found = judge()(x, torch.tensor([0, 0, 0]), moved, torch.tensor([2, 2, 2]))
    assert found.wrong.tolist() == [False, True, True]
    assert found.prediction.tolist() == [1, 2, 2]


def test_logits_that_are_no_numbers_are_never_a_success():
    x = torch.tensor([[0.5, 0.1], [0.5, 0.1], [0.5, 0.1]])
    moved = torch.tensor([[math.nan, 0.9], [0.0, 0.9], [0.5, 0.1]])

    def model(z):
        return torch.where(z[:, 1:] > 0.8, torch.full_like(z, math.nan), z)

    found = judge(model=model)(x, torch.tensor([0, 0, 0]), moved)
    assert found.broken.tolist() == [True, True, False]
    assert found.prediction.tolist() == [-1, -1, 0]
    assert not judge().succeeds(found, 10.0).any()


@pytest.mark.parametrize("name", ["l1", "l2", "l3.5", "linf"])
def test_norms_are_those_of_numpy_in_float64(name):
    draw = torch.Generator().manual_seed(1)
    x, moved = torch.rand(2, 5, 3, 8, 8, generator=draw)
    found = judge(name, lambda z: z.flatten(1)[:, :4])(x, torch.zeros(5, dtype=torch.long), moved)
    apart = np.abs(moved.double().numpy() - x.double().numpy()).reshape(5, -1)
    p = math.inf if name == "linf" else float(name[1:])
    expected = apart.max(1) if math.isinf(p) else (apart**p).sum(1) ** (1 / p)
    assert found.distance.dtype == torch.float64
    np.testing.assert_allclose(found.distance.numpy(), expected, rtol=1e-13)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["l1", "l2", "linf", "l1.5"]),
    eps=st.floats(0.02, 2.0),
    seed=st.integers(0, 10**6),
)
def test_rounding_to_float32_never_costs_a_success(name, eps, seed):
    """A point of the sphere in float64, stored in float32, is still within; twice as far is not."""
    draw = torch.Generator().manual_seed(seed)
    far = judge(name, low=-4.0, high=4.0)
    x = torch.rand(4, 30, generator=draw)  # float32
    move = torch.randn(4, 30, generator=draw, dtype=torch.float64)
    move *= eps / as_distance(name)(torch.zeros_like(move), move)[:, None]
    y = torch.zeros(4, dtype=torch.long)
    point = far(x, y, (x.double() + move).float())
    assert (point.distance <= far.allowed(eps, x)).all()
    beyond = far(x, y, (x.double() + 1.01 * move).float())
    assert (beyond.distance > far.allowed(eps, x)).all()


def test_what_is_allowed_is_as_documented():
    x = torch.zeros(1, 784)
    assert judge("linf").allowed(0.1, x) == 0.1 * (1 + RELATIVE) + 2**-23
    assert judge("l2").allowed(0.1, x) == pytest.approx(0.1 * (1 + RELATIVE) + 28 * 2**-23)
    assert judge("l1").allowed(0.1, x) == pytest.approx(0.1 * (1 + RELATIVE) + 784 * 2**-23)
    assert judge("linf", high=255.0).allowed(1.0, x) == pytest.approx(1 + RELATIVE + 255 * 2**-23)
    assert judge(lambda a, b: (a - b).flatten(1).sum(1)).allowed(0.1, x) == 0.1 * (1 + RELATIVE)


def test_a_distance_of_ones_own_is_asked_in_the_images_precision():
    seen = []

    def half(a, b):
        seen.append(a.dtype)
        return (a - b).flatten(1).norm(dim=1) / 2

    x = torch.zeros(2, 3)
    found = judge(half)(x, torch.tensor([0, 0]), torch.ones(2, 3))
    assert seen == [torch.float32]
    assert found.distance.tolist() == pytest.approx([3**0.5 / 2] * 2)


def test_points_of_another_shape_are_refused():
    x = torch.zeros(2, 3)
    with pytest.raises(sp.DataError, match=r"shape \(2, 4\) for images of shape \(2, 3\)"):
        judge()(x, torch.tensor([0, 0]), torch.zeros(2, 4))


def test_points_come_from_any_precision():
    model = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], torch.float32)
    x = torch.tensor([[0.6, 0.2]])
    found = judge(model=model)(
        x, torch.tensor([0]), torch.tensor([[0.2, 0.6]], dtype=torch.float64)
    )
    assert found.wrong.tolist() == [True]
    assert found.x.dtype == torch.float32
