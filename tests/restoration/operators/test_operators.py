"""Operators against scipy, numpy's Fourier transform and brute-force matrices."""

import math

import numpy as np
import pytest
import scipy.ndimage
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint import DataError, KindError
from setpoint.restoration.operators import (
    OPERATORS,
    BlindBlur,
    Blur,
    BlurGamma,
    BlurSaturate,
    Downsample,
    Inpaint,
    PhaseRetrieval,
    Physics,
    as_operator,
    box_inpaint,
    gaussian_blur,
    gaussian_kernel,
    motion_blur,
    motion_kernel,
    observed_entries,
    random_inpaint,
)
from setpoint.restoration.operators.blur import extend, fold

SHAPE = (2, 8, 6)


def images(batch=3, shape=SHAPE, seed=0, dtype=torch.float64):
    return torch.rand(batch, *shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def skew_kernel(side=5, seed=1):
    """Not symmetric in any way, of both signs: a flip that is missing shows."""
    return torch.randn(
        side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


LINEAR = {
    "sr": Downsample(2),
    "inpaint": random_inpaint(SHAPE, 0.7, seed=3),
    "inpaint for each": random_inpaint(SHAPE, 0.5, seed=3, batch=3),
    "box": box_inpaint(SHAPE, (3, 2)),
    "reflect": Blur(skew_kernel()),
    "circular": Blur(skew_kernel(), "circular"),
    "widest reflect": Blur(skew_kernel(11)),
    "widest circular": Blur(skew_kernel(11), "circular"),
    "gaussian": gaussian_blur(1.1),
    "motion": motion_blur(7, 30),
}


@pytest.mark.parametrize("name", LINEAR)
def test_adjoint_identity(name):
    A = LINEAR[name]
    x = images()
    y = A(x)
    v = torch.randn(y.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    assert A.linear
    assert float((y * v).sum()) == pytest.approx(
        float((x * A.adjoint(v, SHAPE)).sum()), rel=1e-12, abs=1e-12
    )


@pytest.mark.parametrize("name", LINEAR)
def test_adjoint_is_autograds(name):
    A = LINEAR[name]
    x = images().requires_grad_(True)
    y = A(x)
    v = torch.randn(y.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    (pulled,) = torch.autograd.grad(y, x, v)
    torch.testing.assert_close(A.adjoint(v, SHAPE), pulled, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_linear(name):
    A = LINEAR[name]
    x, z = images(seed=1), images(seed=2)
    torch.testing.assert_close(A(2 * x - 3 * z), 2 * A(x) - 3 * A(z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_one_image_at_a_time_is_the_batch(name):
    A = LINEAR[name]
    x = images()
    alone = [(A.take([i]) if isinstance(A, Inpaint) else A)(x[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(torch.cat(alone), A(x), rtol=1e-13, atol=1e-13)


def test_downsample_is_a_matrix_of_block_means():
    x = images(1, (1, 6, 4))
    matrix = np.zeros((6, 24))
    for i in range(3):
        for j in range(2):
            for a in range(2):
                for b in range(2):
                    matrix[i * 2 + j, (2 * i + a) * 4 + 2 * j + b] = 0.25
    np.testing.assert_allclose(Downsample(2)(x).numpy().ravel(), matrix @ x.numpy().ravel())


@pytest.mark.parametrize(("boundary", "theirs"), [("reflect", "mirror"), ("circular", "wrap")])
@pytest.mark.parametrize("side", [1, 3, 5, 11])
def test_blur_is_scipys_convolution(boundary, theirs, side):
    x, kernel = images(), skew_kernel(side)
    ours = Blur(kernel, boundary)(x).numpy()
    for image, blurred in zip(x.numpy(), ours, strict=True):
        for channel, found in zip(image, blurred, strict=True):
            truth = scipy.ndimage.convolve(channel, kernel.numpy(), mode=theirs)
            np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12)


def test_circular_blur_is_a_product_of_fourier_transforms():
    x, kernel = images(1, (1, 8, 6)), skew_kernel(3)
    sheet = np.zeros((8, 6))
    sheet[:3, :3] = kernel.numpy()
    sheet = np.roll(sheet, (-1, -1), (0, 1))
    truth = np.fft.ifft2(np.fft.fft2(x[0, 0].numpy()) * np.fft.fft2(sheet)).real
    np.testing.assert_allclose(Blur(kernel, "circular")(x)[0, 0].numpy(), truth, atol=1e-12)


@pytest.mark.parametrize(("boundary", "theirs"), [("reflect", "reflect"), ("circular", "wrap")])
def test_extension_is_numpys_pad(boundary, theirs):
    x = images(1, (1, 5, 6))
    truth = np.pad(x[0, 0].numpy(), 4, mode=theirs)
    np.testing.assert_array_equal(extend(x, 4, boundary)[0, 0].numpy(), truth)
    v = torch.randn(1, 1, 13, 14, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    left, right = (extend(x, 4, boundary) * v).sum(), (x * fold(v, 4, boundary)).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-12)


def test_gaussian_blur_is_scipys():
    x = images(1, (1, 12, 12))
    truth = scipy.ndimage.gaussian_filter(x[0, 0].numpy(), 1.3, mode="mirror", radius=4)
    np.testing.assert_allclose(gaussian_blur(1.3)(x)[0, 0].numpy(), truth, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    length=st.floats(0.3, 15),
    angle=st.floats(-400, 400),
)
def test_motion_kernel_is_the_time_spent_in_each_pixel(length, angle):
    kernel = motion_kernel(length, angle).numpy()
    radius = len(kernel) // 2
    # brute force: many points along the path, each in the pixel it falls into
    t = (np.arange(20000) + 0.5) / 20000 * length - length / 2
    turn = math.radians(angle)
    rows = np.rint(-t * math.sin(turn)).astype(int)
    columns = np.rint(t * math.cos(turn)).astype(int)
    counted = np.zeros((101, 101))
    np.add.at(counted, (rows + 50, columns + 50), 1 / 20000)
    inner = counted[50 - radius : 51 + radius, 50 - radius : 51 + radius]
    assert inner.sum() == pytest.approx(1.0, abs=1e-3)  # nothing falls outside
    assert kernel.sum() == pytest.approx(1.0, abs=1e-12)
    assert kernel.min() >= 0
    np.testing.assert_allclose(kernel, kernel[::-1, ::-1], atol=1e-9)
    if min(abs(angle % 45), 45 - abs(angle % 45)) > 0.01:  # on a diagonal, corners are a toss-up
        np.testing.assert_allclose(kernel, inner, atol=3e-4)


def test_motion_kernels_known_in_closed_form():
    np.testing.assert_allclose(motion_kernel(5, 0).numpy()[2], np.full(5, 0.2))
    np.testing.assert_allclose(motion_kernel(5, 90).numpy()[:, 2], np.full(5, 0.2))
    diagonal = motion_kernel(3 * math.sqrt(2), 45).numpy()
    np.testing.assert_allclose(diagonal, np.eye(3)[::-1] / 3, atol=1e-9)


def test_random_masks_hide_the_stated_share_evenly():
    A = random_inpaint((3, 10, 10), 0.7, seed=0, batch=2000)
    hidden = (~A.observed).double()
    assert A.observed.shape == (2000, 1, 10, 10)
    assert (hidden.flatten(1).sum(1) == 70).all()
    # each pixel is hidden in 0.7 of the draws: 5 standard errors of a binomial share
    assert float((hidden.mean(0) - 0.7).abs().max()) < 5 * math.sqrt(0.21 / 2000)
    longer = random_inpaint((3, 10, 10), 0.7, seed=0, batch=2001)
    assert (longer.observed[:2000] == A.observed).all()
    assert (random_inpaint((3, 10, 10), 0.7, seed=1).observed != A.observed[:1]).any()


def test_hidden_pixels_are_zero_and_seen_ones_are_kept():
    x = images(4, (3, 9, 9))
    for A in (random_inpaint((3, 9, 9), 0.4, batch=4), box_inpaint((3, 9, 9), 4, seed=1, batch=4)):
        y, seen = A(x), A.observed.expand(4, 3, 9, 9)
        assert (y[seen] == x[seen]).all()
        assert (y[~seen] == 0).all()


def test_drawn_boxes_are_whole_and_differ():
    seen = box_inpaint((1, 9, 9), (4, 3), seed=1, batch=30).observed[:, 0]
    assert ((~seen).flatten(1).sum(1) == 12).all()
    rows, columns = (~seen).any(2).sum(1), (~seen).any(1).sum(1)
    assert (rows == 4).all()
    assert (columns == 3).all()
    assert len({tuple(mask.flatten().tolist()) for mask in seen}) > 10


def test_a_mask_that_was_used_in_inference_mode_still_has_gradients():
    with torch.inference_mode():
        A = random_inpaint((1, 4, 4), 0.5)
        A(torch.rand(2, 1, 4, 4))
    x = torch.rand(2, 1, 4, 4, requires_grad=True)
    (A(x) * x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_nonlinear_values(low):
    low_, high = low, 1.0
    x = low_ + (high - low_) * images()
    blurred = scipy.ndimage.gaussian_filter(
        x.numpy(), (0, 0, 0.8, 0.8), mode="mirror", radius=(0, 0, 3, 3)
    )
    share = (blurred - low_) / (high - low_)
    saturated = BlurSaturate(gaussian_blur(0.8), 2.0, range=(low_, high))(x).numpy()
    np.testing.assert_allclose(saturated, low_ + (high - low_) * np.tanh(2 * share), atol=1e-12)
    curved = BlurGamma(gaussian_blur(0.8), 2.2, range=(low_, high))(x).numpy()
    np.testing.assert_allclose(curved, low_ + (high - low_) * share ** (1 / 2.2), atol=1e-12)


@pytest.mark.parametrize("kind", [BlurSaturate, BlurGamma])
def test_nonlinear_gradients(kind):
    A = kind(gaussian_blur(0.6))
    assert not A.linear
    x = (0.1 + 0.8 * images(1, (1, 4, 4))).requires_grad_(True)
    assert torch.autograd.gradcheck(A, (x,))
    for value in (0.0, -0.2, 1.0):  # black, below it, white
        flat = torch.full((1, 1, 4, 4), value, requires_grad=True)
        (slope,) = torch.autograd.grad(A(flat).sum(), flat)
        assert slope.isfinite().all()
        assert (slope > 0).all()


def test_gamma_goes_on_without_a_jump_at_its_toe():
    A = BlurGamma(Blur(torch.ones(1, 1)), 2.2)
    near = torch.tensor([0.003 - 1e-9, 0.003 + 1e-9], dtype=torch.float64).reshape(1, 1, 1, 2)
    below, above = A(near).flatten().tolist()
    assert below == pytest.approx(above, abs=1e-6)
    assert above == pytest.approx(0.003 ** (1 / 2.2), abs=1e-6)


def test_blind_blur_is_the_blur_of_its_kernel():
    A, x = BlindBlur(5), images()
    u = torch.randn(3, 25, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kernels = A.kernel(u).numpy()
    np.testing.assert_allclose(kernels.sum((1, 2)), 1.0)
    assert (kernels > 0).all()
    for i in range(3):
        for c in range(2):
            truth = scipy.ndimage.convolve(x[i, c].numpy(), kernels[i], mode="mirror")
            np.testing.assert_allclose(A(x, u)[i, c].numpy(), truth, atol=1e-12)
        torch.testing.assert_close(A.known(u[i])(x[i : i + 1]), A(x, u)[i : i + 1])


def test_blind_blur_gradient_in_both():
    A = BlindBlur(3)
    x = images(2, (1, 4, 4)).requires_grad_(True)
    u = torch.randn(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(A, (x, u.requires_grad_(True)))


def log_weights(kernel, side):
    """The unknowns of a blind blur that give a kernel: the logarithms of its weights."""
    around = [(side - len(kernel)) // 2] * 4
    return torch.nn.functional.pad(kernel, around).clamp(min=1e-8).log().reshape(1, -1)


def test_blind_start_is_broad_centred_and_holds_any_kernel():
    like = torch.zeros(1, dtype=torch.float64)
    start = BlindBlur(9, spread=2.0).unknowns(2, like)
    torch.testing.assert_close(
        BlindBlur(9).kernel(start)[0], gaussian_kernel(2.0, 9), rtol=1e-12, atol=1e-12
    )
    assert BlindBlur(9).offset(start).abs().max() < 1e-12
    flat = BlindBlur(9, start="flat")
    np.testing.assert_allclose(flat.kernel(flat.unknowns(1, like)).numpy(), 1 / 81)
    known = motion_kernel(5, 30)
    back = BlindBlur(9).kernel(log_weights(known, 9))[0]
    side = len(known)
    gap = (9 - side) // 2
    torch.testing.assert_close(back[gap : 9 - gap, gap : 9 - gap], known, rtol=0, atol=1e-6)


def test_the_offset_is_the_shift_that_y_cannot_see():
    A = BlindBlur(7, boundary="circular")
    kernel = torch.zeros(7, 7, dtype=torch.float64)
    kernel[2:5, 2:5] = gaussian_kernel(0.7, 3)
    moved = kernel.roll((1, -2), (0, 1))
    u, shifted = log_weights(kernel, 7), log_weights(moved, 7)
    torch.testing.assert_close(
        A.offset(shifted), torch.tensor([[1.0, -2.0]]).double(), atol=1e-4, rtol=0
    )
    x = images(1, (1, 9, 9))
    same = A(x.roll((-1, 2), (2, 3)), shifted)
    torch.testing.assert_close(same, A(x, u), atol=1e-5, rtol=0)


@pytest.mark.parametrize("oversampling", [1, 2, 3])
def test_phase_retrieval_is_numpys_modulus(oversampling):
    x = images()
    sheet = (oversampling * 8, oversampling * 6)
    truth = abs(np.fft.fft2(x.numpy(), s=sheet)) / math.sqrt(sheet[0] * sheet[1])
    y = PhaseRetrieval(oversampling)(x)
    np.testing.assert_allclose(y.numpy(), truth, atol=1e-12)
    assert float(y.square().sum()) == pytest.approx(float(x.square().sum()))  # Parseval


def test_phase_retrieval_cannot_see_turns_shifts_and_signs():
    A, x = PhaseRetrieval(2), images(1, (1, 6, 6))
    room = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    room[..., :6, :6] = x
    for other in (room.flip(-1, -2), room.roll((1, 2), (2, 3)), -room):
        torch.testing.assert_close(A(other), A(room), atol=1e-12, rtol=0)


def test_phase_retrieval_has_a_gradient_where_the_modulus_is_zero():
    for flat in (torch.zeros(1, 1, 4, 4), torch.ones(1, 1, 4, 4)):
        x = flat.requires_grad_(True)
        (slope,) = torch.autograd.grad(PhaseRetrieval(1)(x).square().sum(), x)
        torch.testing.assert_close(slope, 2 * flat.detach(), atol=1e-5, rtol=0)
        (plain,) = torch.autograd.grad(PhaseRetrieval(1)(x).sum(), x)
        assert plain.isfinite().all()
    assert torch.autograd.gradcheck(PhaseRetrieval(2), (images(1, (1, 3, 3)).requires_grad_(True),))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_name_makes_an_operator_that_takes_both_precisions(name):
    A = as_operator(OPERATORS[name].usage, shape=(1, 16, 16), seed=1, batch=2)
    values = []
    for dtype in (torch.float32, torch.float64):
        x = images(2, (1, 16, 16), dtype=torch.float64).to(dtype)
        y = A(x, A.unknowns(2, x)) if isinstance(A, BlindBlur) else A(x)
        assert y.dtype == dtype
        assert len(y) == 2
        values.append(y.double())
    torch.testing.assert_close(*values, rtol=0, atol=1e-4)
    assert A.output in ("image", "other")


def test_image_outputs_stay_in_the_range():
    for row in OPERATORS.values():
        for low, high in ((0.0, 1.0), (-1.0, 1.0)):
            A = as_operator(row.usage, shape=(1, 16, 16), range=(low, high))
            x = low + (high - low) * images(2, (1, 16, 16))
            y = A(x, A.unknowns(2, x)) if isinstance(A, BlindBlur) else A(x)
            if A.output == "image":
                assert y.min() > low - 1e-9
                assert y.max() < high + 1e-9


def test_names_say_what_they_make():
    kernel = as_operator("motion-blur:9,45", shape=(1, 28, 28)).kernel
    torch.testing.assert_close(kernel, motion_kernel(9, 45))
    assert as_operator("box:4,1,2", shape=(1, 9, 9)).observed[0, 0, 1:5, 2:6].sum() == 0
    assert as_operator("inpaint:0.7", shape=(1, 10, 10), batch=3).observed.shape[0] == 3
    assert as_operator("blur-gamma:1.0", shape=(1, 9, 9), range=(-1, 1)).range == (-1.0, 1.0)
    assert as_operator(" PHASE ", shape=(1, 9, 9)).oversampling == 2


class Doubler:
    """A physics object as other packages have them: its call adds noise, its A does not."""

    def A(self, x):
        return 2 * x

    def A_adjoint(self, v):
        return 2 * v

    def __call__(self, x):
        raise AssertionError("a call would add noise")


def test_physics_objects_are_called_without_their_noise():
    A, x = as_operator(Doubler(), shape=SHAPE), images()
    assert isinstance(A, Physics)
    assert A.linear
    torch.testing.assert_close(A(x), 2 * x)
    torch.testing.assert_close(A.adjoint(x, SHAPE), 2 * x)
    assert as_operator(A, shape=SHAPE) is A


def test_functions_pass_as_they_are():
    def half(x):
        return x / 2

    assert as_operator(half, shape=SHAPE) is half


def test_hidden_entries_are_found_by_trying():
    masks = random_inpaint(SHAPE, 0.6, seed=2, batch=3).observed
    y = images()
    found = observed_entries(lambda x: torch.where(masks, x, 0.25), y, SHAPE)
    assert (found == masks.expand_as(y)).all()
    kept = random_inpaint(SHAPE, 0.6, seed=2)
    assert (observed_entries(kept, y, SHAPE) == kept.observed.expand_as(y)).all()
    # what is bounded or blind to constants is not hidden
    for A in (lambda x: (9 * x).clamp(0, 1), lambda x: x - x.mean((2, 3), keepdim=True)):
        assert observed_entries(A, y, SHAPE) is None
    assert observed_entries(BlindBlur(3), y, SHAPE) is None
    assert observed_entries(gaussian_blur(0.5), y, SHAPE, (-math.inf, math.inf)) is None


BAD = [
    ("sr:3", DataError, "8 × 8 pixels do not divide into blocks of 3"),
    ("sr:1", DataError, "2 or more; got 1.0"),
    ("sr", DataError, "write it as 'sr:2'"),
    ("sr:2,2", DataError, "has 2 numbers and takes 1"),
    ("inpant:0.7", DataError, "did you mean inpaint"),
    ("melt:1", DataError, "the operators are sr:2, inpaint:0.7"),
    ("inpaint:1.2", DataError, "hides 64 of 64 pixels"),
    ("inpaint:0", DataError, "above 0; got 0.0"),
    ("inpaint:x", DataError, "no number; write it as 'inpaint:0.7'"),
    ("box:8", DataError, "does not leave anything"),
    ("box:2,7,0", DataError, "leaves the image"),
    ("box:2,1", DataError, "size, row and column"),
    ("gaussian-blur:-1", DataError, "above 0; got -1.0"),
    ("gaussian-blur:nan", DataError, "above 0; got nan"),
    ("gaussian-blur:9", DataError, "reaches beyond an image of 8 × 8"),
    ("blind-blur:4", DataError, "no middle one; take 5"),
    ("phase:0", DataError, "1 or more; got 0"),
    ("blur-gamma:1,0", DataError, "gamma is a number above 0"),
    (3, KindError, "operator is 3; give a name"),
    (Blur, KindError, "make one of it"),
]


@pytest.mark.parametrize(("spec", "kind", "said"), BAD, ids=[str(b[0]) for b in BAD])
def test_bad_names_are_sentences(spec, kind, said):
    with pytest.raises(kind) as told:
        as_operator(spec, shape=(1, 8, 8))
    assert said in str(told.value)


def test_bad_parts_are_sentences():
    with pytest.raises(DataError, match=r"mask holds 0\.5"):
        Inpaint(torch.full((2, 2), 0.5))
    with pytest.raises(DataError, match="the mask of image 1 hides every pixel"):
        Inpaint(torch.tensor([[[[1, 0]]], [[[0, 0]]]]))
    with pytest.raises(DataError, match="2 masks, one for each image, and 3 images"):
        random_inpaint((1, 4, 4), 0.5, batch=2)(torch.rand(3, 1, 4, 4))
    with pytest.raises(DataError, match=r"mask is for images of \(1, 4, 4\)"):
        random_inpaint((1, 4, 4), 0.5)(torch.rand(3, 1, 5, 4))
    with pytest.raises(DataError, match="batch is a whole number, 1 or more; got 0"):
        random_inpaint((1, 4, 4), 0.5, batch=0)
    with pytest.raises(DataError, match=r"x\[None\]"):
        Downsample(2)(torch.rand(4, 4))
    with pytest.raises(KindError, match=r"x\.float\(\)"):
        Downsample(2)(torch.ones(1, 1, 4, 4, dtype=torch.int64))
    with pytest.raises(DataError, match="kernel holds"):
        Blur(torch.tensor([[math.nan]]))
    with pytest.raises(DataError, match="did you mean reflect"):
        Blur(torch.ones(1, 1), "reflct")
    with pytest.raises(DataError, match="two finite ends"):
        BlurGamma(gaussian_blur(1.0), range=(-math.inf, math.inf))
    with pytest.raises(KindError, match="without its unknowns"):
        BlindBlur(3)(torch.rand(1, 1, 4, 4))
    with pytest.raises(DataError, match=r"for 1 images they are \(1, 9\)"):
        BlindBlur(3)(torch.rand(1, 1, 4, 4), torch.zeros(2, 9))
    with pytest.raises(KindError, match="seed is a whole number"):
        random_inpaint((1, 4, 4), 0.5, seed=0.5)
