"""The deep image prior: its layers against torch's own, and what it does to images."""

from __future__ import annotations

import pytest
import torch
from tests.restoration.baseline_cases import Shape, error, noisy, phantom, task_of
from torch import Tensor, nn
from torch.nn import functional

from setpoint import DataError
from setpoint.restoration.baselines import deep_image_prior
from setpoint.restoration.baselines.hourglass import Hourglass, _Convolution, doubled
from setpoint.restoration.operators import BlindBlur, Blur, Inpaint
from setpoint.restoration.operators.blur import extend, gaussian_kernel

SMALL = {"width": 16, "inputs": 8}


def _draw() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_layer_is_one_convolution_an_image(size: int, stride: int) -> None:
    x = torch.randn(3, 4, 5, 7, dtype=torch.float64, generator=_draw())
    layer = _Convolution(3, 4, 6, size, _draw(), x)
    wide = functional.pad(x, (size // 2,) * 4, mode="reflect")
    alone = [
        functional.conv2d(
            wide[row : row + 1],
            layer.weight[row].reshape(6, 4, size, size),
            layer.bias[row, :, 0],
            stride=stride,
        )
        for row in range(3)
    ]
    torch.testing.assert_close(layer(x, stride), torch.cat(alone))
    # the way a GPU goes
    patches = layer.patches(extend(x, size // 2, "reflect") if size > 1 else x, 5, 7, stride)
    product = torch.baddbmm(layer.bias, layer.weight, patches)
    torch.testing.assert_close(product.reshape(torch.cat(alone).shape), torch.cat(alone))


def test_doubling_is_bilinear() -> None:
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=_draw())
    expected = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    torch.testing.assert_close(doubled(x), expected)


@pytest.mark.parametrize("side", [(8, 8), (7, 10)])
def test_networks_keep_to_their_own_image(side: tuple[int, int]) -> None:
    like = torch.zeros(1, dtype=torch.float64)
    network = Hourglass(2, 4, 1, widths=(8, 8), draw=_draw(), like=like)
    x = torch.randn(2, 4, *side, dtype=torch.float64, generator=_draw()).requires_grad_()
    out = network(x)
    assert out.shape == (2, 1, *side)
    (slope,) = torch.autograd.grad(out[0].sum(), x)
    assert float(slope[0].abs().max()) > 0
    assert float(slope[1].abs().max()) == 0


def test_a_flat_image_is_fitted() -> None:
    y = torch.full((2, 1, 8, 8), 0.3, dtype=torch.float64)
    y[1] = 0.8
    task = task_of(y, lambda x: x, Shape((1, 8, 8)))
    out = deep_image_prior(task, iterations=100, window=20, patience=100, **SMALL)
    assert error(out.image, y) < 0.02


def test_noise_is_left_out_and_holes_are_filled() -> None:
    truth = phantom(batch=1)
    mask = torch.rand(1, 1, 16, 16, generator=_draw()) < 0.6
    y = noisy(truth, 0.1) * mask
    task = task_of(y, Inpaint(mask), Shape((1, 16, 16)), sigma=0.1)
    out = deep_image_prior(task, iterations=200, window=30, patience=100, **SMALL)
    seen, hidden = mask.expand_as(truth), ~mask.expand_as(truth)
    assert error(out.image[seen], truth[seen]) < 0.8 * error(y[seen], truth[seen])
    assert error(out.image[hidden], truth[hidden]) < 0.15  # 0 there is 0.4 off


def test_the_answer_is_the_image_of_the_step_chosen() -> None:
    y = noisy(phantom(8), 0.05)
    task = task_of(y, lambda x: x, Shape((1, 8, 8)))
    task.watch.trail = 1
    out = deep_image_prior(task, iterations=60, window=10, patience=20, **SMALL)
    images, _ = task.watch.images()
    assert images is not None
    assert out.chosen is not None
    for row, step in enumerate(out.chosen.tolist()):
        assert torch.equal(out.image[row], images[step, row])
    told = task.watch.history()["residual"]
    exact = (images - y).square().mean((2, 3, 4))
    torch.testing.assert_close(told, exact)


def test_a_window_that_never_fills_says_so() -> None:
    y = phantom(8)
    task = task_of(y, lambda x: x, Shape((1, 8, 8)))
    out = deep_image_prior(task, iterations=6, window=10, **SMALL)
    assert out.chosen is not None
    assert out.chosen.tolist() == [5, 5]
    assert task.watch.last is not None
    assert torch.equal(out.image, task.watch.last)
    assert "never full" in out.why[0]
    assert "0 of 2" in out.status


def test_the_kernel_of_a_blind_operator_comes_nearer() -> None:
    truth, kernel = phantom(batch=1), gaussian_kernel(0.6, 3).double()
    y = noisy(Blur(kernel)(truth), 0.01)
    operator = BlindBlur(3, start="flat")
    task = task_of(y, operator, Shape((1, 16, 16)), sigma=0.01)
    out = deep_image_prior(task, iterations=250, window=30, **SMALL)
    assert out.unknowns is not None
    before = (operator.kernel(operator.unknowns(1, y)) - kernel).abs().sum()
    after = (operator.kernel(out.unknowns) - kernel).abs().sum()
    assert float(after) < 0.8 * float(before)


class Gain(nn.Module):
    """A module with a parameter: one for the whole batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """The image, stronger."""
        return self.gain * x


def test_images_that_share_unknowns_are_taken_at_one_step() -> None:
    y = noisy(phantom(8), 0.05)
    task = task_of(y, Gain(), Shape((1, 8, 8)))
    out = deep_image_prior(task, iterations=40, window=10, patience=15, **SMALL)
    assert out.chosen is not None
    assert out.unknowns is not None
    assert len(set(out.chosen.tolist())) == 1
    assert out.unknowns.shape == (1, 1)
    # image and gain are of the same step: their residual is the one written down there
    told = task.watch.history()["residual"][out.chosen[0]]
    torch.testing.assert_close(task.forward.residual(out.image, y, out.unknowns), told)


def test_images_too_small_to_halve() -> None:
    with pytest.raises(DataError, match="2 × 8"):
        deep_image_prior(task_of(torch.zeros(1, 1, 2, 8), lambda x: x, Shape((1, 2, 8))))
