"""The trainer: finds known posterior means, repeats itself, stops when told, refuses nonsense."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import linear
from setpoint.restoration.priors.prior_training import PriorTrainingProgress, flip, train_prior


class Small(nn.Module):
    """Two layers on four pixels and the time."""

    def __init__(self, wide=32):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.inner, self.outer = nn.Linear(12, wide), nn.Linear(wide, 4)
            self.across = nn.Linear(wide, wide)

    def forward(self, x, t):
        turns = t[:, None] * torch.tensor([1.0, 2.0, 4.0, 8.0])
        seen = torch.cat([x.flatten(1), turns.sin(), turns.cos()], dim=1)
        inner = nn.functional.silu(self.inner(seen))
        return self.outer(nn.functional.silu(self.across(inner))).reshape(x.shape)


MEAN = torch.tensor([0.5, -1.0, 0.0, 1.0])
MIX = torch.tensor([[1.0, 0, 0, 0], [0.8, 0.3, 0, 0], [0, 0, 0.5, 0], [0, 0, -0.4, 0.4]])


def gaussian_images(count=8000):
    z = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
    return (MEAN + z @ MIX.T).clamp(-4, 4).reshape(-1, 1, 2, 2)


@pytest.mark.parametrize("kind", ["diffusion", "flow"])
def test_training_on_a_gaussian_finds_its_posterior_mean(kind):
    prior = train_prior(
        gaussian_images(),
        kind=kind,
        network=Small(),
        range=(-4, 4),
        steps=1000,
        batch=64,
        learning_rate=2e-2,
        ema=0.99,
    )
    assert prior.range == (-4.0, 4.0)
    x = gaussian_images(2000)
    covariance = MIX @ MIX.T
    for sigma in (0.6, 1.5):
        noisy = x + sigma * torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
        gain = torch.linalg.solve(covariance + sigma**2 * torch.eye(4), covariance)
        expected = (MEAN + (noisy.flatten(1) - MEAN) @ gain).reshape(x.shape)
        apart = float((prior.denoise(noisy, sigma) - expected).square().mean().sqrt())
        moved = float((noisy - expected).square().mean().sqrt())
        assert apart < 0.15 * moved


def briefly(**more):
    given = {"network": Small(), "range": (-4, 4), "steps": 20, "batch": 8} | more
    return train_prior(gaussian_images(100), **given)


def same(one, other):
    pairs = zip(one.network.parameters(), other.network.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_the_same_seed_gives_the_same_weights_and_touches_no_global_state():
    state = torch.random.get_rng_state()
    first = briefly(seed=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(3)
    assert same(first, briefly(seed=4))
    assert not same(first, briefly(seed=5))
    images = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    one, two = (train_prior(images, steps=2, batch=2, seed=1) for _ in range(2))
    assert same(one, two)  # a network drawn by the trainer


def test_the_prior_comes_back_ready_to_use():
    for kind, sort in (("diffusion", DiffusionPrior), ("flow", FlowPrior)):
        prior = briefly(kind=kind)
        assert type(prior) is sort
        assert not prior.network.training
        assert not any(weight.requires_grad for weight in prior.network.parameters())
        assert prior(torch.zeros(3, 1, 2, 2)).shape == (3, 1, 2, 2)
    own = briefly(alpha_bar=linear(30))
    torch.testing.assert_close(own.alpha_bar, linear(30))


def test_reports_come_every_few_steps_and_at_the_end():
    seen: list[PriorTrainingProgress] = []
    briefly(callback=seen.append, every=8)
    assert [one.step for one in seen] == [8, 16, 20]
    assert all(one.steps == 20 and one.rate > 0 and np.isfinite(one.loss) for one in seen)


def test_a_report_answered_with_false_ends_the_training():
    seen: list[PriorTrainingProgress] = []

    def enough(progress):
        seen.append(progress)
        return False

    assert not same(briefly(callback=enough, every=5), briefly())
    assert [one.step for one in seen] == [5]


def test_ctrl_c_gives_back_the_average_so_far():
    def interrupt(progress):
        raise KeyboardInterrupt

    def stop(progress):
        return False

    assert same(briefly(callback=interrupt, every=5), briefly(callback=stop, every=5))


def test_flip_mirrors_about_half_of_the_images_and_nothing_else():
    images = torch.arange(4.0).reshape(1, 1, 1, 4).repeat(400, 1, 1, 1)
    turned = flip(images, torch.Generator().manual_seed(0))[:, 0, 0, 0] == 3
    assert 150 < int(turned.sum()) < 250
    found = flip(images, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found[turned], images[turned].flip(-1))
    torch.testing.assert_close(found[~turned], images[~turned])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "gan"}, 'kind is "gan"'),
        ({"steps": 0}, "steps = 0"),
        ({"batch": 0}, "batch = 0"),
        ({"range": (0, 1)}, r"outside the declared range \(0, 1\)"),
        ({"range": (1, 1)}, "low < high"),
        ({"range": (0, float("inf"))}, "finite"),
        ({"learning_rate": 1e30}, "diverged"),
    ],
)
def test_nonsense_is_a_sentence(change, sentence):
    with pytest.raises(sp.DataError, match=sentence):
        briefly(**change)


def test_images_that_are_none_are_a_sentence():
    with pytest.raises(sp.DataError, match=r"shape \(5, 4\)"):
        train_prior(torch.zeros(5, 4))
    with pytest.raises(sp.DataError, match="values from nan"):
        train_prior(torch.full((2, 1, 8, 8), float("nan")))
