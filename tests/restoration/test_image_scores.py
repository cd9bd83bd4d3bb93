"""PSNR, SSIM and the distance to the manifold against other implementations and closed forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from setpoint import DataError, KindError
from setpoint.restoration.image_scores import manifold_distance, psnr, ssim


def pair(seed, shape=(2, 3, 17, 23), low=0.0, high=1.0):
    rng = np.random.default_rng(seed)
    truth = gaussian_filter(rng.random(shape), (0, 0, 2, 2))
    truth = (truth - truth.min()) / (truth.max() - truth.min())
    x = truth + 0.1 * rng.normal(size=shape)
    return low + (high - low) * x, low + (high - low) * truth


def ssim_of_scipy(x, truth, width):
    """Means over the whole image by scipy's filter, then the rim is cut off; channels averaged."""

    def smoothed(a):
        return gaussian_filter(a, 1.5, truncate=3.5, mode="reflect")

    values = []
    for a, b in zip(x, truth, strict=True):
        ma, mb = smoothed(a), smoothed(b)
        va, vb = smoothed(a * a) - ma * ma, smoothed(b * b) - mb * mb
        cov = smoothed(a * b) - ma * mb
        c1, c2 = (0.01 * width) ** 2, (0.03 * width) ** 2
        s = ((2 * ma * mb + c1) * (2 * cov + c2)) / ((ma**2 + mb**2 + c1) * (va + vb + c2))
        values.append(s[5:-5, 5:-5].mean())
    return float(np.mean(values))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)]))
def test_ssim_is_that_of_scipy_in_any_range(seed, box):
    x, truth = pair(seed, (2, 2, 13, 16), *box)
    found = ssim(torch.tensor(x), torch.tensor(truth), box)
    due = [ssim_of_scipy(a, b, box[1] - box[0]) for a, b in zip(x, truth, strict=True)]
    np.testing.assert_allclose(found.numpy(), due, rtol=1e-9)


def test_ssim_is_that_of_scikit_image():
    i, j = np.mgrid[:16, :16]
    truth = (i * 7 + j * 13) % 17 / 16.0
    x = np.clip(truth + 0.1 * np.sin(i + 2 * j), 0, 1)
    found = ssim(torch.tensor(x)[None, None], torch.tensor(truth)[None, None])
    # scikit-image 0.26.0: structural_similarity(x, truth, data_range=1.0, gaussian_weights=True,
    # sigma=1.5, use_sample_covariance=False)
    assert float(found) == pytest.approx(0.9773850527549038, rel=1e-12)


def test_ssim_of_two_constants_has_a_closed_form():
    a, b, c1 = 0.2, 0.7, 1e-4
    x, truth = (torch.full((1, 1, 12, 12), v, dtype=torch.float64) for v in (a, b))
    found = ssim(x, truth)
    due = (2 * a * b + c1) / (a * a + b * b + c1)  # no variance: the second quotient is 1
    assert float(found) == pytest.approx(due, rel=1e-9)


def test_ssim_of_the_smallest_image_is_one_window():
    x, truth = pair(3, (1, 1, 11, 11))
    at = np.arange(-5, 6)
    weights = np.exp(-0.5 * (at[:, None] ** 2 + at[None] ** 2) / 1.5**2)
    weights /= weights.sum()
    a, b = x[0, 0], truth[0, 0]
    ma, mb = (weights * a).sum(), (weights * b).sum()
    va, vb = (weights * (a - ma) ** 2).sum(), (weights * (b - mb) ** 2).sum()
    cov = (weights * (a - ma) * (b - mb)).sum()
    due = (2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    assert float(ssim(torch.tensor(x), torch.tensor(truth))) == pytest.approx(due, rel=1e-9)


def test_psnr_by_its_formula():
    x, truth = pair(1)
    found = psnr(torch.tensor(x), torch.tensor(truth))
    due = [-10 * math.log10(((a - b) ** 2).mean()) for a, b in zip(x, truth, strict=True)]
    np.testing.assert_allclose(found.numpy(), due, rtol=1e-12)
    assert math.isinf(float(psnr(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 300), st.floats(-50, 50))
def test_scores_do_not_depend_on_units(seed, scale, shift):
    x, truth = map(torch.tensor, pair(seed, (1, 1, 12, 14)))
    box = (shift, shift + scale)
    assert float(psnr(shift + scale * x, shift + scale * truth, box)) == pytest.approx(
        float(psnr(x, truth)), abs=1e-6
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_scores_are_symmetric_and_the_same_is_best(seed):
    x, truth = map(torch.tensor, pair(seed))
    for score in (psnr, ssim):
        torch.testing.assert_close(score(x, truth), score(truth, x))
    assert (ssim(x, truth) < ssim(truth, truth)).all()
    torch.testing.assert_close(ssim(x, x), torch.ones(2, dtype=torch.float64))


def test_float32_is_scored_in_float64():
    x, truth = map(torch.tensor, pair(5))
    small = ssim(x.float(), truth.float())
    assert small.dtype == torch.float64
    torch.testing.assert_close(small, ssim(x, truth), rtol=1e-5, atol=1e-6)


class Gaussian:
    """Images ~ N(0, s² I): the posterior mean given noise σ is x s² / (s² + σ²)."""

    s = 0.5

    def denoise(self, x, sigma):
        return x * self.s**2 / (self.s**2 + sigma**2)


def test_manifold_distance_of_a_gaussian_prior():
    x = torch.randn(3, 1, 4, 4, dtype=torch.float64)
    sigma = 0.3
    due = sigma**2 / (0.5**2 + sigma**2) * x.square().flatten(1).mean(1).sqrt()
    torch.testing.assert_close(manifold_distance(x, Gaussian(), sigma), due)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda x: psnr(x, x[:1]), DataError, "of one shape; got (2, 1, 12, 12) and (1, 1, 12"),
        (lambda x: psnr(x[0], x[0]), DataError, "of one shape"),
        (lambda x: psnr(x / 0 * 0, x), DataError, "x holds values that are no numbers"),
        (lambda x: psnr(x, x, (-math.inf, math.inf)), DataError, "got (-inf, inf)"),
        (lambda x: psnr(x, x, (1, 0)), DataError, "got (1, 0)"),
        (lambda x: ssim(x[..., :8], x[..., :8]), DataError, "these are 12 × 8"),
        (lambda x: manifold_distance(x, object(), 0.1), KindError, "object has none"),
        (lambda x: manifold_distance(x, Gaussian(), 0.0), DataError, "got 0.0"),
    ],
)
def test_mistakes(call, kind, said):
    with pytest.raises(kind) as error:
        call(torch.ones(2, 1, 12, 12))
    assert said in str(error.value)
