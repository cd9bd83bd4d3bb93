"""A folder of diffusers as a prior: its schedule, its steps, and the sentences."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec

import pytest
import torch

import setpoint as sp
from setpoint.restoration.priors.bundled import load_prior
from setpoint.restoration.priors.diffusers_folder import alpha_bar, read_folder
from setpoint.restoration.priors.noise_schedule import linear

MODEL = {"_class_name": "UNet2DModel", "sample_size": 8, "in_channels": 1, "out_channels": 1}
PLAN = {"_class_name": "DDPMScheduler", "num_train_timesteps": 100, "beta_schedule": "linear"}


def write(folder, model=None, plan=None, weights=b"none"):
    """A folder as a pipeline's ``save_pretrained`` leaves it, but for the weights."""
    if model is not None:
        (folder / "unet").mkdir(exist_ok=True)
        (folder / "unet" / "config.json").write_text(json.dumps(model))
        if weights is not None:
            (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(weights)
    if plan is not None:
        (folder / "scheduler").mkdir(exist_ok=True)
        (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(plan))
    return folder


# ---- the schedule, from its definition ----------------------------------------------------------


def test_linear_betas_are_those_of_ddpm(tmp_path):
    torch.testing.assert_close(alpha_bar(PLAN | {"num_train_timesteps": 1000}, tmp_path), linear())


def test_scaled_linear_betas_are_even_in_their_roots(tmp_path):
    found = alpha_bar(
        PLAN | {"beta_schedule": "scaled_linear", "beta_start": 0.01, "beta_end": 0.04}, tmp_path
    )
    kept = 1.0
    for t in range(100):
        kept *= 1 - (0.1 + 0.1 * t / 99) ** 2
        assert float(found[t]) == pytest.approx(kept)


def test_the_cosine_schedule_is_a_squared_cosine_but_for_its_cap(tmp_path):
    found = alpha_bar(PLAN | {"beta_schedule": "squaredcos_cap_v2"}, tmp_path)

    def left(u):
        return math.cos((u + 0.008) / 1.008 * math.pi / 2) ** 2

    for t in range(99):
        assert float(found[t]) == pytest.approx(left((t + 1) / 100) / left(0))
    assert float(found[99]) == pytest.approx(float(found[98]) * 1e-3)


def test_betas_may_be_given_as_numbers(tmp_path):
    found = alpha_bar(PLAN | {"trained_betas": [0.1, 0.5]}, tmp_path)
    torch.testing.assert_close(found, torch.tensor([0.9, 0.45], dtype=torch.float64))


def test_a_schedule_without_signal_at_the_end_keeps_its_first_level(tmp_path):
    plan = PLAN | {"rescale_betas_zero_snr": True}
    found, before = alpha_bar(plan, tmp_path), alpha_bar(PLAN, tmp_path)
    assert float(found[-1]) == 0
    assert float(found[0]) == pytest.approx(float(before[0]))


# ---- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "plan", "sentence"),
    [
        ({"_class_name": "UNet2DConditionModel"}, {}, "holds a UNet2DConditionModel"),
        ({"_class_name": None}, {}, "holds a model of no name"),
        ({"num_class_embeds": 10}, {}, "num_class_embeds = 10"),
        ({"time_embedding_type": "fourier"}, {}, "a score model"),
        ({"sample_size": None}, {}, "does not say sample_size"),
        ({}, {"beta_schedule": "sigmoid"}, "beta_schedule 'sigmoid'"),
        ({}, {"prediction_type": "flow"}, "prediction_type 'flow'"),
        ({}, {"trained_betas": [0.1, 1.5]}, "do not lie between 0 and 1"),
        ({}, {"rescale_betas_zero_snr": True}, "ends without signal"),
    ],
)
def test_a_folder_that_cannot_be_a_prior_is_a_sentence(tmp_path, model, plan, sentence):
    write(tmp_path, MODEL | model, PLAN | plan)
    with pytest.raises(sp.FileError, match=sentence):
        load_prior(tmp_path)


