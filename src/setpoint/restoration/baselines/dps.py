"""Diffusion posterior sampling: ancestral steps of the prior, guided by the measurement.

At each time, with x̂_0 = E[x_0 | x_t] and the residual r = y − A(x̂_0), one of two rules:

    norm     x_s = (ancestral step with x̂_0) − ζ/‖r‖ · ∇_{x_t}‖r‖²
             Chung et al. 2023, algorithm 1; knows no noise level,
    level    x̂_0 ← x̂_0 + ζ (1 − ᾱ_t)/√ᾱ_t · ∇_{x_t} log N(y; A(x̂_0), σ² + κ g (1 − ᾱ_t)),
             then the ancestral step: Bayes' rule with the stated σ and a variance for what is not
             known of x_0 yet (as Song et al. 2023), exact for A = 1 and x_0 ~ N(0, 1) with κ = 1.
             g is the mean of the diagonal of AAᵀ, the share of that variance that A lets pass.

The steps of the first rule are per thousandth of the schedule, so ζ means the same at any number of
steps. Blind: the unknowns take gradient steps on ‖r‖² along the way, several samples of an image
sharing them. The mean of several samples estimates the posterior mean, which no single sample can
beat on average in squared error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.options import whole
from setpoint.restoration.baselines.blind_unknowns import Unknowns, residuals
from setpoint.restoration.baselines.denoiser_diffusion import Diffusion, denoiser_of
from setpoint.restoration.baselines.task_and_start import noise_level, passed, rows
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask

RULES = ("norm", "level")
_SCALES = {"norm": 0.2, "level": 1.0}


def dps(
    task: RestorationTask,
    *,
    iterations: int = 500,
    rule: str = "norm",
    scale: float | None = None,
    spread: float = 0.3,
    sigma: float | None = None,
    samples: int = 1,
    unknowns_rate: float = 0.02,
) -> RestorationOutcome:
    """Sample the posterior of a denoiser's prior.

    Parameters
    ----------
    task : RestorationTask
        What is to be restored. Its prior must have ``denoise``.
    iterations : int
        Steps of one sample, each a call of the network and its gradient.
    rule : "norm" or "level"
        How the measurement pulls.
    scale : float, optional
        ζ; 0.2 by default for "norm", 1 for "level".
    spread : float
        κ of the rule "level", in units of half the range, squared.
    sigma : float, optional
        σ of the rule "level", in the units of y; the task's noise by default.
    samples : int
        Samples whose mean is reported.
    unknowns_rate : float
        Rate of the one step of Adam on the unknowns of a blind operator at each time.
    """
    whole("iterations", iterations, 1)
    whole("samples", samples, 1)
    if rule not in RULES:
        raise DataError(f"rule={rule!r} is not known: say one of {', '.join(RULES)}.")
    guide = _Guide(
        task=task,
        diffusion=Diffusion.of(task, denoiser_of(task, "dps", clipped=False), iterations),
        rule=rule,
        scale=_SCALES[rule] if scale is None else scale,
        spread=spread,
        sigma=noise_level(task, sigma) if rule == "level" else None,
        samples=samples,
    )
    steps = len(guide.diffusion.kept)
    task.watch.steps = steps + 1  # the image itself comes last
    unknowns = Unknowns(task, unknowns_rate)
    drawn = guide.sample(unknowns, samples)  # (samples · B, *shape)
    mean = drawn.reshape(samples, -1, *drawn.shape[1:]).mean(0)
    description = "one sample" if samples == 1 else f"the mean of {samples} samples"
    return RestorationOutcome(
        image=mean,
        unknowns=unknowns.value,
        chosen=torch.full((len(mean),), steps, device=mean.device),
        why=[description] * len(mean),
        status=f"{description}, {steps} steps, rule {rule!r}",
    )


class _Guide:
    """Ancestral steps with a pull toward the measurement."""

    def __init__(
        self,
        task: RestorationTask,
        diffusion: Diffusion,
        rule: str,
        scale: float,
        spread: float,
        sigma: Tensor | None,
        samples: int,
    ) -> None:
        self.samples = samples
        self.task, self.diffusion, self.rule = task, diffusion, rule
        self.scale, self.spread, self.sigma = scale, spread, sigma
        self.gain = passed(task) if rule == "level" else None

    def sample(self, unknowns: Unknowns, samples: int) -> Tensor:
        """Several samples for each image, (samples · B, *shape), in the range."""
        diffusion, task = self.diffusion, self.task
        draw = task.generator("dps")
        u = diffusion.start(samples * len(task.y), task.y.real, draw)
        for at in range(len(diffusion.kept)):
            clean, squared, slope = self._look(u, at, unknowns.value)
            u = self._step(u, clean, squared, slope, at, draw)
            clean = diffusion.space.clip(clean)
            unknowns.steps(clean, 1)
            self._tell(at, clean, unknowns.value)
        # the last step of the rule gives x_0 itself, moved by the measurement
        image = diffusion.space.clip(diffusion.space.middle + diffusion.space.half * u)
        self._tell(len(diffusion.kept), image, unknowns.value)
        return image

    def _tell(self, at: int, images: Tensor, unknowns: Tensor | None) -> None:
        """Show the mean of the samples at a step."""
        batch = len(self.task.y)
        mean = images.reshape(-1, batch, *images.shape[1:]).mean(0)
        with torch.no_grad():
            loss = residuals(self.task, images, unknowns).reshape(-1, batch).mean(0)
            residual = self.task.forward.residual(mean, self.task.y, unknowns)
        self.task.watch(at, mean, loss, residual, unknowns=unknowns)

    def _look(self, u: Tensor, at: int, unknowns: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x̂_0 as an image, ‖r‖² (B,) and its gradient in x_t."""
        with torch.enable_grad():
            point = u.detach().requires_grad_()
            clean = self.diffusion.clean(point, at)
            squared = residuals(self.task, clean, unknowns) * self._each(self.task.forward.count)
            (slope,) = torch.autograd.grad(squared.sum(), point)
        return clean.detach(), squared.detach(), slope

    def _step(
        self,
        u: Tensor,
        clean: Tensor,
        squared: Tensor,
        slope: Tensor,
        at: int,
        draw: torch.Generator,
    ) -> Tensor:
        diffusion = self.diffusion
        half, alpha = diffusion.space.half, diffusion.kept[at]
        inside = diffusion.inside(clean)
        if self.rule == "level":
            assert self.sigma is not None
            assert self.gain is not None
            variance = self.sigma**2 + self.spread * self.gain * half**2 * (1 - alpha)
            pull = slope / rows(2 * self._each(variance), slope)
            inside = inside - (self.scale * (1 - alpha) / alpha**0.5) * pull
            return diffusion.ancestor(u, self._bounded(inside), at, draw)
        after = diffusion.ancestor(u, self._bounded(inside), at, draw)
        # per thousandth of the schedule, and with r in units of half the range
        stride = self.scale * 1000 / len(diffusion.kept)
        length = half * squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()
        return after - stride * slope / rows(length, slope)

    def _each(self, values: Tensor) -> Tensor:
        """(B,) for every sample, (samples · B,)."""
        return values.expand(len(self.task.y)).repeat(self.samples)

    def _bounded(self, inside: Tensor) -> Tensor:
        return inside.clamp(-1, 1) if self.diffusion.space.bounded else inside
