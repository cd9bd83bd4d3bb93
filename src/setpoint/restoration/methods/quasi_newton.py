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

from setpoint.restoration.methods.seed_search import SeedSearch
from setpoint.solvers.batched import BatchedResult, solve_batched

#: Share of the steps for which the unknowns of a blind operator stay at their start.
FIXED_SHARE = 0.3

#: f(rows v, images, residuals, row numbers) -> (N,)
Objective = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class QuasiNewtonResult:
    """The rows found, their images and residuals, the calls it took, which are at an optimum."""

    rows: Tensor
    images: Tensor
    residual: Tensor
    calls: int
    settled: Tensor
    interrupted: bool


class Calls:
    """Images and residuals at the rows asked for; each call is told to the watch."""

    def __init__(self, search: SeedSearch, bound: Tensor | None) -> None:
        self.search, self.bound = search, bound
        count, like = search.copies * search.batch, search.like
        self.images = like.new_zeros(count, *search.task.prior.shape)
        self.residuals = like.new_full((count,), math.nan)
        self.losses = self.residuals.clone()
        self.rows: Tensor | None = None
        self.number = 0
        self._at: tuple[Tensor, Tensor, Tensor] | None = None

    def at(self, v: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Images and residuals, made once for all functions of a point."""
        if self._at is None or self._at[0] is not v:
            image = self.search.image(v, rows)
            self._at = (v, image, self.search.residual(v, image, rows))
        return self._at[1], self._at[2]

    def note(self, v: Tensor, loss: Tensor, rows: Tensor) -> None:
        """Write down a point of some rows; the others are where they were."""
        search = self.search
        if self.rows is None:
            self.rows = v.detach().new_zeros(len(self.images), v.shape[1])
        with torch.no_grad():
            image, residual = self.at(v, rows)
            self.images[rows], self.residuals[rows] = image, residual
            self.losses[rows], self.rows[rows] = loss, v
            answer = search.answer(self.rows, self.images, self.residuals, self.bound)
            mean = self.losses.reshape(search.copies, search.batch).mean(dim=0)
            # counted before it is told: who is told may interrupt
            self.number += 1
            search.task.watch(
                self.number - 1, answer.image, mean, answer.residual, unknowns=answer.unknowns
            )


def quasi_newton(
    search: SeedSearch,
    start: Tensor,
    objective: Objective,
    *,
    bound: Tensor | None = None,
    iterations: int,
    evaluations: int | None = None,
    memory: int = 10,
    tolerance: float | None = None,
    feasibility: float | None = None,
) -> QuasiNewtonResult:
    """Minimise f(v, image, residual) of each row, under residual ≤ bound where one is given.

    Parameters
    ----------
    search : SeedSearch
        What the rows mean.
    start : torch.Tensor
        (N, n).
    objective : callable
        (rows, images, residuals, row numbers) -> (N,).
    bound : torch.Tensor, optional
        (B,) on the mean squared residual.
    iterations, evaluations : int
        The most steps of a row, and calls of the functions: 40 more than steps by default.
    memory : int
        Pairs of the limited memory.
    tolerance, feasibility : float, optional
        As of ``solve_batched``, a constraint being residual/bound − 1; 1e-6 each, in float32
        1e-3 and 1e-2.
    """
    evaluations = iterations + 40 if evaluations is None else evaluations
    loose = start.dtype != torch.float64
    tolerance = (1e-3 if loose else 1e-6) if tolerance is None else tolerance
    feasibility = (1e-2 if loose else 1e-6) if feasibility is None else feasibility
    search.refuse_shared()
    calls = Calls(search, bound)
    search.task.watch.steps = evaluations
    rows = torch.arange(len(start), device=start.device)
    most = None if bound is None else bound.repeat(search.copies)

    def value(v: Tensor, index: Tensor) -> Tensor:
        image, residual = calls.at(v, index)
        worth = objective(v, image, residual, index)
        if v.requires_grad:
            calls.note(v, worth, index)
        return worth

    def excess(v: Tensor, index: Tensor) -> Tensor:
        assert most is not None
        return calls.at(v, index)[1] / most[index] - 1

    def solved(first: Tensor, share: float) -> BatchedResult:
        return solve_batched(
            value,
            first,
            inequalities=None if bound is None else excess,
            data=(rows,),
            hessian=memory,
            max_iterations=max(1, round(share * iterations)),
            max_evaluations=max(1, round(share * evaluations)),
            tolerance=tolerance,
            feasibility=feasibility,
        )

    interrupted = False
    try:
        if search.task.forward.per_image:
            # the image is brought near y before the kernel may follow it
            search.unknowns_fixed = True
            start = solved(start, FIXED_SHARE).x
            search.unknowns_fixed = False
        result = solved(start, 1.0)
        points, settled = result.x, result.success
    except KeyboardInterrupt:
        if calls.rows is None:
            raise
        points, interrupted = calls.rows, True
        settled = torch.zeros(len(points), dtype=torch.bool, device=points.device)
    search.unknowns_fixed = False
    with torch.no_grad():
        images = search.image(points, rows)
        residual = search.residual(points, images, rows)
    return QuasiNewtonResult(points, images, residual, calls.number, settled, interrupted)
