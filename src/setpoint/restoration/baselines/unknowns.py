"""Unknowns of a blind operator beside the image: gradient steps on the squared residual.

    u ← Adam(u, ∂/∂u Σ log ‖A(x; u) − y‖² + c · (offset of the kernel)²)

The logarithm scales each image's residual by its own size, so that images which fit badly move as
those that fit well. A kernel moved by s and an image moved by −s give the same y: an operator that
knows how far its kernel is out of the middle (``operator.offset``) is held there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.restoration.task import Task

_CENTRED = 0.1  # c, per squared pixel


def misfit(task: Task, image: Tensor, y: Tensor, unknowns: Tensor) -> tuple[Tensor, Tensor]:
    """What the unknowns lower, one number, and the mean squared residual (B,)."""
    residual = task.forward.residual(image, y, unknowns)
    loss = residual.clamp(min=torch.finfo(residual.dtype).tiny).log().sum()
    offset = getattr(task.forward.operator, "offset", None)
    if callable(offset):
        out = offset(unknowns)
        assert isinstance(out, Tensor)
        loss = loss + _CENTRED * out.square().sum()
    return loss, residual


class Unknowns:
    """The operator's unknowns and how they move.

    With an operator that has none, ``value`` is None and a step does nothing.

    Parameters
    ----------
    task : Task
        The task.
    like : torch.Tensor
        Of as many rows as there are images, of the dtype and device wanted.
    rate : float
        Adam's.
    """

    def __init__(self, task: Task, like: Tensor, rate: float) -> None:
        self.task = task
        start = task.forward.start(len(like), like) if task.forward.blind else None
        self.value = None if start is None else start.detach().clone()
        self._optimizer = None
        if self.value is not None:
            self._optimizer = torch.optim.Adam([self.value], lr=rate, betas=(0.9, 0.99))

    def steps(self, image: Tensor, count: int, moving: Tensor | None = None) -> None:
        """A few steps with the image held; where ``moving``, (B,), says so."""
        if self.value is None or self._optimizer is None:
            return
        image = image.detach()
        for _ in range(count):
            self.value.requires_grad_(True)
            with torch.enable_grad():
                loss = misfit(self.task, image, self.task.y, self.value)[0]
            (self.value.grad,) = torch.autograd.grad(loss, self.value)
            self.value.requires_grad_(False)
            before = self.value.clone()
            self._optimizer.step()
            if moving is not None:
                # unknowns shared by the batch move while any of its images asks for it
                shared = len(self.value) < len(moving)
                asked = moving.any()[None] if shared else moving
                self.value.copy_(torch.where(asked[:, None], self.value, before))
