"""The rows of a search by the batched solver: with or without a bound on the residual.

    min_v f(v)                           limited-memory BFGS
    min_v f(v)  s.t.  r(v) ≤ bound       penalty BFGS-SQP, one constraint a row

Every call of the functions is one iterate of the history.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.restoration.search import Search
from setpoint.solvers.batched import BatchedResult, minimize_batched

#: f(rows v, images, residuals, row numbers) -> (N,)
Objective = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Solved:
    """The rows found, their images and residuals, and the solver's record."""

    rows: Tensor
    images: Tensor
    residual: Tensor
    result: BatchedResult | None
    calls: int
    interrupted: bool


class Calls:
    """Images and residuals at the rows asked for; each call is told to the watch."""

    def __init__(self, search: Search) -> None:
        self.search = search
        count = search.copies * search.batch
        like = search.like
        self.images = like.new_zeros(count, *search.task.prior.shape)
        self.residuals = like.new_full((count,), math.nan)
        self.rows: Tensor | None = None
        self.number = 0
        self._at: tuple[Tensor, Tensor, Tensor] | None = None

    def at(self, v: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Images and residuals, made once for all functions of a point."""
        if self._at is None or self._at[0] is not v:
            image = self.search.image(v, rows)
            residual = self.search.residual(v, image, rows)
            self._at = (v, image, residual)
            if v.requires_grad:
                self._note(v.detach(), image.detach(), residual.detach(), rows)
        return self._at[1], self._at[2]

    def _note(self, v: Tensor, image: Tensor, residual: Tensor, rows: Tensor) -> None:
        search = self.search
        if self.rows is None:
            self.rows = v.new_zeros(len(self.images), v.shape[1])
        self.images[rows], self.residuals[rows], self.rows[rows] = image, residual, v
        by_copy = self.residuals.reshape(search.copies, search.batch)
        mean = by_copy.mean(dim=0)
        search.task.watch(self.number, search.mean(self.images), mean, mean)
        self.number += 1


def quasi_newton(
    search: Search,
    start: Tensor,
    objective: Objective,
    *,
    bound: Tensor | None = None,
    iterations: int,
    evaluations: int | None,
    memory: int,
    tolerance: float | None,
    feasibility: float | None,
) -> Solved:
    """Minimise f(v, image, residual) of each row, under residual ≤ bound where one is given.

    Parameters
    ----------
    search : Search
        What the rows mean.
    start : torch.Tensor
        (N, n).
    objective : callable
        (rows, images, residuals, row numbers) -> (N,).
    bound : torch.Tensor, optional
        (B,) on the mean squared residual.
    iterations, evaluations : int
        The most steps of a row, and calls of the functions.
    memory : int
        Pairs of the limited memory.
    tolerance, feasibility : float, optional
        As of ``minimize_batched``; a constraint is residual/bound − 1.
    """
    search.refuse_shared()
    calls = Calls(search)
    search.task.watch.steps = evaluations
    rows = torch.arange(len(start), device=start.device)
    most = None if bound is None else bound.repeat(search.copies)

    def value(v: Tensor, index: Tensor) -> Tensor:
        image, residual = calls.at(v, index)
        return objective(v, image, residual, index)

    def excess(v: Tensor, index: Tensor) -> Tensor:
        assert most is not None
        return calls.at(v, index)[1] / most[index] - 1

    try:
        result = minimize_batched(
            value,
            start,
            inequalities=None if bound is None else excess,
            data=(rows,),
            hessian=memory,
            max_iterations=iterations,
            max_evaluations=evaluations,
            tolerance=tolerance,
            feasibility=feasibility,
        )
        found, interrupted = result.x, False
    except KeyboardInterrupt:
        if calls.rows is None:
            raise
        result, found, interrupted = None, calls.rows, True
    with torch.no_grad():
        images = search.image(found, rows)
        residual = search.residual(found, images, rows)
    return Solved(found, images, residual, result, calls.number, interrupted)
