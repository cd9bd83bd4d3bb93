"""Variables of the search: seeds, and the operator's unknowns beside them.

A row of the search is v = (z, s·u): a seed z and, where the operator is blind, its unknowns u in
units s that make a step in them worth one in z. Several copies of the batch are searched at once,
each from a seed of its own; the answer is the mean of the images that explain y, which comes nearer
to the mean of all images that do than any one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import Argument, DataError
from setpoint._core.options import whole
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.measurement.restoration_task import RestorationTask
from setpoint.restoration.priors.prior import column

# Seeds stay where seeds are: ‖z‖ of z ~ N(0, I) in d dimensions is √d, up to about 0.7.
#
#     project   z ← z √d / ‖z‖
#     penalty   (‖z‖ − √d)², the negative log density of the norm near its mode, up to constants
#
# Both leave the direction of z free.


SHELLS = ("project", "penalty", None)


def project(z: Tensor) -> Tensor:
    """The nearest seed of norm √d, for each row; z = 0 stays."""
    flat = z.flatten(1)
    norm = flat.norm(dim=1).clamp(min=1e-12)
    return z * (math.sqrt(flat.shape[1]) / norm).reshape(-1, *([1] * (z.ndim - 1)))


def penalty(z: Tensor) -> Tensor:
    """(‖z‖ − √d)², (B,)."""
    flat = z.flatten(1)
    return (flat.norm(dim=1) - math.sqrt(flat.shape[1])) ** 2


#: A unit of the search is this many of an unknown: the logits of a kernel move that much faster.
UNIT = 4.0
#: The least share of the range's width that an estimated noise level may have.
FLOOR = 2e-3
#: How much worse than the bound a copy may explain y and still count.
WORSE = 1.2


@dataclass(frozen=True, eq=False)
class Answer:
    """Of each image: the image, the unknowns, the residual; whether it is of one copy only.

    ``mixed`` says where a start has a share in it, None where it never has.
    """

    image: Tensor
    unknowns: Tensor | None
    residual: Tensor
    alone: Tensor
    mixed: Tensor | None = None


class SeedSearch:
    """The rows of a search: copies · B of them, row r being of image r mod B.

    Parameters
    ----------
    task : RestorationTask
        What is restored.
    copies : int
        How often each image is searched for.
    shell : "project" or None
        Whether a seed is brought to the norm √d before it is used.
    """

    def __init__(self, task: RestorationTask, copies: int = 1, shell: str | None = None) -> None:
        whole("copies", copies, 1)
        self.task, self.copies, self.shell = task, copies, shell
        self.batch = len(task.y)
        self.free = self.dimension = math.prod(task.prior.seed_shape)
        self.unknowns_fixed = False  # whether unknowns stay where they are
        self.own: Tensor | None = None  # unknowns that all rows share, (1, n)
        self.like = task.y.real

    def start(self, seeds: Tensor) -> Tensor:
        """Rows (copies · B, n) from seeds, unknowns of their own at their start."""
        flat = seeds.reshape(len(seeds), -1).to(self.like.dtype)
        if not self.task.forward.per_image:
            return flat
        unknowns = self.first_unknowns()
        assert unknowns is not None
        return torch.cat([flat, unknowns.repeat(self.copies, 1) / UNIT], dim=1)

    def first_unknowns(self) -> Tensor | None:
        """Where the unknowns start, (B, n)."""
        return self.task.forward.start(self.batch, self.like)

    def given(self, seeds: Tensor) -> Tensor:
        """Seeds of a user's, looked at."""
        want = (self.copies * self.batch, *self.task.prior.seed_shape)
        if tuple(seeds.shape) != want:
            raise DataError(
                f"start has shape {tuple(seeds.shape)} and {want} is needed: one seed for each "
                "image and copy"
            )
        return seeds.detach().to(self.like)

    def shared(self) -> Tensor | None:
        """Unknowns that all rows share, (1, n): the parameters of a module."""
        forward = self.task.forward
        return None if forward.per_image else self.first_unknowns()

    def refuse_shared(self) -> None:
        """Rows that share unknowns are no problems of their own."""
        if self.task.forward.blind and not self.task.forward.per_image:
            raise DataError(
                "the operator has parameters of its own, which the whole batch shares: search with "
                '{way} and optimiser="adam", or freeze them with operator.requires_grad_(False).',
                way=Argument("method", "dmplug"),
            )

    def pairs(self) -> Tensor:
        """Seeds z, then −z, (copies · B, *seed_shape): their mean is 0 where copies is even."""
        half = self.task.seeds((self.copies + 1) // 2)
        return torch.cat([half, -half])[: self.copies * self.batch]

    def seed(self, v: Tensor) -> Tensor:
        """The seeds of rows, (N, *seed_shape)."""
        z = v[:, : self.free].reshape(-1, *self.task.prior.seed_shape)
        return project(z) if self.shell == "project" else z

    def unknowns(self, v: Tensor) -> Tensor | None:
        """The operator's unknowns of rows, (N, n), or those that all share."""
        if not self.task.forward.per_image:
            return self.own
        unknowns = v[:, self.free :] * UNIT
        return unknowns.detach() if self.unknowns_fixed else unknowns

    def image(self, v: Tensor, rows: Tensor | None = None) -> Tensor:
        """The images of rows, (N, *shape); ``rows`` says which ones v holds."""
        return self.task.prior(self.seed(v))

    def residual(self, v: Tensor, image: Tensor, rows: Tensor, bend: float | None = None) -> Tensor:
        """Mean squared residuals of rows, (N,); with ``bend`` large ones count less."""
        return self.task.forward.residual_of(image, self.task.y, rows, self.unknowns(v), bend)

    def answer(self, v: Tensor, images: Tensor, residual: Tensor, bound: Tensor | None) -> Answer:
        """One image of all copies: the mean of those that explain y, or the best alone.

        A copy counts where its residual is at most ``WORSE`` times the bound (or the least of the
        image's copies, where none is within it). Where an operator is far from linear the mean of
        images that explain y need not explain it: then the best copy is the answer.
        """
        unknowns = self.unknowns(v)
        if self.copies == 1:
            alone = torch.zeros(self.batch, dtype=torch.bool, device=v.device)
            return Answer(images, unknowns, residual, alone)
        shape = (self.copies, self.batch, *images.shape[1:])
        by_copy = torch.nan_to_num(residual, nan=math.inf).reshape(shape[:2])
        limit = by_copy.amin(dim=0) if bound is None else torch.maximum(by_copy.amin(dim=0), bound)
        counts = by_copy <= WORSE * limit
        weight = counts.to(images.dtype) / counts.sum(dim=0).clamp(min=1)
        weight = weight.reshape(*shape[:2], *([1] * (images.ndim - 1)))
        apart = images.reshape(shape)
        mean = (torch.where(weight > 0, apart, torch.zeros_like(apart)) * weight).sum(dim=0)
        best = unknowns
        if unknowns is not None and self.task.forward.per_image:
            best = self.first(unknowns, residual)
        of_mean = self.task.forward.residual(mean, self.task.y, best)
        alone = ~(of_mean <= WORSE * limit)
        image = torch.where(column(alone, mean), self.first(images, residual), mean)
        return Answer(image, best, torch.where(alone, by_copy.amin(dim=0), of_mean), alone)

    def first(self, values: Tensor, least: Tensor) -> Tensor:
        """Of each image the copy with the least of ``least`` (copies · B,), (B, …)."""
        order = torch.nan_to_num(least, nan=math.inf).reshape(self.copies, self.batch)
        best = order.argmin(dim=0)
        apart = values.reshape(self.copies, self.batch, *values.shape[1:])
        return apart[best, torch.arange(self.batch, device=values.device)]


def variance(task: RestorationTask) -> tuple[Tensor, str]:
    """Mean squared noise over the observed entries of each image, (B,), and where it is from."""
    y, seen = task.y, task.forward.observed
    low, high = task.prior.range
    floor = (FLOOR * (high - low if math.isfinite(high - low) else 1.0)) ** 2
    if task.noise is None:
        return (task.estimated_sigma() ** 2).clamp(min=floor), "estimated from y"
    spread = task.noise.variance_seen(y).expand(y.shape)
    if seen is not None:
        spread = spread * seen
    total = spread.flatten(1).sum(1) / task.forward.count
    # noise that follows the signal is nothing on a black y, and no image explains y exactly
    return (total if isinstance(task.noise, Gaussian) else total.clamp(min=floor)), "as stated"
