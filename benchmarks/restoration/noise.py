"""Four kinds of noise by three levels, nothing retuned, the level stated or not.

The levels of a kind are one batch, as the operator is the same. Ours are not told the level. DPS is
told a Gaussian of ``stated`` times the root mean square of what the noise really adds to that
image, the best that can be said of noise in one number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.restoration.data import images
from benchmarks.restoration.shelf import Found, Job
from benchmarks.restoration.tasks import SPECS
from benchmarks.restoration.ways import WAYS
from setpoint.restoration.image_scores import psnr
from setpoint.restoration.measurement.noise import Gaussian, Impulse, Shot, Speckle
from setpoint.restoration.operators import Inpaint, as_operator
from setpoint.restoration.restore import restore

#: kind -> how it is made and three levels, from weak to strong
KINDS: dict[str, tuple[Callable[[float], Any], tuple[float, float, float]]] = {
    "gaussian": (Gaussian, (0.02, 0.05, 0.1)),
    "impulse": (Impulse, (0.01, 0.03, 0.1)),
    "shot": (Shot, (1000.0, 200.0, 50.0)),
    "speckle": (Speckle, (0.05, 0.1, 0.2)),
}
SETTINGS = tuple((kind, level) for kind, (_, levels) in KINDS.items() for level in levels)
STATED = (0.5, 1.0, 2.0, 4.0)  #: times the true level, for those that are told one
IMAGES = 50
TASK = "inpaint"


def measured(task: str, kind: str, truth: Tensor) -> tuple[Tensor, Any, Tensor]:
    """(3 N, …) measurements, their operator, and the true root mean square of the noise, (3 N,).

    An image has the same mask in all settings.
    """
    operator = as_operator(SPECS[task], shape=tuple(truth.shape[1:]), seed=0, batch=len(truth))
    clean = operator(truth)
    observed = getattr(operator, "observed", None)
    rows, levels = [], []
    make, amounts = KINDS[kind]
    for amount in amounts:
        law = make(amount)
        seed = 100 + SETTINGS.index((kind, amount))
        rows.append(law.add(clean, seed, observed=observed))
        variance = law.variance(clean)
        seen = torch.ones_like(clean) if observed is None else observed.expand_as(clean).to(clean)
        mean = (variance * seen).flatten(1).sum(1) / seen.flatten(1).sum(1)
        levels.append(mean.sqrt())
    if isinstance(operator, Inpaint):
        operator = Inpaint(operator.mask.repeat(len(amounts), 1, 1, 1))
    return torch.cat(rows), operator, torch.cat(levels)


def run(job: Job, device: str, prior: Any) -> Found:
    """One way on one kind; ``stated`` among the options is its factor, None for unknown."""
    truth = images(job.data, "test", job.images)
    options = dict(job.options)
    stated, kind = options.pop("stated"), options.pop("kind")
    amounts = KINDS[kind][1]
    y, operator, level = measured(job.task, kind, truth)
    given = None if stated is None else Gaussian((stated * level).to(device))
    begun = time.perf_counter()
    restored = restore(
        y.to(device),
        operator,
        prior,
        noise=given,
        method=WAYS[job.way].method,
        **options,
    )
    image = restored.image.clamp(*prior.range).cpu()
    seconds = time.perf_counter() - begun
    scores = psnr(image, truth.repeat(len(amounts), 1, 1, 1), prior.range)
    rows = scores.reshape(len(amounts), -1).tolist()
    return {
        "stated": stated,
        "settings": [
            {"kind": kind, "level": amount, "psnr": [round(v, 3) for v in row]}
            for amount, row in zip(amounts, rows, strict=True)
        ],
        "seconds": seconds,
        "status": restored.status,
    }
