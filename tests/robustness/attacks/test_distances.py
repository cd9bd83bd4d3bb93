import math

import numpy as np
import pytest
import torch

from setpoint import DataError, KindError
from setpoint.robustness.attacks.distances import as_distance, norms


@pytest.mark.parametrize(
    ("name", "p"), [("l1", 1), ("l2", 2), ("linf", math.inf), ("l1.5", 1.5), ("L3", 3)]
)
def test_a_norm_by_name_is_numpys(name, p):
    draw = np.random.default_rng(0)
    x, x2 = draw.normal(size=(2, 7, 1, 3, 4))
    found = as_distance(name)(torch.tensor(x), torch.tensor(x2))
    truth = [np.linalg.norm((a - b).ravel(), p) for a, b in zip(x, x2, strict=True)]
    assert np.allclose(found.numpy(), truth, rtol=1e-13)
    assert as_distance(name).name == name.lower()


def test_no_power_overflows_and_none_underflows():
    sizes = torch.tensor([[3e30, 3e30], [3e-30, 3e-30], [0.0, 0.0]])
    found = norms(sizes, 4.0)
    assert torch.allclose(found, torch.tensor([3e30, 3e-30, 0.0]) * 2**0.25, rtol=1e-6)


def test_a_function_is_called_and_has_to_give_one_number_an_image():
    def mean_gap(x, x2):
        return (x - x2).abs().flatten(1).mean(1)

    measure = as_distance(mean_gap)
    assert (measure.name, measure.p) == ("mean_gap", None)
    assert torch.equal(measure(torch.zeros(2, 3), torch.ones(2, 3)), torch.ones(2))
    assert as_distance(measure) is measure
    with pytest.raises(KindError, match=r"gave \(\) for 2 images"):
        as_distance(lambda x, x2: (x - x2).sum())(torch.zeros(2, 3), torch.ones(2, 3))


@pytest.mark.parametrize("wrong", ["l0.5", "l0", "lpips", "euclid", "l-1", "lnan", ""])
def test_names_that_are_no_norm_are_refused(wrong):
    with pytest.raises(DataError, match="'l1', 'l2', 'linf'"):
        as_distance(wrong)


def test_a_number_is_no_distance():
    with pytest.raises(KindError, match="distance is a int"):
        as_distance(2)
