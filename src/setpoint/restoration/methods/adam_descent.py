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

from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.methods.seed_search import SeedSearch
from setpoint.restoration.priors.prior import column

#: Steps between two looks at whether all images are done: each is a wait for the device.
LOOK = 20

#: Share of the steps for which the unknowns of a blind operator stay at their start.
FIXED_SHARE = 0.2

#: f(rows v, images, residuals) -> (N,)
Objective = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass
class BestIterate:
    """The selected iterates so far.

    Attributes
    ----------
    image, seed, unknowns : torch.Tensor
        Of each image.
    step : torch.Tensor
        (B,) when they were passed.
    seen : int
        Steps made.
    done : torch.Tensor, optional
        (B,) which had stopped by themselves.
    interrupted : bool
        Whether it was ended by hand.
    """

    image: Tensor
    seed: Tensor
    unknowns: Tensor | None
    step: Tensor
    seen: int = 0
    done: Tensor | None = None
    interrupted: bool = False


def descend(
    search: SeedSearch,
    rows: Tensor,
    objective: Objective,
    *,
    iterations: int,
    learning_rate: float,
    stopping: WindowedVariance | None,
    project: Callable[[Tensor], None] | None = None,
    shared: Tensor | None = None,
    decay: bool = False,
) -> BestIterate:
    """Run Adam; watch every iterate.

    Parameters
    ----------
    search : SeedSearch
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
    search.own = own
    leaves = [v] if own is None else [v, own]
    adam = torch.optim.Adam(leaves, lr=learning_rate)
    index = torch.arange(len(v), device=v.device)
    choice = IterateChoice(search, stopping, joint=own is not None)
    interrupted = False
    try:
        for step in range(iterations):
            search.unknowns_fixed = step < FIXED_SHARE * iterations
            image = search.image(v)
            residual = search.residual(v, image, index)
            loss = objective(v, image, residual)
            for leaf, pull in zip(leaves, torch.autograd.grad(loss.sum(), leaves), strict=True):
                leaf.grad = pull
            with torch.no_grad():
                choice.see(step, v, image, residual, loss)
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
        if choice.best is None:
            raise
        interrupted = True
    search.unknowns_fixed = False
    assert choice.best is not None
    choice.best.interrupted = interrupted
    return choice.best


class IterateChoice:
    """Which iterate of each image is kept.

    Parameters
    ----------
    search : SeedSearch
        What the rows mean.
    stopping : WindowedVariance or None
        ES-WMV, or the least objective.
    joint : bool
        Whether the batch shares unknowns: then one step is kept for all of it.
    """

    def __init__(self, search: SeedSearch, stopping: WindowedVariance | None, joint: bool) -> None:
        self.search, self.stopping, self.joint = search, stopping, joint
        self.best: BestIterate | None = None
        self.least = search.like.new_full((1 if joint else search.batch,), math.inf)

    def see(self, step: int, v: Tensor, image: Tensor, residual: Tensor, loss: Tensor) -> None:
        """Take in an iterate: tell the watch, keep it where it is better."""
        search = self.search
        answer = search.answer(v, image, residual, None)
        unknowns = answer.unknowns
        worth = loss.reshape(search.copies, search.batch).mean(dim=0)
        better = self._better(step, answer.image, worth)
        seeds = search.seed(v)
        best = search.first(seeds, residual)
        if self.best is None:
            zero = torch.zeros(search.batch, dtype=torch.long, device=v.device)
            first = None if unknowns is None else unknowns.detach().clone()
            self.best = BestIterate(answer.image.clone(), best.clone(), first, zero)
        iterate = self.best
        iterate.image = torch.where(column(better, answer.image), answer.image, iterate.image)
        iterate.seed = torch.where(column(better, best), best, iterate.seed)
        iterate.step = torch.where(better, step, iterate.step)
        if unknowns is not None and iterate.unknowns is not None:
            those = better[:1] if self.joint else better
            iterate.unknowns = torch.where(column(those, unknowns), unknowns, iterate.unknowns)
        iterate.seen = step + 1
        more = {} if self.stopping is None else {"variance": self._spread()}
        if self.stopping is not None:
            iterate.done = self.stopping.done.expand(search.batch)
        norm = seeds.flatten(1).norm(dim=1) / math.sqrt(search.dimension)
        norm = norm.reshape(search.copies, search.batch).mean(dim=0)
        search.task.watch(
            step, answer.image, worth, answer.residual, unknowns=unknowns, norm=norm, **more
        )

    def _better(self, step: int, image: Tensor, worth: Tensor) -> Tensor:
        finite = image.flatten(1).isfinite().all(dim=1)
        if self.joint:
            image, worth, finite = image.flatten()[None], worth.sum()[None], finite.all()[None]
        if self.stopping is None:
            better = (worth < self.least) & finite
            self.least = torch.where(better, worth, self.least)
        else:
            better = self.stopping.update(step, image)
            if step + 1 < self.stopping.window:  # no variance yet: the last one
                better = finite
        return better.expand(self.search.batch)

    def _spread(self) -> Tensor:
        assert self.stopping is not None
        return self.stopping.variance.expand(self.search.batch)
