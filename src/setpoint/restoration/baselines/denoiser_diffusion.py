"""A prior's denoiser seen as a diffusion: x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε in units of the range.

Any prior with ``denoise`` will do, also a flow: x_t/√ᾱ_t is the clean image with noise of the
deviation √((1 − ᾱ_t)/ᾱ_t), which is all a denoiser wants to know.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import Argument, KindError
from setpoint.restoration.baselines.task_and_start import Space, space_of
from setpoint.restoration.measurement.restoration_task import RestorationTask
from setpoint.restoration.priors.noise_schedule import cosine, timesteps


def denoiser_of(task: RestorationTask, method: str, *, clipped: bool = True) -> Any:
    """The task's prior, which must have ``denoise``.

    Parameters
    ----------
    task : RestorationTask
        The task.
    method : str
        Who asks, for the sentence.
    clipped : bool
        Whether a prior that clips what it gives may do so. A clipped pixel has no gradient.
    """
    prior: Any = task.prior
    if not callable(getattr(prior, "denoise", None)):
        raise KindError(
            "{argument} needs a prior with denoise(x, sigma), the mean of the clean image given a "
            "noisy one; {prior} has none. Diffusion and flow priors do.",
            argument=Argument("method", method),
            prior=type(prior).__name__,
        )
    if not clipped and getattr(prior, "clip", False) is True:
        prior = copy.copy(prior)  # the network is shared, the caller's prior stays as it is
        prior.clip = False
    return prior


@dataclass(frozen=True)
class Diffusion:
    """The times a sampler visits and the maps between its units and the image's.

    Attributes
    ----------
    prior : object
        With ``denoise``.
    space : Space
        Shape and range of the images.
    kept : tuple of float
        ᾱ at each time visited, from nearly 0 to nearly 1.
    """

    prior: Any
    space: Space
    kept: tuple[float, ...]

    @classmethod
    def of(cls, task: RestorationTask, prior: Any, steps: int) -> Diffusion:
        """Evenly over the prior's own schedule, else over a cosine one."""
        table = getattr(prior, "alpha_bar", None)
        table = cosine(1000) if table is None else table.double().cpu()
        steps = min(steps, len(table))
        times = timesteps(len(table), steps, "trailing")
        return cls(prior, space_of(task), tuple(float(table[t]) for t in times))

    def start(self, count: int, like: Tensor, draw: torch.Generator) -> Tensor:
        """Pure noise, (count, *shape), of the dtype and device of ``like``."""
        shape = (count, *self.space.shape)
        return torch.randn(shape, dtype=like.dtype, device=like.device, generator=draw)

    def clean(self, u: Tensor, at: int) -> Tensor:
        """E[x_0 | x_t = u] as an image, at the ``at``-th time visited."""
        alpha = self.kept[at]
        image = self.space.middle + (self.space.half / alpha**0.5) * u
        return self.prior.denoise(image, self.space.half * ((1 - alpha) / alpha) ** 0.5)

    def inside(self, image: Tensor) -> Tensor:
        """An image in the units of x_0."""
        return (image - self.space.middle) / self.space.half

    def ancestor(self, u: Tensor, clean: Tensor, at: int, draw: torch.Generator) -> Tensor:
        """A draw of the next x_s given x_t and x_0, in the units of x_0; x_0 itself at the end.

        mean (√ᾱ_s β x_0 + √α (1 − ᾱ_s) x_t)/(1 − ᾱ_t), variance β (1 − ᾱ_s)/(1 − ᾱ_t) with
        α = ᾱ_t/ᾱ_s and β = 1 − α (Ho et al. 2020, equation 7).
        """
        if at + 1 == len(self.kept):
            return clean
        now, after = self.kept[at], self.kept[at + 1]
        ratio = now / after
        mean = ((after**0.5 * (1 - ratio)) * clean + (ratio**0.5 * (1 - after)) * u) / (1 - now)
        noise = torch.randn(u.shape, dtype=u.dtype, device=u.device, generator=draw)
        return mean + ((1 - ratio) * (1 - after) / (1 - now)) ** 0.5 * noise
