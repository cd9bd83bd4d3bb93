"""The constrained form: of all images that explain y as well as the noise allows, the best one.

    min_z Ω   s.t.   ‖A(R(z)) − y‖² ≤ m σ²

There is no weight to tune and no moment to stop at: the noise level says how well y is to be
explained, and Ω says which explanation is taken. With Ω = ½‖z‖² ("seed") it is the least seed.
With Ω = ½‖z − z_k‖² ("anchor") it is the seed nearest to one drawn at random: what y does not
determine is then as in a draw from the prior, and the mean over the anchors z_k comes near the
posterior mean, which has the least squared error. Anchors come in pairs ±z_k, so that for a linear
Gaussian prior the mean of an even number of them has no part of the anchors left in what y
determines. For a linear operator the mean of images within the bound is within it too.

The solver is :func:`setpoint.minimize_batched`, penalty BFGS-SQP with one constraint a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.quasi_newton import Solved, quasi_newton
from setpoint.restoration.regularisers import image_term, seed_energy
from setpoint.restoration.search import Search, variance
from setpoint.restoration.task import Outcome, Task


def constrained(
    task: Task,
    *,
    regulariser: object = "anchor",
    copies: int | None = None,
    iterations: int = 100,
    evaluations: int | None = None,
    slack: float = 1.0,
    memory: int = 10,
    tolerance: float | None = None,
    feasibility: float | None = None,
    start: Tensor | None = None,
) -> Outcome:
    """Solve the constrained program for each image.

    Parameters
    ----------
    task : Task
        What is restored. Where ``task.noise`` is None the level is estimated from y.
    regulariser : "anchor", "seed" or callable
        Ω, see :mod:`.regularisers`.
    copies : int, optional
        Solutions averaged: 4 with "anchor", else 1.
    iterations : int
        The most steps of the solver.
    evaluations : int, optional
        The most calls of the prior; 1.5 for each step and 20 more by default.
    slack : float
        Factor of the bound m σ².
    memory : int
        Pairs of curvature kept.
    tolerance, feasibility : float, optional
        On stationarity, and on residual/bound − 1; in float32 1e-3 and 1e-2.
    start : torch.Tensor, optional
        (copies · B, *seed_shape) seeds to start from; the anchors by default.
    """
    if not slack > 0:
        raise DataError(f"slack={slack!r} must be above 0: it is a factor of the noise's energy.")
    if copies is None:
        copies = 4 if regulariser == "anchor" else 1
    search = Search(task, copies)
    anchors = search.pairs()
    flat = anchors.flatten(1)
    term = None if regulariser in ("anchor", "seed") else image_term(regulariser)

    def objective(v: Tensor, image: Tensor, residual: Tensor, rows: Tensor) -> Tensor:
        if term is not None:
            return term(image)
        z = v[:, : search.free]
        return seed_energy(z - flat[rows] if regulariser == "anchor" else z) / search.free

    bound, origin = variance(task)
    double = flat.dtype == torch.float64
    solved = quasi_newton(
        search,
        search.start(anchors if start is None else start.detach().to(search.like)),
        objective,
        bound=slack * bound,
        iterations=iterations,
        evaluations=round(1.5 * iterations) + 20 if evaluations is None else evaluations,
        memory=memory,
        tolerance=tolerance if tolerance is not None else (1e-6 if double else 1e-3),
        feasibility=feasibility if feasibility is not None else (1e-6 if double else 1e-2),
    )
    return outcome(search, solved, slack * bound, origin)


def outcome(search: Search, solved: Solved, bound: Tensor, origin: str) -> Outcome:
    """The mean of the copies, and for each image whether its bound was reached."""
    excess = solved.residual / bound.repeat(search.copies) - 1
    worst = excess.reshape(search.copies, search.batch).amax(dim=0)
    kept = [float(e) <= 0.02 for e in worst]
    level = [float(b) ** 0.5 for b in bound]
    why = [
        f"explains y within the noise level {sigma:.3g} ({origin})"
        if holds
        else f"the best found: its residual is {100 * float(e):.0f} % above the noise's energy "
        f"(level {sigma:.3g}, {origin})"
        for holds, e, sigma in zip(kept, worst, level, strict=True)
    ]
    unknowns = search.unknowns(solved.rows)
    status = f"{sum(kept)} of {search.batch} images explain y within the noise level {origin}"
    if not all(kept):
        status += "; for the others raise iterations, or state a higher noise level"
    if solved.interrupted:
        status = f"Interrupted after {solved.calls} calls; {status}"
    return Outcome(
        search.mean(solved.images),
        search.first(search.seed(solved.rows), solved.residual),
        None if unknowns is None else search.first(unknowns, solved.residual),
        torch.full((search.batch,), solved.calls - 1, device=bound.device),
        why,
        f"{status}.",
        solved.interrupted,
    )
