"""Priors: R and its gradient, closed forms of Gaussians, files that come back or are refused."""

from __future__ import annotations

import itertools
import json
import math
from importlib import resources

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

import setpoint as sp
from setpoint.restoration.priors.bundled import BUNDLED, load_prior, prior_card
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.linear_gaussian import LinearPrior
from setpoint.restoration.priors.noise_schedule import cosine, linear
from setpoint.restoration.priors.prior_file import read_card, read_prior_file, save_prior
from setpoint.restoration.priors.unet import UNet


def drawn_unet(**more) -> UNet:
    """A small network with nothing at zero, so that every part of it is heard."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        network = UNet(channels=1, width=8, multipliers=(1, 2), blocks=1, attention=(4,), size=8)
        for weight in network.parameters():
            if not bool(weight.detach().any()):
                nn.init.normal_(weight, std=0.1)
    return network.to(**more)


def seeds(batch=2, shape=(1, 8, 8), dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, *shape, dtype=dtype, generator=generator)


def priors(clip: bool, dtype=torch.float64):
    more = {"shape": (1, 8, 8), "clip": clip}
    yield from (
        DiffusionPrior(drawn_unet(dtype=dtype), alpha_bar=cosine(), prediction=said, **more)
        for said in ("v", "epsilon", "sample")
    )
    yield FlowPrior(drawn_unet(dtype=dtype), **more)


# ---- R's gradient -------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [False, True])
def test_gradient_of_r_equals_central_differences(clip):
    weights = torch.linspace(-1, 1, 64, dtype=torch.float64).reshape(1, 8, 8)
    for prior in priors(clip):
        z = seeds().requires_grad_()
        (slope,) = torch.autograd.grad((weights * prior(z)).sum(), z)
        direction = seeds(seed=1)
        step = 1e-6
        with torch.no_grad():
            ahead, behind = prior(z + step * direction), prior(z - step * direction)
        found = (weights * (ahead - behind)).sum() / (2 * step)
        ends = ((ahead == 0) | (ahead == 1)).double().mean()  # part that is clipped
        assert 0 < float(ends) < 1 if clip else float(ends) == 0
        assert float(slope.abs().max()) > 0
        # a clipped pixel has no gradient; those that cross the kink within a step do not occur here
        torch.testing.assert_close((slope * direction).sum(), found, rtol=1e-5, atol=1e-7)


def test_a_clipped_image_stays_in_its_declared_range():
    for prior in priors(True):
        image = prior(20 * seeds())
        assert float(image.min()) >= 0
        assert float(image.max()) <= 1


def test_images_of_a_batch_do_not_see_each_other():
    z = seeds(batch=3)
    for prior in priors(False):
        alone = torch.cat([prior(one[None]) for one in z])
        torch.testing.assert_close(prior(z), alone)


# ---- Gaussians: R is affine with a known slope --------------------------------------------------


class GaussianNoise(nn.Module):
    """E[ε | x_t] for x_0 ~ N(m, s²) in every pixel: linear in x_t."""

    def __init__(self, mean, spread, alpha_bar):
        super().__init__()
        self.mean, self.spread, self.alpha_bar = mean, spread, alpha_bar

    def forward(self, x, t):
        kept = self.alpha_bar[(t * len(self.alpha_bar)).round().long()].view(-1, 1, 1, 1)
        off = x - kept.sqrt() * self.mean
        return off * (1 - kept).sqrt() / (kept * self.spread**2 + 1 - kept)


class GaussianVelocity(nn.Module):
    """E[x_1 − z | x_t] for x_1 ~ N(m, s²), z ~ N(0, 1), x_t = t x_1 + (1 − t) z."""

    def __init__(self, mean, spread):
        super().__init__()
        self.mean, self.spread = mean, spread

    def forward(self, x, t):
        t = t.view(-1, 1, 1, 1)
        slope = (t * self.spread**2 - (1 - t)) / (t**2 * self.spread**2 + (1 - t) ** 2)
        return self.mean + slope * (x - t * self.mean)


@settings(max_examples=30, deadline=None)
@given(
    mean=st.floats(-1, 1),
    spread=st.floats(0.05, 1.5),
    steps=st.integers(1, 40),
    spacing=st.sampled_from(["trailing", "leading"]),
    make=st.sampled_from([cosine, linear]),
)
def test_ddim_of_a_gaussian_equals_its_closed_form(mean, spread, steps, spacing, make):
    levels = make(200)
    prior = DiffusionPrior(
        GaussianNoise(mean, spread, levels),
        shape=(1, 2, 2),
        range=(-1, 1),
        alpha_bar=levels,
        prediction="epsilon",
        steps=steps,
        spacing=spacing,
        clip=False,
    )
    first = (
        [round(200 * (steps - i) / steps) - 1 for i in range(steps)]
        if spacing == "trailing"
        else [200 // steps * (steps - 1 - i) for i in range(steps)]
    )
    kept = [float(levels[t]) for t in first] + [1.0]  # the last step goes to the image
    slope = 1.0
    for now, after in itertools.pairwise(kept):
        both = math.sqrt(now * after) * spread**2 + math.sqrt((1 - now) * (1 - after))
        slope *= both / (now * spread**2 + 1 - now)
    z = seeds(shape=(1, 2, 2))
    expected = mean + slope * (z - math.sqrt(kept[0]) * mean)
    torch.testing.assert_close(prior(z), expected, rtol=1e-8, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(mean=st.floats(-1, 1), spread=st.floats(0.05, 1.5), steps=st.integers(1, 40))
def test_euler_s_rule_on_a_gaussian_flow_equals_its_closed_form(mean, spread, steps):
    network = GaussianVelocity(mean, spread)
    prior = FlowPrior(network, shape=(1, 2, 2), range=(-1, 1), steps=steps, clip=False)
    slope = 1.0
    for t in np.arange(steps) / steps:
        rate = (t * spread**2 - (1 - t)) / (t**2 * spread**2 + (1 - t) ** 2)
        slope *= 1 + rate / steps
    z = seeds(shape=(1, 2, 2))
    torch.testing.assert_close(prior(z), mean + slope * z, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("sigma", [0.05, 0.4, 3.0])
def test_denoising_a_gaussian_gives_the_posterior_mean(sigma):
    mean, spread = 0.3, 0.5  # in the network's units; images are in (0, 255)
    x = 255 * torch.rand(
        2, 1, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    levels = cosine(20_000)  # so fine that the nearest time is the time
    network = GaussianNoise(mean, spread, levels)
    more = {"shape": (1, 2, 2), "range": (0, 255), "clip": False}
    centre, scale = (mean + 1) * 127.5, spread * 127.5
    weight = scale**2 / (scale**2 + (127.5 * sigma) ** 2)
    expected = centre + weight * (x - centre)
    for prior in (
        DiffusionPrior(network, alpha_bar=levels, prediction="epsilon", **more),
        FlowPrior(GaussianVelocity(mean, spread), **more),
    ):
        found = prior.denoise(x, 127.5 * sigma)
        torch.testing.assert_close(found, expected, rtol=0, atol=0.05)
        each = prior.denoise(x, torch.full((2,), 127.5 * sigma))
        torch.testing.assert_close(each, found)


# ---- the linear prior ---------------------------------------------------------------------------


def linear_prior():
    generator = torch.Generator().manual_seed(7)
    matrix = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    return LinearPrior(matrix, torch.arange(6, dtype=torch.float64), shape=(1, 2, 3))


def test_the_linear_prior_denoises_to_the_posterior_mean():
    prior, x = linear_prior(), seeds(shape=(1, 2, 3))
    sigma = torch.tensor([0.1, 2.0], dtype=torch.float64)
    covariance = prior.matrix @ prior.matrix.T
    for row, noise in zip(range(2), sigma, strict=True):
        inner = covariance + noise**2 * torch.eye(6, dtype=torch.float64)
        off = x[row].flatten() - prior.mean
        expected = prior.mean + covariance @ torch.linalg.solve(inner, off)
        torch.testing.assert_close(prior.denoise(x, sigma)[row].flatten(), expected)


def test_a_linear_prior_of_wrong_size_is_refused():
    with pytest.raises(sp.DataError, match=r"has 4 pixels.*got \(5, 2\)"):
        LinearPrior(torch.zeros(5, 2), torch.zeros(4), shape=(1, 2, 2))


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_prior_comes_back(tmp_path, dtype):
    more = {"shape": (1, 8, 8), "range": (-1, 2)}
    half = drawn_unet(dtype=torch.float16)  # what the file can hold exactly
    network = UNet(**half.arguments).to(dtype)
    network.load_state_dict(half.state_dict())
    for prior in (
        DiffusionPrior(network, alpha_bar=linear(50), prediction="epsilon", steps=5, **more),
        DiffusionPrior(network, alpha_bar=cosine() ** 1.1, spacing="leading", clip=False, **more),
        FlowPrior(network, steps=4, **more),
    ):
        path = save_prior(prior, tmp_path / "own.safetensors", {"data": "none", "steps": 0})
        back = load_prior(path, dtype=dtype)
        z = seeds(dtype=dtype)
        assert type(back) is type(prior)
        assert (back.shape, back.range, back.steps) == (prior.shape, (-1.0, 2.0), prior.steps)
        torch.testing.assert_close(back(z), prior(z), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(back.denoise(z, 0.3), prior.denoise(z, 0.3))
        assert read_card(path)["data"] == "none"
    assert [file.name for file in tmp_path.iterdir()] == ["own.safetensors"]


def test_loading_leaves_the_global_random_state_alone(tmp_path):
    path = save_prior(FlowPrior(drawn_unet(), shape=(1, 8, 8)), tmp_path / "own.safetensors")
    before = torch.random.get_rng_state()
    load_prior(path)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "own.safetensors"
    with pytest.raises(sp.KindError, match="on GaussianVelocity"):
        save_prior(FlowPrior(GaussianVelocity(0, 1), shape=(1, 8, 8)), path)
    large = drawn_unet()
    nn.init.constant_(large.last.bias, 1e6)
    with pytest.raises(sp.DataError, match=r'"last.bias" are not finite in half.*1e\+06'):
        save_prior(FlowPrior(large, shape=(1, 8, 8)), path)
    with pytest.raises(sp.DataError, match="cannot be written as JSON"):
        save_prior(FlowPrior(drawn_unet(), shape=(1, 8, 8)), path, {"loss": float("nan")})
    assert not path.exists()


def change(words: dict, **new) -> dict:
    return {name: text for name, text in (words | new).items() if text is not None}


@pytest.mark.parametrize(
    ("weights", "words", "sentence"),
    [
        ({}, {"format": None}, "not a prior of this library"),
        ({}, {"format": "setpoint-prior-9"}, "is 'setpoint-prior-9', not \"setpoint-prior-1\""),
        ({}, {"kind": "gan"}, "its kind is 'gan'"),
        ({}, {"kind": "diffusion"}, "'schedule'"),
        ({}, {"network": "{"}, "its description cannot be read"),
        ({}, {"network": '{"width": "wide"}'}, "its description cannot be read"),
        ({}, {"network": None}, "'network'"),
        ({}, {"range": "[1, 0]"}, "is empty"),
        ({}, {"range": "3"}, "not a pair"),
        ({}, {"shape": "[3, 8, 8]"}, r"shape \(3, 8, 8\)"),
        ({}, {"sampler": '{"steps": 0}'}, "steps=0"),
        ({}, {"sampler": '{"walk": 1}'}, "walk"),
        ({"last.bias": None}, {}, '"last.bias" are missing'),
        ({"more": torch.zeros(1)}, {}, '"more" are not of its network'),
        ({"last.bias": torch.zeros(2)}, {}, r"shape \(2,\), not \(1,\)"),
        ({"last.bias": torch.tensor([float("nan")])}, {}, "not all finite"),
        ({"last.bias": torch.tensor([1])}, {}, "not all finite"),
    ],
)
def test_a_foreign_or_broken_file_is_a_sentence(tmp_path, weights, words, sentence):
    path = tmp_path / "own.safetensors"
    save_prior(FlowPrior(drawn_unet(), shape=(1, 8, 8)), path)
    good = {
        "format": "setpoint-prior-1",
        "kind": "flow",
        "network": json.dumps(drawn_unet().arguments),
        "shape": "[1, 8, 8]",
        "range": "[0, 1]",
    }
    save_file(change(load_file(path), **weights), path, metadata=change(good, **words))
    with pytest.raises(sp.FileError, match=sentence):
        read_prior_file(path)


@pytest.mark.parametrize("part", [0, 4, 100, 0.5, 0.99])
def test_a_truncated_file_is_a_sentence(tmp_path, part):
    path = save_prior(FlowPrior(drawn_unet(), shape=(1, 8, 8)), tmp_path / "own.safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[: part if isinstance(part, int) else int(part * len(whole))])
    with pytest.raises(sp.FileError, match="not a whole safetensors file"):
        load_prior(path)


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "own.safetensors"
    torch.save(drawn_unet().state_dict(), path)
    with pytest.raises(sp.FileError, match="not a whole safetensors file"):
        load_prior(path)


def test_a_name_that_is_no_prior_is_a_sentence(tmp_path):
    with pytest.raises(sp.FileError, match=r'no prior "mnits".*Did you mean "mnist"'):
        load_prior("mnits")
    with pytest.raises(sp.FileError, match="holds no diffusers model"):
        load_prior(tmp_path)
    with pytest.raises(sp.KindError, match="wrap it in Generator"):
        load_prior(nn.Identity())  # type: ignore[arg-type]
    with pytest.raises(sp.DataError, match="floating-point"):
        load_prior("mnist", dtype=torch.int32)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_prior_makes_images_of_its_kind(name):
    prior, card = load_prior(name), prior_card(name)
    assert prior.shape == ((1, 32, 32) if name.startswith("mnist") else (3, 32, 32))
    assert prior.range == (0.0, 1.0)
    assert {"data", "steps", "batch", "loss", "seed"} <= card.keys()
    with torch.no_grad():
        image = prior(seeds(4, prior.shape, torch.float32))
    assert image.shape == (4, *prior.shape)
    if name.startswith("mnist"):  # black border, ink inside
        assert float(image[..., 0, :].mean()) < 0.05
        assert 0.05 < float(image.mean()) < 0.3
    else:
        assert 0.2 < float(image.mean()) < 0.8
    assert float(image.std(dim=0).mean()) > 0.02


def test_the_page_of_the_bundled_weights_says_what_their_cards_say():
    page = (resources.files("setpoint.restoration.priors") / "weights" / "README.md").read_text(
        "utf-8"
    )
    for key, form in (
        ("weights", "{:,}"),
        ("images", "{:,}"),
        ("steps", "{} × 256"),
        ("loss", "{:.5f}"),
        ("seconds", "{} s"),
    ):
        cells = " | ".join(form.format(prior_card(name)[key]) for name in BUNDLED)
        assert f"| {cells} |" in page, key


def test_the_bundled_weights_take_no_more_than_16_megabytes():
    folder = resources.files("setpoint.restoration.priors") / "weights"
    sizes = [len((folder / f"{name}.safetensors").read_bytes()) for name in BUNDLED]
    assert sum(sizes) <= 16_000_000
