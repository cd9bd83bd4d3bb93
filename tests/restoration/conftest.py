"""Priors on 8×8 digits, trained here: once a session, whatever the number of workers.

Four hundred steps, some 10 to 15 seconds of one core. The flow is the same model by a change of
variables; that flows can be trained is shown in `test_training.py` on smaller things.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from filelock import FileLock  # comes with torch
from sklearn.datasets import load_digits
from tests.restoration.flow_of_diffusion import flow_of

from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.prior_file import read_prior_file, save_prior
from setpoint.restoration.priors.prior_training import train_prior
from setpoint.restoration.priors.unet import UNet

TRAINING = 1500


def all_digits() -> torch.Tensor:
    """(1797, 1, 8, 8) in [0, 1], in an order of their own."""
    images = torch.tensor(load_digits().images / 16.0, dtype=torch.float32)[:, None]
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(5))]


@pytest.fixture(scope="session")
def digits() -> torch.Tensor:
    """(1500, 1, 8, 8) in [0, 1]: what the priors are trained on."""
    return all_digits()[:TRAINING]


@pytest.fixture(scope="session")
def held_digits() -> torch.Tensor:
    """(297, 1, 8, 8) in [0, 1]: never trained on."""
    return all_digits()[TRAINING:]


def trained(images: torch.Tensor) -> DiffusionPrior:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        network = UNet(channels=1, width=16, multipliers=(1, 2), blocks=1, attention=(4,), size=8)
    return train_prior(images, network=network, steps=400, batch=32, learning_rate=6e-3, ema=0.99)


@pytest.fixture(scope="session")
def digits_prior(digits: torch.Tensor, tmp_path_factory: pytest.TempPathFactory) -> DiffusionPrior:
    """A diffusion prior of 8×8 digits, R(z) in three steps.

    Trained by the first worker that asks; the others wait and read its file.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    path = Path(shared) / "digits.safetensors"
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            save_prior(trained(digits), path)
    return read_prior_file(path)


@pytest.fixture(scope="session")
def digits_flow(digits_prior: DiffusionPrior) -> FlowPrior:
    """A flow prior of the same digits, three steps of Euler's rule."""
    return flow_of(digits_prior)
