"""Noise against simulation and scipy's laws; estimated levels against known ones."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.datasets import load_digits

from setpoint import DataError, KindError
from setpoint.restoration.measurement.noise import (
    Gaussian,
    Impulse,
    Shot,
    Speckle,
    as_noise,
    estimate_sigma,
)
from setpoint.restoration.operators import box_inpaint, random_inpaint

KINDS = {
    "gaussian": Gaussian(0.3),
    "shot": Shot(40),
    "shot of few": Shot(3),
    "shot in [-1, 1]": Shot(20, (-1.0, 1.0)),
    "speckle": Speckle(0.4),
    "impulse": Impulse(0.2),
    "impulse in [-1, 1]": Impulse(0.3, (-1.0, 1.0)),
}
COPIES = 40000


def clean(copies=COPIES):
    """Many copies of a few values, the ends of [0, 1] among them: (copies, 5)."""
    return torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0], dtype=torch.float64).repeat(copies, 1)


def many(noise, y, seed):
    """All the rows as one image: drawn at once."""
    return noise.add(y[None], seed)[0]


@pytest.mark.parametrize("name", KINDS)
def test_variance_is_that_of_simulated_noise(name):
    noise, y = KINDS[name], clean()
    squares = (many(noise, y, 1) - y).square()
    error = squares.std(0) / math.sqrt(COPIES)
    gap = (squares.mean(0) - noise.variance(y)[0]).abs()
    assert (gap <= 5 * error + 1e-12).all(), (gap / error).tolist()


@pytest.mark.parametrize("name", KINDS)
def test_the_variance_seen_in_noisy_values_has_the_right_mean(name):
    noise, y = KINDS[name], clean()
    seen = noise.variance_seen(many(noise, y, 2))
    error = seen.std(0) / math.sqrt(COPIES)
    gap = (seen.mean(0) - noise.variance(y)[0]).abs()
    assert (gap <= 5 * error + 1e-12).all(), (gap / error).tolist()


@pytest.mark.parametrize("name", ["gaussian", "shot", "shot in [-1, 1]", "speckle"])
def test_these_leave_the_mean_alone(name):
    noise, y = KINDS[name], clean()
    moved = many(noise, y, 3) - y
    assert (moved.mean(0).abs() <= 5 * moved.std(0) / math.sqrt(COPIES) + 1e-12).all()


def test_laws():
    y = torch.full((4000, 1), 0.5, dtype=torch.float64)
    gauss = (Gaussian(0.3).add(y, seed=0) - y).numpy().ravel() / 0.3
    assert scipy.stats.kstest(gauss, "norm").pvalue > 1e-3
    counts = np.rint(Shot(8).add(y, seed=0).numpy().ravel() * 8).astype(int)
    grid = np.arange(15)
    expected = 4000 * scipy.stats.poisson.pmf(grid, 4.0)
    seen = np.bincount(counts, minlength=40)[:15]
    assert np.all(abs(seen - expected) < 5 * np.sqrt(expected + 1))
    struck = Impulse(0.2).add(y, seed=0).numpy().ravel()
    for value, share in ((0.0, 0.1), (1.0, 0.1), (0.5, 0.8)):
        assert scipy.stats.binomtest(int((struck == value).sum()), 4000, share).pvalue > 1e-4


@pytest.mark.parametrize("name", KINDS)
def test_hidden_entries_carry_no_noise(name):
    A = random_inpaint((3, 8, 8), 0.7, seed=0, batch=2)
    y = A(torch.full((2, 3, 8, 8), 0.5))
    seen = A.observed.expand_as(y)
    noisy = KINDS[name].add(y, seed=0, observed=A.observed)
    assert (noisy[~seen] == 0).all()
    assert (noisy[seen] != y[seen]).float().mean() > 0.1


@pytest.mark.parametrize("name", KINDS)
def test_one_seed_is_one_noise(name):
    y = torch.full((3, 1, 5, 5), 0.5)
    noise = KINDS[name]
    one = noise.add(y, seed=4)
    assert (one == noise.add(y, seed=4)).all()
    assert (one != noise.add(y, seed=5)).any()
    assert (one[:2] == noise.add(y[:2], seed=4)).all()  # the first of a longer batch
    torch.testing.assert_close(noise.add(y.double(), seed=4).float(), one)
    assert one.dtype == torch.float32
    before = torch.get_rng_state()
    noise.add(y, seed=4)
    assert (torch.get_rng_state() == before).all()


def test_noise_is_not_the_seed_of_a_search():
    y = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    noise = Gaussian(1.0).add(y, seed=0)
    plain = torch.randn(64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert abs(float(torch.corrcoef(torch.stack([noise.flatten(), plain]))[0, 1])) < 0.5


def test_a_level_for_each_image():
    noise = Gaussian(torch.tensor([0.1, 1.0]))
    y = torch.zeros(2, 1, 64, 64)
    spread = noise.add(y, seed=0).flatten(1).std(1)
    torch.testing.assert_close(spread, torch.tensor([0.1, 1.0]), rtol=0.05, atol=0)
    torch.testing.assert_close(noise.variance(y)[:, 0, 0, 0], torch.tensor([0.01, 1.0]))
    with pytest.raises(DataError, match="2 sigmas and 3 images"):
        noise.add(torch.zeros(3, 1, 2, 2))


def test_noise_by_name():
    assert as_noise(None) is None
    assert as_noise(0.02).sigma == 0.02
    assert as_noise("gaussian:0.02").sigma == 0.02
    assert as_noise("speckle:0.2") == Speckle(0.2)
    assert as_noise("Shot:100", range=(-1, 1)) == Shot(100, (-1.0, 1.0))
    assert as_noise("impulse:0.1") == Impulse(0.1)
    kept = Shot(5)
    assert as_noise(kept) is kept
    assert as_noise(torch.tensor([0.1, 0.2])).sigma.tolist() == pytest.approx([0.1, 0.2])


BAD = [
    (0, DataError, "noise is 0; its level is a number above 0"),
    (-0.1, DataError, "noise is -0.1"),
    (math.nan, DataError, "noise is nan"),
    (math.inf, DataError, "noise is inf"),
    ("gaussian:0", DataError, "sigma is a number above 0; got 0.0"),
    ("gaussian", DataError, "no number as its level"),
    ("gausian:0.1", DataError, "did you mean gaussian"),
    ("pink:0.1", DataError, "the kinds are gaussian, shot, speckle, impulse"),
    ("shot:-3", DataError, "the number of photons is a number above 0; got -3.0"),
    ("impulse:1.5", DataError, "below 1; got 1.5"),
    ([0.1], KindError, "noise is a list"),
    (True, KindError, "noise is a bool"),
    (torch.tensor([0.1, 0.0]), DataError, "the least value 0"),
]


@pytest.mark.parametrize(("noise", "kind", "said"), BAD, ids=[str(b[0]) for b in BAD])
def test_bad_noise_is_a_sentence(noise, kind, said):
    with pytest.raises(kind) as told:
        as_noise(noise)
    assert said in str(told.value)


def test_counts_below_zero_are_refused():
    with pytest.raises(DataError, match=r"y holds -0\.5, darker than the 0 of its range"):
        Shot(10).add(torch.full((1, 1, 2, 2), -0.5))


def flat(batch, side, channels=1):
    return torch.full((batch, channels, side, side), 0.5, dtype=torch.float64)


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 20.0])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_sigma_of_flat_images(sigma, channels):
    found = estimate_sigma(Gaussian(sigma).add(flat(100, 24, channels), seed=0)) / sigma
    assert float(found.mean()) == pytest.approx(1.0, abs=0.03)
    assert float(found.std()) < 0.12


def test_sigma_does_not_see_a_slope_and_hardly_an_edge():
    ramp = torch.arange(32.0, dtype=torch.float64) / 8
    slope = (ramp[:, None] + 2 * ramp[None, :]).expand(50, 1, 32, 32)
    assert float(estimate_sigma(Gaussian(0.05).add(slope, seed=0)).mean()) == pytest.approx(
        0.05, rel=0.03
    )
    gen = torch.Generator().manual_seed(0)
    squares = torch.zeros(50, 1, 32, 32, dtype=torch.float64)
    for image in squares:  # boxes anywhere: corners are what a 2 × 2 detail sees
        for _ in range(6):
            top, left = torch.randint(0, 26, (2,), generator=gen).tolist()
            image[:, top : top + 5, left : left + 5] += 1.0
    found = estimate_sigma(Gaussian(0.05).add(squares, seed=0))
    assert float(found.mean()) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("hidden", [0.3, 0.7, 0.9])
def test_sigma_under_a_mask(hidden):
    A = random_inpaint((1, 32, 32), hidden, seed=0, batch=60)
    y = Gaussian(0.1).add(A(flat(60, 32)), seed=0, observed=A.observed)
    found = estimate_sigma(y, A.observed)
    assert float(found.mean()) == pytest.approx(0.1, rel=0.04)
    assert float(found.std()) < 0.1 * (0.3 if hidden > 0.8 else 0.15)


def test_sigma_under_a_box_and_under_masks_by_channel():
    A = box_inpaint((3, 16, 16), 8)
    y = Gaussian(0.1).add(A(flat(60, 16, 3)), seed=0, observed=A.observed)
    assert float(estimate_sigma(y, A.observed).mean()) == pytest.approx(0.1, rel=0.04)
    seen = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0)) < 0.4
    y = torch.where(seen, Gaussian(0.1).add(flat(60, 16, 3), seed=0), 0.0)
    assert float(estimate_sigma(y, seen).mean()) == pytest.approx(0.1, rel=0.04)


def test_planes_do_not_see_a_slope_either():
    ramp = torch.arange(32.0, dtype=torch.float64) / 32
    slope = (ramp[:, None] + 2 * ramp[None, :]).expand(30, 1, 32, 32)
    A = random_inpaint((1, 32, 32), 0.7, seed=0)
    y = Gaussian(0.05).add(A(slope), seed=0, observed=A.observed)
    assert float(estimate_sigma(y, A.observed).mean()) == pytest.approx(0.05, rel=0.2)


def test_where_sigma_is_wrong_as_its_page_says():
    digits = torch.tensor(load_digits().images[:200])[:, None] / 16
    ratio = {s: float(estimate_sigma(Gaussian(s).add(digits, 0)).mean()) / s for s in (0.02, 0.3)}
    assert 4.5 < ratio[0.02] < 6.5  # 8 × 8 digits are all edges
    assert 1.05 < ratio[0.3] < 1.2
    black = torch.zeros(50, 1, 32, 32, dtype=torch.float64)
    clipped = Gaussian(0.1).add(black, 0).clamp(0, 1)
    assert 0.5 < float(estimate_sigma(clipped).mean()) / 0.1 < 0.7
    assert float(estimate_sigma(Impulse(0.05).add(flat(5, 32), 0)).max()) == 0.0


def test_grey_stored_as_colour_is_read_as_grey():
    y = Gaussian(0.1).add(flat(40, 24), seed=0).expand(40, 3, 24, 24)
    assert float(estimate_sigma(y).mean()) == pytest.approx(0.1, rel=0.04)


def test_too_little_to_read_is_a_sentence():
    with pytest.raises(DataError, match="image 0 has 4 places"):
        estimate_sigma(torch.rand(1, 1, 3, 3))
    with pytest.raises(DataError, match="state the noise instead"):
        estimate_sigma(torch.rand(2, 10))
    with pytest.raises(DataError, match="image 0 has 0 places"):
        estimate_sigma(torch.rand(1, 1, 8, 8), torch.eye(8).reshape(1, 1, 8, 8) > 2)
    with pytest.raises(DataError, match="observed has shape"):
        estimate_sigma(torch.rand(2, 1, 8, 8), torch.ones(3, 1, 8, 8))
    with pytest.raises(KindError, match="int64"):
        estimate_sigma(torch.ones(1, 1, 8, 8, dtype=torch.int64))
    assert estimate_sigma(torch.rand(1, 1, 4, 4)).shape == (1,)
