"""What is searched over: seeds, and the operator's unknowns beside them.

A row of the search is v = (z, s·u): a seed z and, where the operator is blind, its unknowns u in
units s that make a step in them worth one in z. Several copies of the batch are searched at once,
each from a seed of its own; the answer is the mean of their images, which comes nearer to the mean
of all images that explain y than any one of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration import shell as shells
from setpoint.restoration.noise_level import estimate_sigma
from setpoint.restoration.task import Task

#: A unit of the search is this many of an unknown: the logits of a kernel move that much faster.
UNIT = 4.0
#: The least share of the range's width that an estimated noise level may have.
FLOOR = 2e-3


class Search:
    """The rows of a search: copies · B of them, row r being of image r mod B.

    Parameters
    ----------
    task : Task
        What is restored.
    copies : int
        How often each image is searched for.
    shell : "project" or None
        Whether a seed is brought to the norm √d before it is used.
    """

    def __init__(self, task: Task, copies: int = 1, shell: str | None = None) -> None:
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise DataError(f"copies={copies!r} must be a whole number, 1 or more.")
        self.task, self.copies, self.shell = task, copies, shell
        self.batch = len(task.y)
        self.free = math.prod(task.prior.seed_shape)
        self.like = task.y.real

    def start(self, seeds: Tensor) -> Tensor:
        """Rows (copies · B, n) from seeds, unknowns of their own at their start."""
        flat = seeds.reshape(len(seeds), -1).to(self.like.dtype)
        if not self.task.forward.per_image:
            return flat
        unknowns = self.task.forward.start(self.batch, self.like)
        assert unknowns is not None
        return torch.cat([flat, unknowns.repeat(self.copies, 1) / UNIT], dim=1)

    def shared(self) -> Tensor | None:
        """Unknowns that all rows share, (1, n): the parameters of a module."""
        forward = self.task.forward
        return None if forward.per_image else forward.start(self.batch, self.like)

    def refuse_shared(self) -> None:
        """Rows that share unknowns are no problems of their own."""
        if self.task.forward.blind and not self.task.forward.per_image:
            raise DataError(
                "the operator has parameters of its own, which the whole batch shares: search "
                'with method="dmplug" and optimiser="adam", or freeze them with '
                "operator.requires_grad_(False)."
            )

    def pairs(self) -> Tensor:
        """Seeds ±z in turn, (copies · B, *seed_shape): their mean is 0 where copies is even."""
        half = self.task.seeds((self.copies + 1) // 2)
        return torch.cat([half, -half])[: self.copies * self.batch]

    def seed(self, v: Tensor) -> Tensor:
        """The seeds of rows, (N, *seed_shape)."""
        z = v[:, : self.free].reshape(-1, *self.task.prior.seed_shape)
        return shells.project(z) if self.shell == "project" else z

    def unknowns(self, v: Tensor) -> Tensor | None:
        """The operator's unknowns of rows."""
        return v[:, self.free :] * UNIT if self.task.forward.per_image else None

    def image(self, v: Tensor, rows: Tensor | None = None) -> Tensor:
        """The images of rows, (N, *shape); ``rows`` says which ones v holds."""
        return self.task.prior(self.seed(v))

    def residual(self, v: Tensor, image: Tensor, rows: Tensor) -> Tensor:
        """Mean squared residuals of rows, (N,)."""
        return self.task.forward.residual_of(image, self.task.y, rows, self.unknowns(v))

    def mean(self, images: Tensor) -> Tensor:
        """The mean over the copies, (B, …); a copy that is not finite is left out."""
        apart = images.reshape(self.copies, self.batch, *images.shape[1:])
        if self.copies == 1:
            return apart[0]
        finite = apart.flatten(2).isfinite().all(dim=2)
        weight = finite.to(apart.dtype) / finite.sum(dim=0).clamp(min=1)
        weight = weight.reshape(self.copies, self.batch, *([1] * (images.ndim - 1)))
        return (torch.where(weight > 0, apart, torch.zeros_like(apart)) * weight).sum(dim=0)

    def first(self, values: Tensor, least: Tensor) -> Tensor:
        """Of each image the copy with the least of ``least`` (copies · B,), (B, …)."""
        order = torch.nan_to_num(least, nan=math.inf).reshape(self.copies, self.batch)
        best = order.argmin(dim=0)
        apart = values.reshape(self.copies, self.batch, *values.shape[1:])
        return apart[best, torch.arange(self.batch, device=values.device)]


def variance(task: Task) -> tuple[Tensor, str]:
    """Mean squared noise over the observed entries of each image, (B,), and where it is from."""
    y, seen = task.y, task.forward.observed
    if task.noise is not None:
        spread = task.noise.variance_seen(y).expand(y.shape)
        if seen is not None:
            spread = spread * seen
        total = spread.flatten(1).sum(1) / task.forward.count
        return total.clamp(min=torch.finfo(total.dtype).tiny), "as stated"
    low, high = task.prior.range
    width = high - low if math.isfinite(high - low) else 1.0
    level = estimate_sigma(y, None if seen is None else seen > 0).clamp(min=FLOOR * width)
    return level.to(y.real) ** 2, "estimated from y"
