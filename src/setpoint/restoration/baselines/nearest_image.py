"""The training image whose measurement is nearest:  argmin_n ‖A(t_n) − y‖².

One A for the whole batch: A(t_n) once for each training image, distances by the expansion
‖a − y‖² = ‖a‖² − 2⟨a, y⟩ + ‖y‖², a matrix product. A mask of each image's own:
‖m ∘ (t − y)‖² = ⟨m, t²⟩ − 2⟨m ∘ y, t⟩ + ⟨m, y²⟩, matrix products again. Any other operator that
treats the rows of a batch differently is applied to every pair.

Blind: the candidates nearest under the first unknowns get unknowns fitted to them; the best fit
ranks a longer list anew, and so on. What is left is the pair of smallest residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import Argument, DataError
from setpoint._core.options import whole
from setpoint.restoration.baselines.blind_unknowns import Unknowns, misfit, residuals
from setpoint.restoration.baselines.task_and_start import space_of
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.operators.image_tensors import as_floats
from setpoint.restoration.operators.inpaint import Inpaint

_RANKED = 768  # training images that a blind search ranks anew with its unknowns, of all there are


def nearest(
    task: RestorationTask,
    *,
    training: Tensor | None = None,
    chunk: int = 2048,
    fitted: int = 24,
    rounds: int = 4,
    fit_steps: int = 120,
    unknowns_rate: float = 0.1,
) -> RestorationOutcome:
    """Look the image up among training images.

    Parameters
    ----------
    task : RestorationTask
        What is to be restored.
    training : torch.Tensor
        (N, *shape), images in the prior's range. Required.
    chunk : int
        Training images measured at a time.
    fitted, rounds, fit_steps, unknowns_rate
        Of a blind operator: candidates whose unknowns are fitted, how often the candidates are
        ranked anew, and the steps and rate of Adam in each fit.
    """
    bank = _checked(training, task, chunk)
    whole("rounds", rounds, 1)
    start = task.forward.start(len(task.y), task.y) if task.forward.blind else None
    if start is not None and len(start) < len(task.y):
        which, unknowns = _together(
            task=task,
            bank=bank,
            unknowns=start,
            chunk=chunk,
            rounds=rounds,
            steps=fit_steps,
            rate=unknowns_rate,
        )
    elif start is not None:
        search = PerImageSearch(task=task, bank=bank, chunk=chunk, fitted=min(fitted, len(bank)))
        which, unknowns = search.run(start, rounds, fit_steps, unknowns_rate)
    else:
        which, unknowns = distances(task, bank, chunk).argmin(1), None
    image = bank[which]
    with torch.no_grad():
        residual = task.forward.residual(image, task.y, unknowns)
    task.watch(0, image, residual, residual, unknowns=unknowns)
    return RestorationOutcome(
        image=image,
        unknowns=unknowns,
        chosen=torch.zeros_like(which),
        why=["the training image of smallest residual"] * len(image),
        status=f"looked up among {len(bank)} training images",
    )


def distances(
    task: RestorationTask, bank: Tensor, chunk: int, unknowns: Tensor | None = None
) -> Tensor:
    """‖A(t_n) − y_b‖² over the observed entries, (B, N)."""
    batch, seen, out = len(task.y), task.forward.observed, []
    y = task.y if seen is None else torch.where(seen > 0, task.y, 0)
    with torch.no_grad():
        shared = _shared(task, bank, unknowns)
        for start in range(0, len(bank), chunk):
            part = bank[start : start + chunk]
            if shared:
                own = _for(unknowns, len(part), batch)
                measured = task.forward(part, own)
                masked = seen is not None
                out.append(_masked(measured, y, seen) if masked else _expanded(measured, y))
            elif isinstance(task.forward.operator, Inpaint) and seen is not None:
                out.append(_masked(part, y, seen))
            else:
                apart = [
                    task.forward.residual(image.expand(batch, *image.shape), task.y, unknowns)
                    for image in part
                ]
                out.append(torch.stack(apart, 1) * task.forward.count[:, None])
    return torch.cat(out, 1)


def _shared(task: RestorationTask, bank: Tensor, unknowns: Tensor | None) -> bool:
    """Whether A treats all rows of a batch alike and takes batches of any size.

    Tried on a random image, as the corners of a training image may all be black.
    """
    space, batch = space_of(task), len(task.y)
    draw = task.generator("nearest")
    one = torch.rand((1, *space.shape), dtype=bank.dtype, device=bank.device, generator=draw)
    one = space.middle + space.half * (2 * one - 1)
    seen = task.forward(one.expand(batch, *space.shape), unknowns)
    if (seen - seen[:1]).abs().max() > 1e-5 * seen.abs().max():
        return False
    try:
        own = _for(unknowns, batch + 1, batch)
        more = task.forward(one.expand(batch + 1, *space.shape), own)
    except (RuntimeError, ValueError):  # an operator may be tied to the size of its batch
        return False
    return len(more) == batch + 1


def _for(unknowns: Tensor | None, count: int, batch: int) -> Tensor | None:
    """The first unknowns for so many images; what the batch shares stays as it is."""
    if unknowns is None or len(unknowns) < batch:
        return unknowns
    return unknowns[:1].expand(count, -1)


def _together(
    task: RestorationTask,
    bank: Tensor,
    unknowns: Tensor,
    chunk: int,
    rounds: int,
    steps: int,
    rate: float,
) -> tuple[Tensor, Tensor]:
    """Unknowns that the whole batch shares: look up and fit in turn."""
    moving = Unknowns(task, rate)
    which = distances(task, bank, chunk, unknowns).argmin(1)
    for _ in range(rounds):
        moving.steps(bank[which], steps)
        assert moving.value is not None
        which = distances(task, bank, chunk, moving.value).argmin(1)
    assert moving.value is not None
    return which, moving.value


def _expanded(measured: Tensor, y: Tensor) -> Tensor:
    """‖a_n − y_b‖² by a matrix product, about the mean of the y: less is lost to rounding."""
    centre = y.flatten(1).mean(0)
    a, b = measured.flatten(1) - centre, y.flatten(1) - centre
    return a.square().sum(1) - 2 * b @ a.T + b.square().sum(1, keepdim=True)


def _masked(measured: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """⟨m, a²⟩ − 2⟨m ∘ y, a⟩ + ⟨m, y²⟩."""
    t, m, b = measured.flatten(1), mask.flatten(1), y.flatten(1)
    return m @ t.square().T - 2 * (m * b) @ t.T + (m * b.square()).sum(1, keepdim=True)


def _checked(training: Tensor | None, task: RestorationTask, chunk: int) -> Tensor:
    """The training images where y is."""
    if training is None:
        raise DataError(
            "{argument} looks an image up: give it images, training=(N, C, H, W), in the range of "
            "the prior.",
            argument=Argument("method", "nearest"),
        )
    bank = as_floats("training", training).to(task.y)
    shape = tuple(task.prior.shape)
    if bank.ndim != len(shape) + 1 or tuple(bank.shape[1:]) != shape or not len(bank):
        raise DataError(
            f"training has the shape {tuple(bank.shape)}: give N images as (N, "
            f"{', '.join(map(str, shape))}), the shape of the prior's images."
        )
    whole("chunk", chunk, 1)
    return bank


@dataclass(frozen=True)
class PerImageSearch:
    """Search for the best pair of a training image and unknowns, for each measurement its own.

    Attributes
    ----------
    task : RestorationTask
    bank : torch.Tensor
        (N, *shape), the training images.
    chunk : int
        Training images measured at a time.
    fitted : int
        Candidates of a measurement whose unknowns are fitted.
    """

    task: RestorationTask
    bank: Tensor
    chunk: int
    fitted: int

    def run(self, start: Tensor, rounds: int, steps: int, rate: float) -> tuple[Tensor, Tensor]:
        """The index (B,) and the unknowns (B, n) of the best pair, from unknowns (B, n) on."""
        task, batch = self.task, len(self.task.y)
        ranked = min(_RANKED, len(self.bank))
        short = distances(task, self.bank, self.chunk, start).topk(ranked, largest=False).indices
        tried = short[:, : self.fitted]
        unknowns = start
        which = least = None
        for _ in range(rounds):
            residual, fits = self._fit(tried, unknowns, steps, rate)  # (B, K), (B, K, n)
            at = residual.argmin(1)
            picked = torch.arange(batch, device=at.device), at
            if least is None or which is None:
                which, least, unknowns = tried[picked], residual[picked], fits[picked]
            else:
                better = residual[picked] < least
                which = torch.where(better, tried[picked], which)
                least = torch.where(better, residual[picked], least)
                unknowns = torch.where(better[:, None], fits[picked], unknowns)
            tried = self._ranked(short, unknowns)
        assert which is not None
        return which, unknowns

    def _ranked(self, short: Tensor, unknowns: Tensor) -> Tensor:
        """The best of the list under unknowns of each image's own, (B, K)."""
        with torch.no_grad():
            columns = [
                self.task.forward.residual(self.bank[short[:, k]], self.task.y, unknowns)
                for k in range(short.shape[1])
            ]
        best = torch.stack(columns, 1).topk(self.fitted, largest=False).indices
        return short.gather(1, best)

    def _fit(
        self, tried: Tensor, unknowns: Tensor, steps: int, rate: float
    ) -> tuple[Tensor, Tensor]:
        """Residual (B, K) and unknowns (B, K, n) of candidates (B, K) after Adam."""
        count = tried.shape[1]
        images = self.bank[tried.T.reshape(-1)]  # (K·B, *shape), candidate by candidate
        free = unknowns.repeat(count, 1).detach().clone().requires_grad_()
        optimizer = torch.optim.Adam([free], lr=rate, betas=(0.9, 0.99))
        for step in range(steps + 1):
            with torch.enable_grad():
                residual = residuals(self.task, images, free)
                loss = misfit(self.task, residual, free)
            if step < steps:
                (free.grad,) = torch.autograd.grad(loss, free)
                optimizer.step()
        fits = free.detach().reshape(count, len(tried), -1).transpose(0, 1)
        return residual.detach().reshape(count, -1).T, fits
