"""Task of a method, and its outcome.

A method is a function ``method(task, *, options…) -> RestorationOutcome``. It sees the measurement,
the operator and the prior; never the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.random_streams import normal_like, stream
from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.noise import Noise
from setpoint.restoration.measurement.noise_level import estimate_sigma
from setpoint.restoration.priors.prior import Prior


@dataclass(frozen=True, eq=False)
class RestorationTask:
    """One measured batch, ready to be restored.

    Attributes
    ----------
    y : torch.Tensor
        (B, …) the measurements.
    forward : Forward
        The operator, with its residual and its unknowns.
    prior : Prior
        From seeds to images.
    noise : Noise or None
        The law of the noise in y; None where it is unknown.
    seed : int
        Of all that is drawn.
    watch : IterateHistory
        To be told every iterate.
    """

    y: Tensor
    forward: Forward
    prior: Prior
    noise: Noise | None
    seed: int
    watch: IterateHistory

    def generator(self, purpose: str = "method") -> torch.Generator:
        """Random numbers for one purpose, on the device of y."""
        return stream(self.seed, purpose, self.y.device)

    def estimated_sigma(self) -> Tensor:
        """σ̂ of each image's noise, (B,), read off y; a sentence where y is no image."""
        if self.forward.parts or getattr(self.forward.operator, "output", "") == "other":
            raise DataError(
                "the noise level is estimated from a measurement that looks like an image, and "
                "this operator gives none: state it, as in noise=0.02"
            )
        seen = self.forward.observed
        return estimate_sigma(self.y, None if seen is None else seen > 0).to(self.y)

    def seeds(self, copies: int = 1) -> Tensor:
        """Starts z ~ N(0, I), (copies · B, *seed_shape)."""
        like = self.y.real.new_zeros(len(self.y), *self.prior.seed_shape)
        drawn = [normal_like(like, self.seed, f"seed {copy}") for copy in range(copies)]
        return torch.cat(drawn)


@dataclass(frozen=True, eq=False)
class RestorationOutcome:
    """What a method found.

    Attributes
    ----------
    image : torch.Tensor
        (B, *shape) the selected iterates.
    seed, unknowns : torch.Tensor, optional
        What they were made of.
    chosen : torch.Tensor, optional
        (B,) the step of each; the last one by default.
    why : list of str
        For each image the rule that chose it.
    status : str
        One sentence.
    interrupted : bool
        Whether the method was told to stop before its time.
    state : object, optional
        To go on from.
    """

    image: Tensor
    seed: Tensor | None = None
    unknowns: Tensor | None = None
    chosen: Tensor | None = None
    why: list[str] = field(default_factory=list)
    status: str = ""
    interrupted: bool = False
    state: Any = None
