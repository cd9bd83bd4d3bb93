"""Plug-and-play: the prior enters through its denoiser D(·, s) alone.

min_x ‖A(x) − y‖²/(2σ²) − log p(x), split into x and v with a multiplier w (ADMM, Venkatakrishnan
et al. 2013), or without one (half-quadratic splitting, Zhang et al. 2021). With 1/ρ = s_k²/λ:

    x ← argmin ‖A(x) − y‖² + ρσ² ‖x − (v − w)‖²     data
    v ← D(x + w, s_k)                                prior
    w ← w + x − v                                    ADMM only

s_k falls geometrically. With s fixed, λ = 1 and the denoiser of a Gaussian prior the fixed point of
ADMM is the posterior mean. The data step is one batch of conjugate gradients for a linear A, a few
damped Gauss–Newton rounds for any other. Blind: the unknowns take slow gradient steps on
‖A(v; u) − y‖² after each denoising, from a broad kernel on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.options import number, whole
from setpoint.restoration.baselines.blind_unknowns import Unknowns
from setpoint.restoration.baselines.denoiser_diffusion import denoiser_of
from setpoint.restoration.baselines.least_squares import damped_least_squares
from setpoint.restoration.baselines.task_and_start import (
    first_image,
    is_linear,
    noise_level,
    seen_of,
    space_of,
)
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask

SPLITTINGS = ("hqs", "admm")
_FIRST = 1.5  # the first denoising leaves almost nothing of its input
_DATA_STEPS = 15  # of conjugate gradients, in each data step
_UNKNOWNS_STEPS = 3  # of Adam, on the unknowns of a blind operator in each iteration
_BLIND = 0.3  # a kernel fitted to an image of the denoiser's own making is of no use


def pnp(
    task: RestorationTask,
    *,
    iterations: int = 60,
    splitting: str = "admm",
    strength: float = 0.5,
    first: float | None = None,
    last: float = 1.0,
    sigma: float | None = None,
    rounds: int = 3,
    unknowns_rate: float = 0.02,
) -> RestorationOutcome:
    """Restore with a denoiser.

    Parameters
    ----------
    task : RestorationTask
        What is to be restored. Its prior must have ``denoise``.
    iterations : int
        Pairs of a data step and a denoising.
    splitting : "hqs" or "admm"
        Without or with a multiplier.
    strength : float
        λ, of the prior.
    first : float, optional
        Deviation s of the first denoising, in units of half the range; 1.5 by default, 0.3 where a
        kernel is unknown.
    last : float
        Deviation of the last one, in units of the noise level. Above 1 the image is smoother and
        nearer to the posterior mean.
    sigma : float, optional
        σ in the units of y; the task's noise by default.
    rounds : int
        Linearisations of a data step where A is not linear.
    unknowns_rate : float
        Adam's rate on the unknowns of a blind operator.
    """
    whole("iterations", iterations, 1)
    number("strength", strength, 0, open_low=True)
    if first is not None:
        number("first", first, 0, open_low=True)
    number("last", last, 0, open_low=True)
    if splitting not in SPLITTINGS:
        raise DataError(f"splitting={splitting!r} is not known: say {' or '.join(SPLITTINGS)}.")
    prior, space, y = denoiser_of(task, "pnp"), space_of(task), task.y
    level = noise_level(task, sigma)
    first = first or (_BLIND if task.forward.blind else _FIRST)
    spreads = _falling(last * level, first * space.half, iterations)
    unknowns = Unknowns(task, unknowns_rate)
    v = first_image(task, unknowns.value)
    w = torch.zeros_like(v)
    rounds = 1 if is_linear(task) else rounds
    before = spreads[0]
    task.watch.steps = iterations
    for step, spread in enumerate(spreads):
        w = w * (spread / before).square().reshape(-1, *([1] * (w.ndim - 1)))  # w is scaled by 1/ρ
        operator, seen = seen_of(task, unknowns.value)
        x = damped_least_squares(
            operator,
            seen,
            v - w,
            strength * (level / spread) ** 2,
            rounds=rounds,
            steps=_DATA_STEPS,
            start=v,
        )
        with torch.no_grad():
            v = prior.denoise(x + w, spread)
            if splitting == "admm":
                w = w + x - v
            unknowns.steps(v, _UNKNOWNS_STEPS)
            residual = task.forward.residual(v, y, unknowns.value)
        task.watch(step, v, residual, residual, unknowns=unknowns.value)
        before = spread
    return RestorationOutcome(
        image=space.clip(v),
        unknowns=unknowns.value,
        chosen=torch.full((len(v),), iterations - 1, device=v.device),
        why=["the last denoised image"] * len(v),
        status=f"{iterations} plug-and-play steps ({splitting})",
    )


def _falling(last: Tensor, first: float, count: int) -> list[Tensor]:
    """``count`` deviations (B,), geometrically from the first to the last."""
    start = torch.full_like(last, first)
    end = last.clamp(max=first)
    parts = [step / max(count - 1, 1) for step in range(count)]
    return [start * (end / start) ** part for part in parts]
