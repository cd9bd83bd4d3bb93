"""The constrained form: of all images that explain y as well as the noise allows, the best one.

    min_z Ω   s.t.   ‖A(R(z)) − y‖² ≤ m σ²

There is no weight to tune and no moment to stop at: the noise level says how well y is to be
explained, and Ω says which explanation is taken. With Ω = ½‖z‖² ("seed") it is the least seed.
With Ω = ½‖z − z_k‖² ("anchor") it is the seed nearest to one drawn at random: what y does not
determine is then as in a draw from the prior, and the mean over the anchors z_k comes near the
posterior mean, which has the least squared error. Anchors come in pairs ±z_k, so that for a linear
Gaussian prior the mean of an even number of them has no part of the anchors left in what y
determines. For a linear operator the mean of images within the bound is within it too.

The solver is :func:`setpoint.solve_batched`, penalty BFGS-SQP with one constraint a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.options import whole
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.methods.quasi_newton import QuasiNewtonResult, quasi_newton
from setpoint.restoration.methods.regularisers import image_term, seed_energy
from setpoint.restoration.methods.seed_search import SeedSearch, variance

#: By how much a squared residual may exceed the bound and count as within it.
HOLDS = 0.02


def constrained(
    task: RestorationTask,
    *,
    regulariser: object = "anchor",
    copies: int | None = None,
    iterations: int = 80,
    evaluations: int | None = None,
    slack: float = 1.0,
    memory: int = 10,
    tolerance: float | None = None,
    feasibility: float | None = None,
    start: Tensor | None = None,
) -> RestorationOutcome:
    """Solve the constrained program for each image.

    Parameters
    ----------
    task : RestorationTask
        What is restored. Where ``task.noise`` is None the level is estimated from y.
    regulariser : "anchor", "seed" or callable
        Ω, see :mod:`.regularisers`.
    copies : int, optional
        Solutions averaged: 4 with "anchor", else 1.
    iterations : int
        The most steps of the solver.
    evaluations : int, optional
        The most calls of the prior; one for each step and 40 more by default.
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
    whole("iterations", iterations, 1)
    search = SeedSearch(task, copies)
    anchors = search.pairs()
    flat = anchors.flatten(1)
    term = None if regulariser in ("anchor", "seed") else image_term(regulariser)

    def objective(v: Tensor, image: Tensor, residual: Tensor, rows: Tensor) -> Tensor:
        if term is not None:
            return term(image)
        z = v[:, : search.free]
        return seed_energy(z - flat[rows] if regulariser == "anchor" else z) / search.free

    bound, origin = variance(task)
    solved = quasi_newton(
        search,
        search.start(anchors if start is None else search.given(start)),
        objective,
        bound=slack * bound,
        iterations=iterations,
        evaluations=evaluations,
        memory=memory,
        tolerance=tolerance,
        feasibility=feasibility,
    )
    return outcome(search, solved, slack * bound, origin)


def outcome(
    search: SeedSearch, solved: QuasiNewtonResult, bound: Tensor, origin: str
) -> RestorationOutcome:
    """The answer of each image, and whether it explains y as well as the noise allows."""
    with torch.no_grad():
        answer = search.answer(solved.rows, solved.images, solved.residual, bound)
    over = [float(e) for e in answer.residual / bound - 1]
    why = []
    mixed = torch.zeros_like(answer.alone) if answer.mixed is None else answer.mixed
    rows = zip(over, bound.sqrt().tolist(), answer.alone, mixed, strict=True)
    for excess, level, alone, started in rows:
        whose = "the best copy" if bool(alone) else f"the mean of {search.copies} copies"
        whose = "the solution" if search.copies == 1 else whose
        whose = f"{whose}, averaged with the start," if bool(started) else whose
        if excess <= HOLDS:
            why.append(f"{whose} explains y within the noise level {level:.3g} ({origin})")
        else:
            why.append(
                f"{whose}, whose squared residual is {100 * excess:.0f} % above that of the noise "
                f"(level {level:.3g}, {origin})"
            )
    within = sum(excess <= HOLDS for excess in over)
    status = f"{within} of {search.batch} images explain y within the noise level {origin}"
    if within < search.batch:
        status += "; for the others raise iterations, or state a higher noise level"
    open_ends = int((~solved.settled).sum())
    if open_ends and not solved.interrupted:
        status += (
            f"; {open_ends} of {len(solved.settled)} solutions ended before the least Ω was certain"
        )
    if solved.interrupted:
        status = f"Interrupted after {solved.calls} calls; {status}"
    return RestorationOutcome(
        image=answer.image,
        seed=search.first(search.seed(solved.rows), solved.residual),
        unknowns=answer.unknowns,
        chosen=torch.full((search.batch,), solved.calls - 1, device=bound.device),
        why=why,
        status=f"{status}.",
        interrupted=solved.interrupted,
    )
