"""What a search starts from, and how unlikely an image is."""

import math

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.methods import first_image as rough
from setpoint.restoration.methods.fmplug import WarmSearch
from setpoint.restoration.methods.regularisers import LEVELS, prior_energy
from setpoint.restoration.operators import as_operator
from setpoint.restoration.restore import restore


class Bell:
    """Pixels N(0, s²), with the best denoiser."""

    range = (-1.0, 1.0)

    def __init__(self, s):
        self.s = s

    def denoise(self, x, sigma):
        return x * self.s**2 / (self.s**2 + sigma**2)


@pytest.mark.parametrize("s", [0.2, 0.5, 1.0])
def test_the_energy_of_a_gaussian_is_its_squared_norm(s):
    x = torch.stack([torch.full((3, 4, 4), v, dtype=torch.float64) for v in (0.0, 0.5, 1.0)])
    found = prior_energy(x, Bell(s), levels=400, draws=16)
    # ½ x² ∫ dγ/(1 + s²γ)², γ = 1/σ² between the levels; half the range's width is 1
    ends = [1 / (2 * level) ** 2 for level in LEVELS]
    part = 1 / (1 + s**2 * ends[1]) - 1 / (1 + s**2 * ends[0])
    expected = x.square().flatten(1).sum(1) / (2 * s**2) * part
    np.testing.assert_allclose(found - found[0], expected, rtol=0.05, atol=0.05)


def test_the_less_likely_of_two_starts_is_left(monkeypatch, digits_flow, held_digits):
    truth = held_digits[:3]
    operator = as_operator("blind-blur:3", shape=(1, 8, 8), batch=3)
    kernels = operator.unknowns(3, truth)
    y = operator(truth, kernels)
    noise = torch.rand(truth.shape, generator=torch.Generator().manual_seed(0))

    def outcome(image, unknowns):
        return lambda task, **options: RestorationOutcome(image, unknowns=unknowns)

    # each way is right where the other is noise
    mask = torch.tensor([True, False, True])
    ours = torch.where(mask[:, None, None, None], truth, noise)
    other = torch.where(mask[:, None, None, None], noise, truth)
    by_rule = {"norm": outcome(ours, kernels), "level": outcome(other, kernels + 1)}
    monkeypatch.setattr(rough, "dps", lambda task, rule, **options: by_rule[rule](task))
    task = RestorationTask(
        y, Forward(operator, y), digits_flow, Gaussian(0.05), 0, IterateHistory()
    )
    image, unknowns = rough.warm_image(task, "best")
    torch.testing.assert_close(image, truth)
    torch.testing.assert_close(unknowns, kernels + 1.0 * ~mask[:, None])


@pytest.mark.parametrize("parts", [(0.99, 1.0), (1.0, 0.99)])
def test_a_start_that_is_hardly_better_is_left(monkeypatch, digits_flow, held_digits, parts):
    truth = held_digits[:2]
    operator = as_operator("blind-blur:3", shape=(1, 8, 8), batch=2)
    kernels = operator.unknowns(2, truth)
    y = operator(truth, kernels)
    by_rule = {
        rule: RestorationOutcome(part * truth, unknowns=kernels)
        for rule, part in zip(("norm", "level"), parts, strict=True)
    }
    monkeypatch.setattr(rough, "dps", lambda task, rule, **options: by_rule[rule])
    task = RestorationTask(
        y, Forward(operator, y), digits_flow, Gaussian(0.05), 0, IterateHistory()
    )
    image, _ = rough.warm_image(task, "best")
    torch.testing.assert_close(image, parts[0] * truth)


@pytest.mark.parametrize("rule", ["norm", "level"])
def test_a_rule_is_a_start(monkeypatch, digits_flow, held_digits, rule):
    y = held_digits[:2]
    by_rule = {"norm": RestorationOutcome(y + 1), "level": RestorationOutcome(y + 2)}
    monkeypatch.setattr(rough, "dps", lambda task, rule, **options: by_rule[rule])
    task = RestorationTask(
        y, Forward(lambda x: x, y), digits_flow, Gaussian(0.05), 0, IterateHistory()
    )
    image, unknowns = rough.warm_image(task, rule)
    torch.testing.assert_close(image, by_rule[rule].image)
    assert unknowns is None


