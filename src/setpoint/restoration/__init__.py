"""Inverse problems with generative priors, as programs under constraints.

y = A(x) + noise is given, and x is sought among the images x = prior(z) of a generative model:
``restore(y, operator, prior)``. A prior maps a seed to an image, an operator is any differentiable
function; value range and noise units are declared, never guessed. ``evaluate`` scores a record
against the truth, which no method sees.
"""

from setpoint.restoration.compare import Compared, compare
from setpoint.restoration.evaluate import RestorationEvaluation, evaluate
from setpoint.restoration.image_scores import manifold_distance, psnr, ssim
from setpoint.restoration.measurement.noise import Gaussian, Impulse, Noise, Shot, Speckle, as_noise
from setpoint.restoration.measurement.noise_level import estimate_sigma
from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.operators import (
    OPERATORS,
    BlindBlur,
    Blur,
    Downsample,
    Inpaint,
    PhaseRetrieval,
    as_operator,
    box_inpaint,
    gaussian_blur,
    motion_blur,
    random_inpaint,
)
from setpoint.restoration.priors import (
    DiffusionPrior,
    FlowPrior,
    Generator,
    LinearPrior,
    Prior,
    UNet,
    load_prior,
    prior_card,
    save_prior,
    train_prior,
)
from setpoint.restoration.restoration_record import Restored
from setpoint.restoration.restore import METHODS, restore
from setpoint.restoration.video import RestoredVideo, restore_video, warp, warping_error

__all__ = [
    "METHODS",
    "OPERATORS",
    "BlindBlur",
    "Blur",
    "Compared",
    "DiffusionPrior",
    "Downsample",
    "RestorationEvaluation",
    "FlowPrior",
    "Gaussian",
    "Generator",
    "Impulse",
    "Inpaint",
    "LinearPrior",
    "Noise",
    "PhaseRetrieval",
    "Prior",
    "Restored",
    "RestoredVideo",
    "Shot",
    "Speckle",
    "UNet",
    "WindowedVariance",
    "as_noise",
    "as_operator",
    "box_inpaint",
    "compare",
    "estimate_sigma",
    "evaluate",
    "gaussian_blur",
    "load_prior",
    "manifold_distance",
    "motion_blur",
    "prior_card",
    "psnr",
    "random_inpaint",
    "restore",
    "restore_video",
    "save_prior",
    "ssim",
    "train_prior",
    "warp",
    "warping_error",
]


def __dir__() -> list[str]:
    return sorted(__all__)
