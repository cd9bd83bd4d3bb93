"""Unknowns of a blind operator beside the image: gradient steps on the squared residual.

    u ← Adam(u, ∂/∂u Σ log(‖A(x; u) − y‖²/m + ε) + c · (offset of the kernel)²)

The logarithm scales each image's residual by its own size, so that images which fit badly move as
those that fit well. Several samples of an image share its unknowns, and ‖A(x; u) − y‖² is their
mean: the step of an EM algorithm whose expectation is over samples (Laroche et al. 2024). A kernel
moved by s and an image moved by −s give the same y: an operator that knows how far its kernel is
out of the middle (``operator.offset``) is held there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.restoration.measurement.restoration_task import RestorationTask

_CENTRED = 1.0  # c, per squared pixel


def residuals(task: RestorationTask, image: Tensor, unknowns: Tensor | None) -> Tensor:
    """Mean squared residual of images that are one or several copies of the batch, (copies · B,).

    Copy by copy: an operator may treat the rows of a batch differently. The unknowns are those of
    each copy, or fewer, which the copies share.
    """
    batch = len(task.y)
    parts = image.split(batch)
    if unknowns is None or len(unknowns) < len(image):
        own = [unknowns] * len(parts)
    else:
        own = list(unknowns.split(batch))
    return torch.cat(
        [task.forward.residual(part, task.y, u) for part, u in zip(parts, own, strict=True)]
    )


def misfit(task: RestorationTask, residual: Tensor, unknowns: Tensor) -> Tensor:
    """What the unknowns lower, one number, from the mean squared residuals."""
    # a hundredth of y's size is added: the logarithm of a perfect fit has no bottom
    size = 1e-4 * task.y.abs().square().mean().clamp(min=1e-12)
    loss = (residual + size).log().sum()
    offset = getattr(task.forward.operator, "offset", None)
    if callable(offset):
        out = offset(unknowns)
        assert isinstance(out, Tensor)
        loss = loss + _CENTRED * out.square().sum()
    return loss


class Unknowns:
    """The operator's unknowns and how they move.

    With an operator that has none, ``value`` is None and a step does nothing.

    Parameters
    ----------
    task : RestorationTask
        The task.
    rate : float
        Adam's.
    """

    def __init__(self, task: RestorationTask, rate: float) -> None:
        self.task = task
        start = task.forward.start(len(task.y), task.y.real) if task.forward.blind else None
        self.value = None if start is None else start.detach().clone()
        self._optimizer = None
        if self.value is not None:
            self._optimizer = torch.optim.Adam([self.value], lr=rate, betas=(0.9, 0.99))

    def steps(self, image: Tensor, count: int, moving: Tensor | None = None) -> None:
        """A few steps with the image, or samples of it, held; where ``moving``, (B,), says so."""
        if self.value is None or self._optimizer is None:
            return
        image = image.detach()
        for _ in range(count):
            self.value.requires_grad_(True)
            with torch.enable_grad():
                each = residuals(self.task, image, self.value).reshape(-1, len(self.task.y))
                loss = misfit(self.task, each.mean(0), self.value)
            (self.value.grad,) = torch.autograd.grad(loss, self.value)
            self.value.requires_grad_(False)
            before = self.value.clone()
            self._optimizer.step()
            if moving is not None:
                # unknowns shared by the batch move while any of its images asks for it
                shared = len(self.value) < len(moving)
                asked = moving.any()[None] if shared else moving
                self.value.copy_(torch.where(asked[:, None], self.value, before))
