"""Adam over the rows of a search, and which iterate is kept.

One step is  v ← Adam(v, ∇ Σ_r f_r(v_r)),  rows not knowing of each other; the iterate selected is
the one of ES-WMV, or the least objective where early stopping is off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.restoration.search import Search
from setpoint.restoration.stopping import WindowedVariance

#: Steps between two looks at whether all images are done: each is a wait for the device.
LOOK = 20

#: f(rows v, images, residuals) -> (N,)
Objective = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass
class Kept:
    """The selected iterates so far.

    Attributes
    ----------
    image, seed, unknowns : torch.Tensor
        Of each image.
    step : torch.Tensor
        (B,) when they were passed.
    seen : int
        Steps made.
    rows, moments : torch.Tensor, dict
        The last rows and Adam's state, to go on from.
    """

    image: Tensor
    seed: Tensor
    unknowns: Tensor | None
    step: Tensor
    seen: int = 0
    done: Tensor | None = None
    interrupted: bool = False


def descend(
    search: Search,
    rows: Tensor,
    objective: Objective,
    *,
    iterations: int,
    learning_rate: float,
    stopping: WindowedVariance | None,
    project: Callable[[Tensor], None] | None = None,
    shared: Tensor | None = None,
    decay: bool = False,
) -> Kept:
    """Run Adam; watch every iterate.

    Parameters
    ----------
    search : Search
        What the rows mean.
    rows : torch.Tensor
        (N, n) the start.
    objective : callable
        f of each row.
    iterations : int
        The most steps.
    learning_rate : float
        Of Adam.
    stopping : WindowedVariance or None
        What selects and ends; None selects the least objective of all steps.
    project : callable, optional
        Puts rows back, in place, after a step.
    shared : torch.Tensor, optional
        (1, n) unknowns that all rows share.
    decay : bool
        Whether the rate falls to zero, as half a cosine.
    """
    task = search.task
    task.watch.steps = iterations
    v = rows.detach().clone().requires_grad_(True)
    own = None if shared is None else shared.detach().clone().requires_grad_(True)
    leaves = [v] if own is None else [v, own]
    adam = torch.optim.Adam(leaves, lr=learning_rate)
    index = torch.arange(len(v), device=v.device)
    kept: Kept | None = None
    least = v.new_full((search.batch,), math.inf)
    try:
        for step in range(iterations):
            image = search.image(v)
            residual = _residual(search, v, own, image, index)
            loss = objective(v, image, residual)
            for leaf, pull in zip(leaves, torch.autograd.grad(loss.sum(), leaves), strict=True):
                leaf.grad = pull
            with torch.no_grad():
                shown, worth = search.mean(image), _mean(search, loss)
                if kept is None:
                    kept = _first(search, v, own, shown, residual)
                if stopping is None:
                    better = worth < least
                    least = torch.where(better, worth, least)
                else:
                    better = stopping.update(step, shown)
                    if step + 1 < stopping.window:  # no variance yet: the last one, if it is finite
                        better = shown.flatten(1).isfinite().all(dim=1)
                _keep(kept, better, step, search, v, own, shown, residual)
                kept.seen = step + 1
                more = {} if stopping is None else {"variance": stopping.variance}
                norm = search.seed(v).flatten(1).norm(dim=1) / math.sqrt(search.free)
                task.watch(
                    step, shown, worth, _mean(search, residual), norm=_mean(search, norm), **more
                )
            if decay:
                part = 0.5 + 0.5 * math.cos(math.pi * step / iterations)
                adam.param_groups[0]["lr"] = learning_rate * part
            adam.step()
            if project is not None:
                with torch.no_grad():
                    project(v)
            if stopping is not None and step % LOOK == LOOK - 1 and bool(stopping.done.all()):
                break
    except KeyboardInterrupt:
        if kept is None:
            raise
        kept.interrupted = True
    assert kept is not None
    kept.done = None if stopping is None else stopping.done
    return kept


def _residual(
    search: Search, v: Tensor, own: Tensor | None, image: Tensor, index: Tensor
) -> Tensor:
    if own is None:
        return search.residual(v, image, index)
    return search.task.forward.residual_of(image, search.task.y, index, own)


def _mean(search: Search, values: Tensor) -> Tensor:
    return values.detach().reshape(search.copies, search.batch).mean(dim=0)


def _first(search: Search, v: Tensor, own: Tensor | None, shown: Tensor, residual: Tensor) -> Kept:
    unknowns = own if own is not None else search.unknowns(v)
    return Kept(
        shown.clone(),
        search.first(search.seed(v), residual).clone(),
        None
        if unknowns is None
        else (unknowns if own is not None else search.first(unknowns, residual)).clone(),
        torch.zeros(search.batch, dtype=torch.long, device=v.device),
    )


def _keep(
    kept: Kept,
    better: Tensor,
    step: int,
    search: Search,
    v: Tensor,
    own: Tensor | None,
    shown: Tensor,
    residual: Tensor,
) -> None:
    """Write the images that are better over those kept."""

    def chosen(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(better.reshape(-1, *([1] * (new.ndim - 1))), new, old)

    kept.image = chosen(shown, kept.image)
    kept.seed = chosen(search.first(search.seed(v), residual), kept.seed)
    if own is not None:
        kept.unknowns = own.detach().clone()
    elif kept.unknowns is not None:
        unknowns = search.unknowns(v)
        assert unknowns is not None
        kept.unknowns = chosen(search.first(unknowns, residual), kept.unknowns)
    kept.step = torch.where(better, step, kept.step)