def test_steps_of_the_start_are_told_and_not_kept(digits_flow, held_digits):
    told = []
    found = restore(
        held_digits[:1],
        lambda x: x,
        digits_flow,
        noise=0.1,
        method="fmplug",
        iterations=2,
        copies=2,
        callback=lambda step, steps, residual: told.append((step, steps)),
    )
    assert [(k, 60) for k in range(60)] == told[:60]  # plug-and-play
    assert told[60][0] == 0
    assert len(found.history["residual"]) == len(told) - 60


@pytest.mark.parametrize(("bad", "good"), [("norm", "level"), ("level", "norm")])
def test_a_start_that_is_no_number_is_left(monkeypatch, digits_flow, held_digits, bad, good):
    truth = held_digits[:2]
    operator = as_operator("blind-blur:3", shape=(1, 8, 8), batch=2)
    kernels = operator.unknowns(2, truth)
    y = operator(truth, kernels)
    broken = RestorationOutcome(torch.full_like(truth, math.nan), unknowns=kernels)
    by_rule = {bad: broken, good: RestorationOutcome(truth, unknowns=kernels)}
    monkeypatch.setattr(rough, "dps", lambda task, rule, **options: by_rule[rule])
    task = RestorationTask(
        y, Forward(operator, y), digits_flow, Gaussian(0.05), 0, IterateHistory()
    )
    image, _ = rough.warm_image(task, "best")
    torch.testing.assert_close(image, truth)


@pytest.mark.parametrize(("share", "near"), [(0.0, False), (1.0, True)])
def test_a_share_of_the_start_is_in_the_answer(digits_flow, held_digits, share, near):
    truth = held_digits[:2]
    operator = as_operator("inpaint:0.5", shape=(1, 8, 8), batch=2)
    y = Gaussian(0.05).add(operator(truth), 0, observed=operator.observed)
    found = restore(
        y,
        operator,
        digits_flow,
        noise=0.05,
        method="fmplug",
        warm_from=truth,
        share=share,
        copies=2,
        iterations=15,
    )
    away = float((found.image - truth).abs().max())
    assert (away < 1e-6) == near
    assert all(("averaged with the start" in why) == near for why in found.why)


def test_a_start_that_does_not_explain_y_has_no_share(digits_flow, held_digits):
    truth = held_digits[:2]
    operator = as_operator("inpaint:0.5", shape=(1, 8, 8), batch=2)
    y = Gaussian(0.05).add(operator(truth), 0, observed=operator.observed)
    options = {"noise": 0.05, "method": "fmplug", "warm_from": 1 - truth, "copies": 2}
    alone, both = (
        restore(y, operator, digits_flow, share=share, iterations=10, **options)
        for share in (0.0, 0.9)
    )
    torch.testing.assert_close(alone.image, both.image)
    assert alone.why == both.why


@pytest.mark.parametrize(
    ("start", "copies", "share"),
    [("auto", 2, 0.5), ("auto", 1, 0.0), ("smooth", 2, 0.0), (None, 2, 0.0)],
)
def test_the_share_where_none_is_given(digits_flow, held_digits, start, copies, share):
    y = held_digits[:1]
    task = RestorationTask(
        y, Forward(lambda x: x, y), digits_flow, Gaussian(0.1), 0, IterateHistory()
    )
    search = WarmSearch(task, copies, 0.25, y if start is None else start, None, None)
    assert search.share == share


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_is_between_0_and_1(digits_flow, held_digits, share):
    with pytest.raises(sp.DataError, match="share"):
        restore(
            held_digits[:1],
            lambda x: x,
            digits_flow,
            noise=0.1,
            method="fmplug",
            share=share,
        )
