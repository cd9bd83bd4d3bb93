"""Maps from seeds to images: diffusion models, flows, anything differentiable."""

from setpoint.restoration.priors.bundled import load_prior, prior_card
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.linear_gaussian import LinearPrior
from setpoint.restoration.priors.prior import Generator, Prior
from setpoint.restoration.priors.prior_file import save_prior
from setpoint.restoration.priors.prior_training import train_prior
from setpoint.restoration.priors.unet import UNet

__all__ = [
    "DiffusionPrior",
    "FlowPrior",
    "Generator",
    "LinearPrior",
    "Prior",
    "UNet",
    "load_prior",
    "prior_card",
    "save_prior",
    "train_prior",
]
