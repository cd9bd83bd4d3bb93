"""Operators, measurements and interrupts out of the ordinary: what comes out is what is asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.restoration import Generator, LinearPrior, evaluate, restore, restore_video
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.operators import Inpaint, as_operator

F64 = torch.float64


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def linear(side: int = 4, seeds: int = 6, **options: Any) -> LinearPrior:
    matrix = 0.2 * drawn(side * side, seeds, seed=9)
    mean = torch.full((side * side,), 0.5, dtype=F64)
    return LinearPrior(matrix, mean, (1, side, side), **options)


def masks(count: int, side: int = 4) -> Tensor:
    return (drawn(count, 1, side, side, seed=4) > -0.3).to(F64)


# ---- operators that hold something for each image of a batch -------------------------------------


class Foreign:
    """As an object of another package: a mask for each image of the batch, and no word of it."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def A(self, x: Tensor) -> Tensor:  # the name they have
        return x * self.mask


class Scaled:
    """A blind one of a user's: gains to be found, masks of its own for each image."""

    def __init__(self, mask: Tensor) -> None:
        self.observed = mask

    def unknowns(self, batch: int, like: Tensor) -> Tensor:
        return torch.zeros(batch, 1, dtype=like.dtype)

    def __call__(self, x: Tensor, unknowns: Tensor) -> Tensor:
        return x * self.observed * unknowns.exp()[:, :, None, None]


@pytest.mark.parametrize("method", ["constrained", "dmplug"])
@pytest.mark.parametrize("copies", [1, 2])
def test_an_operator_of_another_package_may_hold_something_for_each_image(method, copies):
    prior, mask = linear(), masks(3)
    y = mask * prior(drawn(3, 6))
    more = {"optimiser": "lbfgs"} if method == "dmplug" else {}
    options = {"noise": 0.05, "method": method, "copies": copies, "iterations": 30, **more}
    theirs = restore(y, Foreign(mask), prior, **options)
    ours = restore(y, Inpaint(mask.bool()), prior, **options)
    torch.testing.assert_close(theirs.image, ours.image)


def test_a_blind_operator_of_a_user_may_too():
    prior, mask = linear(), masks(3)
    y = 1.5 * mask * prior(drawn(3, 6))
    found = restore(y, Scaled(mask), prior, noise=0.01, method="constrained", copies=1)
    gap = (Scaled(mask)(found.image, found.unknowns) - y)[mask > 0]
    torch.testing.assert_close(gap.square().sum(), (found.residual**2 * mask.sum((1, 2, 3))).sum())
    assert bool((found.residual < 0.0102).all())


# ---- complex measurements ------------------------------------------------------------------------


def fourier(x: Tensor) -> Tensor:
    return torch.fft.fft2(x, norm="ortho")


def parts(x: Tensor) -> Tensor:
    return torch.view_as_real(fourier(x))


@pytest.mark.parametrize("method", ["constrained", "tv", "pnp", "dps", "dip", "dmplug"])
def test_a_complex_measurement_is_two_real_ones(method):
    prior = linear(range=(-1.0, 2.0))
    y = Gaussian(0.1).add(fourier(prior(drawn(2, 6))), 3)
    options = {"noise": 0.1, "method": method, "iterations": 20}
    one = restore(y, fourier, prior, **options)
    two = restore(torch.view_as_real(y), parts, prior, **options)
    torch.testing.assert_close(one.image, two.image)
    torch.testing.assert_close(one.residual, two.residual)


def test_hidden_parts_of_a_complex_measurement():
    prior, mask = linear(), masks(2)

    def seen(x: Tensor) -> Tensor:
        return mask * fourier(x)

    seen.observed = mask  # type: ignore[attr-defined]
    y = Gaussian(0.1).add(seen(prior(drawn(2, 6))), 3, observed=mask)
    assert bool((y[mask == 0] == 0).all())
    found = restore(y, seen, prior, noise=0.1, method="constrained")
    total = (seen(found.image) - y).abs().square().flatten(1).sum(1)
    torch.testing.assert_close(found.residual**2, total / (2 * mask.flatten(1).sum(1)))


def test_the_nearest_of_complex_ones_by_every_pair():
    bank, y = (
        drawn(20, 1, 4, 4, seed=2),
        fourier(drawn(3, 1, 4, 4)) + 1j * drawn(3, 1, 4, 4, seed=7),
    )
    found = restore(y, fourier, linear(), method="nearest", training=bank)
    apart = (fourier(bank)[None] - y[:, None]).abs().square().flatten(2).sum(2)
    torch.testing.assert_close(found.image, bank[apart.argmin(1)])


def test_noise_of_complex_numbers_is_that_of_both_parts():
    y = torch.full((2, 40_000), 3.0 + 4.0j, dtype=torch.complex128)
    made = Gaussian(0.2).add(y, 1) - y
    for part in (made.real, made.imag):
        assert float(part.square().mean()) == pytest.approx(0.04, rel=0.03)
    assert float((made.real * made.imag).mean()) == pytest.approx(0, abs=5e-4)


@pytest.mark.parametrize("method", ["constrained", "tv", "pnp"])
@pytest.mark.parametrize("operator", ["phase:2", fourier])
def test_a_level_is_not_read_off_what_is_no_image(method, operator):
    prior = linear(side=8)
    y = as_operator(operator, shape=prior.shape)(prior(drawn(2, 6)))
    with pytest.raises(DataError, match="state it, as in noise"):
        restore(y, operator, prior, method=method, iterations=2)
    assert restore(y, operator, prior, method="dmplug", iterations=3).image.shape == (2, 1, 8, 8)


