"""Every kind of bad input is one sentence that names the value and the way out."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from setpoint import DataError, KindError
from setpoint.restoration.measurement.input_checks import check
from setpoint.restoration.measurement.noise import Gaussian, Impulse, Shot
from setpoint.restoration.operators import (
    OPERATORS,
    BlindBlur,
    Downsample,
    PhaseRetrieval,
    as_operator,
    gaussian_blur,
    random_inpaint,
)
from setpoint.restoration.priors.prior import Generator

SHAPE = (1, 8, 8)


def prior_of(function=torch.sigmoid, shape=SHAPE, range=(0.0, 1.0), seed_shape=None):
    return Generator(function, shape=shape, seed_shape=seed_shape, range=range)


def images(batch=3, shape=SHAPE):
    return torch.rand(batch, *shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("range", [(0.0, 1.0), (-1.0, 1.0), (5.0, 6.0), (0.0, 255.0)])
def test_good_input_passes(name, dtype, range):
    low, high = range
    shape = (1, 16, 16)
    A = as_operator(OPERATORS[name].usage, shape=shape, batch=2, range=range)
    x = (low + (high - low) * images(2, shape)).to(dtype)
    y = A(x, A.unknowns(2, x)) if isinstance(A, BlindBlur) else A(x)
    y = Gaussian(0.1 * (high - low)).add(y, 0, A.observed)
    prior = prior_of(lambda z: low + (high - low) * torch.sigmoid(z), shape, range)
    for noise in (None, 0.1 * (high - low)):
        assert check(y, A, prior, noise) is None


def test_loud_noise_is_no_wrong_scale():
    x = torch.zeros(4, 1, 32, 32)
    prior = prior_of(shape=(1, 32, 32))
    y = Gaussian(0.6).add(x, 0)
    assert float((y < -0.5).double().mean()) > 0.1
    check(y, gaussian_blur(1.0), prior, 0.6)
    check(y, gaussian_blur(1.0), prior, None)  # estimated
    with pytest.raises(DataError, match="far outside"):
        check(y, gaussian_blur(1.0), prior, 0.02)  # so much noise was not stated
    check(Impulse(0.5).add(x, 0), gaussian_blur(1.0), prior, Impulse(0.5))
    check(Shot(2).add(x + 1, 0), gaussian_blur(1.0), prior, "shot:2")


def test_an_open_range_checks_no_scale():
    prior = prior_of(lambda z: 100 * z, range=(-math.inf, math.inf))
    check(1000 * images(), lambda x: x, prior, 0.1)


def test_operators_of_any_kind_pass():
    y = images()
    gains = 0.5 + images(3)
    check(gains * y, lambda x: gains * x, prior_of(), 0.1)  # something for each image
    check(torch.fft.fft2(y), torch.fft.fft2, prior_of(), 0.1)  # complex
    check(y, nn.Conv2d(1, 1, 3, padding=1), prior_of(), 0.1)  # with weights of its own
    check(y.flatten(1)[:, :5], lambda x: x.flatten(1)[:, :5], prior_of(), None)
    check(y, lambda x: x.clamp(0, 1), prior_of(), None)


def test_one_image_is_tried_and_the_operator_on_all():
    sizes = []

    def counted(x):
        sizes.append(len(x))
        return x

    def generator(z):
        sizes.append(len(z))
        return torch.sigmoid(z)

    check(images(50), counted, prior_of(generator), 0.1)
    assert sizes == [1, 1, 50]  # of the prior, which is the dear one, one alone


def test_nothing_is_changed():
    y = images()
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 64), nn.Sigmoid(), nn.Unflatten(1, SHAPE))
    before, state = y.clone(), torch.get_rng_state()
    check(y, gaussian_blur(1.0), prior_of(net, seed_shape=(4,)), 0.1)
    assert (y == before).all()
    assert (torch.get_rng_state() == state).all()
    assert all(weights.grad is None for weights in net.parameters())
    with torch.no_grad():  # asked for without gradients, it still finds them
        check(y, gaussian_blur(1.0), prior_of(net, seed_shape=(4,)), 0.1)


def rounded(x):
    return (x > 0.5).to(x.dtype)


def through_numpy(x):
    return torch.from_numpy(x.detach().numpy())


def undefined(x):
    return torch.log(x)


def not_smooth_at_black(x):
    return x**0.5


def quotient(x):
    return x / x


def without_gradient(x):
    with torch.no_grad():
        return x * 2


BAD_OPERATORS = [
    (lambda x: x.mean(), DataError, r"operator gave \(\) for 3 image"),
    (lambda x: x[0], DataError, r"operator gave \(1, 8, 8\) for 3 image"),
    (lambda x: x.repeat(2, 1, 1, 1), DataError, r"operator gave \(6, 1, 8, 8\) for 3 image"),
    (lambda x: x[:, :, :4], DataError, r"the operator makes \(1, 4, 8\), and .* y is \(1, 8, 8\)"),
    (lambda x: x.detach().numpy(), KindError, "the operator gave a ndarray"),
    (lambda x: None, KindError, "the operator gave a NoneType"),
    (lambda x: x @ torch.rand(9, 9), DataError, "operator cannot take images .*RuntimeError"),
    (lambda x: x.detach(), DataError, "not differentiable: what it gives has no gradient"),
    (through_numpy, DataError, "not differentiable: what it gives has no gradient"),
    (without_gradient, DataError, "not differentiable: what it gives has no gradient"),
    (rounded, DataError, "not differentiable: what it gives has no gradient"),
    (torch.round, DataError, "not differentiable: its gradient in the image is 0 throughout"),
    (lambda x: (0 * x).requires_grad_(), DataError, "is 0 throughout"),
    (
        lambda x: torch.zeros(x.shape, requires_grad=True),
        DataError,
        "what it gives does not depend on the image",
    ),
    (undefined, DataError, r"the operator gave -inf at an image .*clamp\(min=1e-6\)"),
    (quotient, DataError, "the operator gave nan"),
    (not_smooth_at_black, DataError, "gradient that is no finite number"),
    (lambda x: x.to(torch.complex64), DataError, r"gives torch\.complex64 and y holds"),
    (Downsample(2), DataError, r"makes \(1, 4, 4\), and a measurement in y is \(1, 8, 8\)"),
    (random_inpaint((1, 9, 9), 0.5), DataError, r"the mask is for images of \(1, 9, 9\)"),
    (random_inpaint(SHAPE, 0.5, batch=2), DataError, "2 masks.* and y holds 3"),
    (3, KindError, "operator is 3"),
    ("inpaint:0.7", KindError, "as_operator"),
    (Downsample, KindError, "operator is <class"),
]


@pytest.mark.parametrize(("operator", "kind", "said"), BAD_OPERATORS)
def test_bad_operators(operator, kind, said):
    with pytest.raises(kind, match=said):
        check(images(), operator, prior_of(), 0.1)


BAD_PRIORS = [
    (torch.sigmoid, KindError, "lacks shape, seed_shape, range; wrap a network with Generator"),
    (Generator, KindError, "prior is a type that lacks shape"),
    (prior_of(lambda z: z[..., :7]), DataError, r"prior gave \(1, 1, 8, 7\) .* is \(1, 8, 8\)"),
    (prior_of(lambda z: z.detach()), DataError, "the prior is not differentiable"),
    (prior_of(lambda z: z * math.nan), DataError, "the prior gave nan at a seed"),
    (prior_of(nn.Linear(9, 9)), DataError, r"the prior cannot take seeds \(1, 1, 8, 8\)"),
    (prior_of(nn.Linear(8, 8).double()), DataError, r"it is torch\.float64 on cpu"),
    (prior_of(shape=(1, 9, 9)), DataError, r"prior's images \(1, 9, 9\) the operator makes"),
]


@pytest.mark.parametrize(("prior", "kind", "said"), BAD_PRIORS)
def test_bad_priors(prior, kind, said):
    with pytest.raises(kind, match=said):
        check(images(), lambda x: x / 2, prior, 0.1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_in_y(value):
    y = images()
    y[1, 0, 2, 3] = value
    with pytest.raises(DataError, match=f"y holds {value} in image 1, 1 such entries.*Inpaint"):
        check(y, gaussian_blur(1.0), prior_of(), 0.1)


def test_hidden_pixels_marked_by_nan_are_told_to_be_zero():
    A = random_inpaint(SHAPE, 0.5)
    y = torch.where(A.observed, images(), math.nan)
    with pytest.raises(DataError, match=r"all of them hidden.*nan_to_num"):
        check(y, A, prior_of(), 0.1)
    check(y.nan_to_num(0.0), A, prior_of(), 0.1)


BAD_Y = [
    (np.zeros((1, 1, 8, 8)), KindError, "y is a ndarray.*as_tensor"),
    (torch.zeros(1, 1, 8, 8, dtype=torch.uint8), KindError, r"torch\.uint8.*y\.float\(\) / 255"),
    (torch.zeros(1, 1, 8, 8, dtype=torch.int64), KindError, r"torch\.int64"),
    (torch.zeros(1, 1, 8, 8, dtype=torch.bool), KindError, r"torch\.bool"),
    (torch.zeros(0, 1, 8, 8), DataError, r"shape \(0, 1, 8, 8\)"),
    (torch.zeros(8), DataError, r"y\[None\]"),
]


@pytest.mark.parametrize(("y", "kind", "said"), BAD_Y)
def test_bad_measurements(y, kind, said):
    with pytest.raises(kind, match=said):
        check(y, gaussian_blur(1.0), prior_of(), 0.1)


SCALES = [
    (255.0, 0.0, (0.0, 1.0), r"y seems to be in \[0, 255\]: give y / 255"),
    (2.0, -1.0, (0.0, 1.0), r"y seems to be in \[-1, 1\]: give \(y \+ 1\) / 2"),
    (255.0, 0.0, (-1.0, 1.0), r"give y / 255 \* 2 \+ -1"),
    (1e4, 0.0, (0.0, 1.0), r"scale y to \[0, 1\]"),
]


@pytest.mark.parametrize(("width", "low", "range", "said"), SCALES)
@pytest.mark.parametrize("noise", [0.02, None])
def test_another_scale_is_told_the_way_out(width, low, range, said, noise):
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    disc = torch.sigmoid(6 - (yy - 8).hypot(xx - 7)).expand(2, 1, 16, 16)  # a bright disc on black
    y = low + width * disc
    prior = prior_of(shape=(1, 16, 16), range=range)
    A = as_operator("inpaint:0.3", shape=(1, 16, 16))
    for operator in (gaussian_blur(1.0), A, lambda x: x.flip(-1)):
        with pytest.raises(DataError, match=said):
            check(operator(y), operator, prior, noise)


def test_an_operator_for_another_range_is_refused():
    A = as_operator("blur-gamma:1.0,2.2", shape=SHAPE)
    prior = prior_of(torch.tanh, range=(-1.0, 1.0))
    with pytest.raises(DataError, match=r"in \[0, 1\] and .* in \[-1, 1\]; .*range=\(-1, 1\)"):
        check(images(), A, prior, 0.1)
    check(images(), as_operator("blur-gamma:1.0", shape=SHAPE, range=(-1, 1)), prior, 0.1)


def test_what_is_no_image_is_not_held_to_the_range():
    x = images(2, (1, 16, 16))
    prior = prior_of(shape=(1, 16, 16))
    check(PhaseRetrieval(2)(255 * x), PhaseRetrieval(2), prior, 0.02)
    check(1000 * x, lambda v: 1000 * v, prior, 0.02)


@pytest.mark.parametrize("noise", [0, -1, "gaussian:0", math.nan])
def test_no_noise_is_a_sentence(noise):
    with pytest.raises(DataError, match="above 0"):
        check(images(), gaussian_blur(1.0), prior_of(), noise)


def test_physics_objects_pass_without_their_noise():
    class Halver:
        def A(self, x):
            return x / 2

        def __call__(self, x):
            raise AssertionError("a call would add noise")

    check(images() / 2, Halver(), prior_of(), 0.1)
