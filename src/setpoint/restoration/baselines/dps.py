"""Diffusion posterior sampling: ancestral steps of the prior, guided by the measurement.

At each time, with x̂_0 = E[x_0 | x_t] and the residual r = y − A(x̂_0), one of two rules:

    norm     x_s = (ancestral step with x̂_0) − ζ/‖r‖ · ∇_{x_t}‖r‖²
             Chung et al. 2023, algorithm 1; knows no noise level,
    level    x̂_0 ← x̂_0 + ζ (1 − ᾱ_t)/√ᾱ_t · ∇_{x_t} log N(y; A(x̂_0), σ² + κ g (1 − ᾱ_t)),
             then the ancestral step: Bayes' rule with the stated σ and a variance for what is not
             known of x_0 yet (as Song et al. 2023), exact for A = 1 and x_0 ~ N(0, 1) with κ = 1.
             g is the mean of the diagonal of AAᵀ, the share of that variance that A lets pass.

The steps of the first rule are per thousandth of the schedule, so ζ means the same at any number of
steps. Blind: the unknowns take gradient steps on ‖r‖² along the way. The mean of several samples
estimates the posterior mean, which no single sample can beat on average in squared error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.baselines.diffused import Diffusion, denoiser_of
from setpoint.restoration.baselines.ground import noise_level, passed, rows, whole_number
from setpoint.restoration.baselines.unknowns import Unknowns
from setpoint.restoration.task import Outcome, Task

RULES = ("norm", "level")


def dps(
    task: Task,
    *,
    iterations: int = 500,
    rule: str = "norm",
    scale: float | None = None,
    spread: float = 1.0,
    sigma: float | None = None,
    samples: int = 1,
    unknowns_rate: float = 0.05,
    unknowns_steps: int = 1,
) -> Outcome:
    """Sample the posterior of a denoiser's prior.

    Parameters
    ----------
    task : Task
        What is to be restored. Its prior must have ``denoise``.
    iterations : int
        Steps of one sample, each a call of the network and its gradient.
    rule : "norm" or "level"
        How the measurement pulls.
    scale : float, optional
        ζ; 1 by default.
    spread : float
        κ of the rule "level", in units of half the range, squared.
    sigma : float, optional
        σ of the rule "level", in the units of y; the task's noise by default.
    samples : int
        Samples whose mean is reported.
    unknowns_rate, unknowns_steps
        Adam's rate and steps, at each time, on the unknowns of a blind operator.
    """
    whole_number("iterations", iterations)
    whole_number("samples", samples)
    if rule not in RULES:
        raise DataError(f"rule={rule!r} is not known: say one of {', '.join(RULES)}.")
    guide = _Guide(
        task,
        Diffusion.of(task, denoiser_of(task, "dps", clipped=False), iterations),
        rule,
        1.0 if scale is None else scale,
        spread,
        noise_level(task, sigma) if rule == "level" else None,
    )
    task.watch.steps = samples * len(guide.diffusion.kept)
    draw, done = task.generator("dps"), torch.zeros((), device=task.y.device)
    found: tuple[Tensor, Tensor | None] | None = None
    for sample in range(samples):
        unknowns = Unknowns(task, task.y, unknowns_rate)
        image = guide.sample(unknowns, unknowns_steps, draw, sample, done)
        done = done + image
        with torch.no_grad():
            residual = task.forward.residual(image, task.y, unknowns.value)
        found = _fitter(found, residual, unknowns.value)
    mean = done / samples
    last = samples * len(guide.diffusion.kept) - 1
    told = "one sample" if samples == 1 else f"the mean of {samples} samples"
    return Outcome(
        image=mean,
        unknowns=None if found is None else found[1],
        chosen=torch.full((len(mean),), last, device=mean.device),
        why=[told] * len(mean),
        status=f"{told} of {len(guide.diffusion.kept)} steps, rule {rule!r}",
    )


def _fitter(
    found: tuple[Tensor, Tensor | None] | None, residual: Tensor, unknowns: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Residual and unknowns of the sample that fits best, row by row."""
    if found is None or unknowns is None or found[1] is None:
        return residual, unknowns
    better = residual < found[0]
    if len(unknowns) < len(residual):  # shared by the batch
        better = (residual.sum() < found[0].sum()).expand(len(residual))
        return torch.where(better, residual, found[0]), torch.where(better[0], unknowns, found[1])
    return (
        torch.where(better, residual, found[0]),
        torch.where(better[:, None], unknowns, found[1]),
    )


class _Guide:
    """Ancestral steps with a pull toward the measurement."""

    def __init__(
        self,
        task: Task,
        diffusion: Diffusion,
        rule: str,
        scale: float,
        spread: float,
        sigma: Tensor | None,
    ) -> None:
        self.task, self.diffusion, self.rule = task, diffusion, rule
        self.scale, self.spread, self.sigma = scale, spread, sigma
        self.gain = passed(task) if rule == "level" else torch.ones_like(task.forward.count)

    def sample(
        self, unknowns: Unknowns, steps: int, draw: torch.Generator, number: int, done: Tensor
    ) -> Tensor:
        """One sample for each image, (B, *shape), in the range."""
        diffusion, task = self.diffusion, self.task
        u = diffusion.start(task.y, draw)
        count = len(diffusion.kept)
        clean = u
        for at in range(count):
            clean, squared, slope = self._look(u, at, unknowns.value)
            u = self._step(u, clean, squared, slope, at, draw)
            clean = diffusion.space.clip(clean)
            unknowns.steps(clean, steps)
            residual = squared / task.forward.count
            shown = (done + clean) / (number + 1)
            task.watch(number * count + at, shown, residual, residual)
        # the last step of the rule gives x_0 itself, moved by the measurement
        image = diffusion.space.middle + diffusion.space.half * u
        return diffusion.space.clip(image)

    def _look(self, u: Tensor, at: int, unknowns: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x̂_0 as an image, ‖r‖² (B,) and its gradient in x_t."""
        with torch.enable_grad():
            point = u.detach().requires_grad_()
            clean = self.diffusion.clean(point, at)
            squared = self.task.forward.residual(clean, self.task.y, unknowns)
            squared = squared * self.task.forward.count
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
        half, kept = diffusion.space.half, diffusion.kept[at]
        inside = diffusion.inside(clean)
        if self.rule == "level":
            assert self.sigma is not None
            variance = self.sigma**2 + self.spread * self.gain * half**2 * (1 - kept)
            pull = slope / rows(2 * variance, slope)
            inside = inside - (self.scale * (1 - kept) / kept**0.5) * pull
            return diffusion.ancestor(u, self._bounded(inside), at, draw)
        after = diffusion.ancestor(u, self._bounded(inside), at, draw)
        # per thousandth of the schedule, and with r in units of half the range
        stride = self.scale * 1000 / len(diffusion.kept)
        length = half * squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()
        return after - stride * slope / rows(length, slope)

    def _bounded(self, inside: Tensor) -> Tensor:
        return inside.clamp(-1, 1) if self.diffusion.space.bounded else inside