def test_a_folder_without_its_parts_is_a_sentence(tmp_path):
    write(tmp_path, MODEL, weights=None)
    with pytest.raises(sp.FileError, match="the noise schedule is not guessed"):
        load_prior(tmp_path)
    write(tmp_path, plan={"_class_name": "FlowMatchEulerDiscreteScheduler"})
    with pytest.raises(sp.FileError, match=r"FlowMatchEulerDiscreteScheduler\) has no betas"):
        load_prior(tmp_path)
    write(tmp_path, plan=PLAN)
    with pytest.raises(sp.FileError, match="pickled weights are not read"):
        load_prior(tmp_path)
    (tmp_path / "unet" / "config.json").write_text("[")
    with pytest.raises(sp.FileError, match="cannot read"):
        load_prior(tmp_path)
    (tmp_path / "unet" / "config.json").write_text("[]")
    with pytest.raises(sp.FileError, match="an object is needed"):
        load_prior(tmp_path)


@pytest.mark.skipif(find_spec("diffusers") is not None, reason="diffusers is installed")
def test_without_diffusers_the_extra_is_named(tmp_path):
    with pytest.raises(sp.DataError, match=r"pip install 'setpoint\[restoration\]'"):
        load_prior(write(tmp_path, MODEL, PLAN))


# ---- with diffusers -----------------------------------------------------------------------------


@pytest.fixture
def diffusers():
    return pytest.importorskip("diffusers")


def network(diffusers, **more):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return diffusers.UNet2DModel(
            sample_size=8,
            in_channels=1,
            out_channels=1,
            layers_per_block=1,
            block_out_channels=(8, 16),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            norm_num_groups=4,
            **more,
        ).eval()


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"},
        {"beta_schedule": "scaled_linear", "prediction_type": "sample", "clip_sample": False},
        {"rescale_betas_zero_snr": True, "prediction_type": "v_prediction"},
    ],
)
def test_r_equals_the_steps_of_diffusers_own_sampler(diffusers, tmp_path, plan):
    model, scheduler = network(diffusers), diffusers.DDIMScheduler(**plan)
    diffusers.DDIMPipeline(model, scheduler).save_pretrained(tmp_path)
    scheduler.set_timesteps(3)
    z = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    x = z
    with torch.no_grad():
        for t in scheduler.timesteps:
            said = model(x, t).sample
            x = scheduler.step(said, t, x, eta=0.0, use_clipped_model_output=True).prev_sample
        prior = read_folder(tmp_path, range=(-1, 1), spacing="leading")
        torch.testing.assert_close(prior(z), x, rtol=0, atol=2e-4)
        torch.testing.assert_close(
            prior.alpha_bar.float(), scheduler.alphas_cumprod, rtol=0, atol=2e-6
        )
        half = load_prior(tmp_path).with_steps(3, "leading")
        assert half.range == (0.0, 1.0)
        torch.testing.assert_close(half(z), (x + 1) / 2, rtol=0, atol=2e-4)
    seed = z.double().requires_grad_()
    double = load_prior(tmp_path, dtype=torch.float64)
    (slope,) = torch.autograd.grad(double(seed).sum(), seed)
    assert bool(slope.isfinite().all())
    assert float(slope.abs().max()) > 0


def test_a_model_s_own_folder_with_the_scheduler_beside_it_loads(diffusers, tmp_path):
    network(diffusers).save_pretrained(tmp_path)
    diffusers.DDPMScheduler(num_train_timesteps=50).save_pretrained(tmp_path)
    prior = load_prior(tmp_path)
    assert prior.T == 50
    assert prior.prediction == "epsilon"
    assert prior.clip


def test_weights_cut_short_are_a_sentence(diffusers, tmp_path):
    diffusers.DDIMPipeline(network(diffusers), diffusers.DDIMScheduler()).save_pretrained(tmp_path)
    weights = tmp_path / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(sp.FileError, match="diffusers cannot read the model"):
        load_prior(tmp_path)