# ---- the iterate that was chosen -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options"),
    [("dps", {"iterations": 20}), ("dip", {"iterations": 60, "window": 5, "width": 8})],
)
def test_the_chosen_step_is_that_of_the_image(method, options):
    y = linear()(drawn(2, 6)).clamp(0, 1)
    prior = linear(range=(0.0, 1.0))
    found = restore(y, lambda x: x, prior, noise=0.05, method=method, trail=1, **options)
    for row, step in enumerate(found.chosen.tolist()):
        torch.testing.assert_close(found.trail[step, row], found.image[row])
        assert float(found.history["residual"][step, row].sqrt()) == pytest.approx(
            float(found.residual[row])
        )


def stop_at(last: int):
    def told(step: int, steps: int | None, residual: Tensor) -> None:
        if step == last:
            raise KeyboardInterrupt

    return told


@pytest.mark.parametrize("last", [0, 2])
def test_an_interrupted_search_has_made_as_many_calls_as_it_told(last):
    y = linear()(drawn(2, 6))
    found = restore(
        y, lambda x: x, linear(), noise=0.01, method="constrained", callback=stop_at(last)
    )
    assert found.interrupted
    assert found.chosen.tolist() == [last, last]
    assert f"after {last + 1} calls" in found.status


def test_an_interrupted_deep_image_prior_gives_what_its_rule_chose():
    prior = linear(range=(0.0, 1.0))
    y = prior(drawn(2, 6)).clamp(0, 1)
    options = {"method": "dip", "window": 5, "width": 8, "inputs": 4, "rate": 0.05, "trail": 1}
    found = restore(y, lambda x: x, prior, callback=stop_at(60), **options)
    assert found.interrupted
    assert found.status.startswith("Interrupted after 61 steps")
    assert bool((found.chosen < 60).any())
    for row, step in enumerate(found.chosen.tolist()):
        torch.testing.assert_close(found.trail[step, row], found.image[row])


# ---- the door ------------------------------------------------------------------------------------


def test_what_is_given_is_looked_at():
    prior, y = linear(), linear()(drawn(2, 6))
    with pytest.raises(KindError, match="float16, too coarse for a search"):
        restore(y.half(), lambda x: x, prior)
    with pytest.raises(KindError, match="prior is a Linear that lacks shape"):
        restore(y, "sr:2", torch.nn.Linear(2, 2))
    with pytest.raises(KindError, match="training holds"):
        restore(y, lambda x: x, prior, method="nearest", training=(255 * y).to(torch.uint8))
    hidden = torch.ones(2, 1, 4, 4, dtype=F64)
    hidden[1] = 0
    with pytest.raises(DataError, match="nothing of image 1 is seen"):
        restore(y * hidden, lambda x: x * hidden, linear(range=(0.0, 1.0)))
    found = restore(y, lambda x: x, prior, iterations=3)
    with pytest.raises(KindError, match="the truth holds"):
        evaluate(found, (255 * y).to(torch.uint8))


def test_inference_mode_changes_nothing():
    y = linear()(drawn(2, 6))
    flow = torch.zeros(1, 2, 4, 4, dtype=F64)
    prior, options = linear(), {"iterations": 12}

    def both() -> tuple[Tensor, Tensor]:
        one = restore(y.clone(), lambda x: x, prior, **options)
        two = restore_video(y.clone(), lambda x: x, prior, flow=flow.clone(), **options)
        return one.image, two.frames

    with torch.inference_mode():
        made = both()
    for one, other in zip(both(), made, strict=True):
        torch.testing.assert_close(one, other)


# ---- clips ---------------------------------------------------------------------------------------


def test_a_function_that_hides_pixels_of_a_clip_is_seen_to():
    prior = Generator(torch.sigmoid, shape=(1, 4, 4), range=(0.0, 1.0))
    mask = masks(3)
    y = mask * torch.rand(3, 1, 4, 4, dtype=F64, generator=torch.Generator().manual_seed(0))
    options = {"pixel": False, "iterations": 20, "window": 5}
    found = restore_video(y, lambda x: x * mask, prior, **options)
    named = restore_video(y, Inpaint(mask.bool()), prior, **options)
    torch.testing.assert_close(found.residual, named.residual)
    torch.testing.assert_close(found.frames, named.frames)


def test_a_flow_of_numpy_and_one_that_is_none():
    prior = Generator(torch.sigmoid, shape=(1, 4, 4), range=(0.0, 1.0))
    y = torch.full((3, 1, 4, 4), 0.5, dtype=F64)
    flow, valid = torch.zeros(2, 2, 4, 4, dtype=F64), torch.ones(2, 1, 4, 4, dtype=torch.bool)
    options = {"iterations": 6, "warmup": 1, "window": 2}
    one = restore_video(y, lambda x: x, prior, flow=flow, valid=valid, **options)
    two = restore_video(y, lambda x: x, prior, flow=flow.numpy(), valid=valid.numpy(), **options)
    torch.testing.assert_close(one.frames, two.frames)
    with pytest.raises(KindError, match="flow is a dict"):
        restore_video(y, lambda x: x, prior, flow={"a": 1}, **options)
    with pytest.raises(DataError, match="no flow is given"):
        restore_video(y, lambda x: x, prior, flow=lambda a, b: a, valid=valid, **options)
