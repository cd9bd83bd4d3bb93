"""One call from a measurement to an image: ``restore(y, operator, prior)``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import Argument, DataError
from setpoint._core.options import checked_options
from setpoint._core.words import did_you_mean
from setpoint.restoration.baselines import deep_image_prior, dps, nearest, pnp, total_variation
from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.input_checks import check, prior_range, read_measurement
from setpoint.restoration.measurement.iterate_history import Callback, IterateHistory
from setpoint.restoration.measurement.noise import as_noise
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.methods.constrained_inversion import constrained
from setpoint.restoration.methods.dmplug import dmplug
from setpoint.restoration.methods.fmplug import fmplug
from setpoint.restoration.operators import as_operator
from setpoint.restoration.operators.image_tensors import as_real
from setpoint.restoration.priors.prior import Prior
from setpoint.restoration.restoration_record import Restored

#: Name -> method. The first three are ours, the others are what they are held against.
METHODS: dict[str, Callable[..., RestorationOutcome]] = {
    "dmplug": dmplug,
    "constrained": constrained,
    "fmplug": fmplug,
    "tv": total_variation,
    "nearest": nearest,
    "dip": deep_image_prior,
    "dps": dps,
    "pnp": pnp,
}


def restore(
    y: Tensor,
    operator: Any,
    prior: Prior,
    *,
    noise: Any = None,
    method: str = "dmplug",
    seed: int = 0,
    trail: int = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Restored:
    """Find the image behind a measurement y = A(x) + noise.

    Parameters
    ----------
    y : torch.Tensor
        (B, …) measurements, one row an image. Complex ones count as two, their real and imaginary
        parts, each with noise of the stated level.
    operator : callable or str
        A, any differentiable function (B, *shape) -> (B, …), or a name such as ``"inpaint:0.7"``
        (see :func:`as_operator`). A module with trainable parameters is blind: they are found with
        the images.
    prior : Prior
        From seeds to images; its ``range`` is the value range of x.
    noise : float, str or Noise, optional
        A Gaussian standard deviation in the units of y, or a law such as ``"shot:100"``. None
        where it is unknown: methods that need a level estimate it from y.
    method : str
        One of "dmplug", "constrained", "fmplug", "tv", "nearest", "dip", "dps", "pnp".
    seed : int
        Of all that is drawn.
    trail : int
        Keep every so many-th iterate, for :func:`evaluate` to find the oracle one; 0 keeps none.
    callback : callable, optional
        ``f(step, steps, residual)`` after every step, those of a method's start counted apart.
    **options
        Of the method; see its docstring.

    Returns
    -------
    Restored
        The selected images, with the reason for each.

    Examples
    --------
    The posterior mode of a Gaussian prior, x = W z, behind y = x + noise:

    >>> import torch
    >>> from setpoint.restoration import LinearPrior, restore
    >>> eye, zero = torch.eye(4).double(), torch.zeros(4).double()
    >>> prior = LinearPrior(eye, zero, shape=(1, 2, 2))
    >>> y = torch.tensor([[[[2.0, 1.0], [-1.0, -2.0]]]], dtype=torch.float64)
    >>> found = restore(y, lambda x: x, prior, noise=1.0, regulariser="seed", optimiser="lbfgs")
    >>> found.image.round(decimals=4).tolist()
    [[[[1.0, 0.5], [-0.5, -1.0]]]]
    """
    if method not in METHODS:
        hint = did_you_mean(method, METHODS, f"say one of {', '.join(METHODS)}")
        raise DataError(
            "{argument} is not known; {known}", argument=Argument("method", method), known=hint
        )
    run = METHODS[method]
    checked_options(method, run, options)
    y = read_measurement(y)
    prior_range(prior)
    with torch.inference_mode(False), torch.enable_grad():
        operator = as_operator(
            operator, shape=prior.shape, seed=seed, batch=len(y), range=prior.range
        )
        law = as_noise(noise, prior.range)
        check(y, operator, prior, law)
        watch = IterateHistory(trail, callback)
        forward = Forward(operator, y, shape=tuple(prior.shape), range=prior.range)
        task = RestorationTask(as_real(y), forward, prior, law, seed, watch)
        begun = time.perf_counter()
        try:
            outcome = run(task, **options)
        except KeyboardInterrupt:
            if watch.last is None:
                raise
            outcome = _cut_short(task)
        return _record(task, outcome, method, time.perf_counter() - begun)


def _cut_short(task: RestorationTask) -> RestorationOutcome:
    """The last iterate of a method that keeps none of its own."""
    image = task.watch.last
    assert image is not None
    words = "the last iterate before the interrupt"
    return RestorationOutcome(
        image,
        unknowns=task.watch.unknowns,
        why=[words] * len(image),
        status=f"Interrupted: {words}.",
        interrupted=True,
    )


def _said(
    outcome: RestorationOutcome, history: dict[str, Tensor], batch: int
) -> tuple[list[str], str]:
    """The words of the method, and whether it met numbers that are not finite."""
    why = list(outcome.why) or ["the last iterate"] * batch
    bad = ~history["residual"].isfinite() if history else torch.zeros(0, batch, dtype=torch.bool)
    met = [int(count) for count in bad.sum(dim=0)]
    why = [
        f"{words}; the residual was not finite at {count} of {len(bad)} steps" if count else words
        for words, count in zip(why, met, strict=True)
    ]
    status = outcome.status
    if any(met):
        number = sum(count > 0 for count in met)
        status = (
            f"{status} The residual of {number} of {batch} images was NaN or infinite on the way."
        )
    return why, status.strip()


def _record(
    task: RestorationTask, outcome: RestorationOutcome, method: str, seconds: float
) -> Restored:
    history = task.watch.history()
    steps = len(history["loss"]) if history else 0
    image = outcome.image.detach()
    wrong = ~image.flatten(1).isfinite().all(dim=1)
    if bool(wrong.any()):
        numbers = ", ".join(str(int(i)) for i in wrong.nonzero()[:5, 0])
        raise DataError(
            f"{method} ended without a finite image for {int(wrong.sum())} of {len(image)} "
            f"measurements (number {numbers}): look whether the operator or the prior overflows, "
            "or lower learning_rate."
        )
    chosen = outcome.chosen
    if chosen is None:
        chosen = torch.full((len(image),), max(steps - 1, 0), device=image.device)
    with torch.no_grad():
        unknowns = outcome.unknowns
        if unknowns is None and task.forward.blind:
            unknowns = task.forward.start(len(image), task.y.real)
        residual = task.forward.residual(image, task.y, unknowns).sqrt()
    trail, at = task.watch.images()
    why, status = _said(outcome, history, len(image))
    return Restored(
        image=image,
        seed=None if outcome.seed is None else outcome.seed.detach(),
        unknowns=None if outcome.unknowns is None else outcome.unknowns.detach(),
        chosen=chosen.to(torch.long),
        why=why,
        residual=residual,
        history=history,
        trail=trail,
        trail_steps=at,
        method=method,
        status=status,
        seconds=seconds,
        operator=task.forward.module(outcome.unknowns),
        shape=tuple(task.prior.shape),
        range=task.prior.range,
        interrupted=outcome.interrupted,
    )
