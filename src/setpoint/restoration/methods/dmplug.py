"""DMPlug: the seed whose image explains y (Wang et al. 2024, arXiv:2405.16749).

    min_z  r(z)                            r = ‖A(R(z)) − y‖²/m
    min_z  m r(z)/(2 σ²) + weight · Ω      where a regulariser or a penalty is asked for

R is the prior, a few deterministic steps as one function. With Ω = ½‖z‖² and weight 1 the second
is the posterior mode of z. The seed is kept on its shell ‖z‖ = √d (:mod:`.shell`); which iterate
is selected is said by the windowed variance (:mod:`.stopping`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.options import number, whole
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.methods import seed_search as shells
from setpoint.restoration.methods.adam_descent import BestIterate, descend
from setpoint.restoration.methods.quasi_newton import quasi_newton
from setpoint.restoration.methods.regularisers import image_term, seed_energy
from setpoint.restoration.methods.seed_search import SeedSearch, variance

OPTIMISERS = ("adam", "lbfgs")
LOSSES = ("squared", "robust")
#: Share of the range's width above which a residual counts less in the robust loss.
BEND = 0.03


def dmplug(
    task: RestorationTask,
    *,
    regulariser: object = None,
    weight: float = 1.0,
    loss: str = "squared",
    optimiser: str = "adam",
    iterations: int = 500,
    learning_rate: float = 0.05,
    shell: str | None = "auto",
    stopping: bool | None = True,
    window: int = 20,
    patience: int = 100,
    copies: int = 1,
    memory: int = 10,
    start: Tensor | None = None,
) -> RestorationOutcome:
    """Search for the seed.

    Parameters
    ----------
    task : RestorationTask
        What is restored.
    regulariser : None, "seed" or callable
        Ω, see :mod:`.regularisers`.
    weight : float
        Of Ω.
    loss : "squared" or "robust"
        What r is. The robust one is squared for residuals below ``BEND`` of the range's width and
        linear above: for noise of unknown kind, such as impulses.
    optimiser : "adam" or "lbfgs"
        The second is the batched quasi-Newton solver.
    iterations : int
        The most steps.
    learning_rate : float
        Of Adam.
    shell : "auto", "project", "penalty" or None
        What keeps ‖z‖ near √d; "auto" projects where there is no regulariser of the seed.
    stopping : bool
        Whether ES-WMV ends the search and selects; otherwise the least objective is selected and
        Adam's rate falls to zero. Of "lbfgs", which ends by itself, the end is selected.
    window, patience : int
        Of ES-WMV.
    copies : int
        Seeds searched from for each image; the image is their mean.
    memory : int
        Pairs of "lbfgs".
    start : torch.Tensor, optional
        (copies · B, *seed_shape) seeds to start from.
    """
    if optimiser not in OPTIMISERS:
        raise DataError(f"optimiser={optimiser!r} is not known: say 'adam' or 'lbfgs'.")
    if shell == "auto":
        shell = None if regulariser == "seed" else "project"
    if shell not in shells.SHELLS:
        raise DataError(f"shell={shell!r} is not known: say 'project', 'penalty' or None.")
    whole("iterations", iterations, 1)
    number("learning_rate", learning_rate, 0, open_low=True)
    if regulariser is not None:
        number("weight", weight, 0, open_low=True)
    search = SeedSearch(task, copies, shell)
    rows = search.start(task.seeds(copies) if start is None else search.given(start))
    objective = _objective(task, search, regulariser, weight, shell, _bend(task, loss))
    if optimiser == "lbfgs":
        return _by_quasi_newton(search, rows, objective, iterations, memory)
    best = descend(
        search,
        rows,
        objective,
        iterations=iterations,
        learning_rate=learning_rate,
        stopping=WindowedVariance(window, patience) if stopping else None,
        project=_projection(search) if shell == "project" else None,
        shared=search.shared(),
        decay=not stopping,
    )
    return describe(best, bool(stopping), iterations, window, patience)


def _bend(task: RestorationTask, loss: str) -> float | None:
    """Where a residual begins to count less; None where none does."""
    if loss not in LOSSES:
        raise DataError(f"loss={loss!r} is not known: say 'squared' or 'robust'")
    if loss == "squared":
        return None
    low, high = task.prior.range
    return BEND * (high - low) if math.isfinite(high - low) else BEND


def _objective(
    task: RestorationTask,
    search: SeedSearch,
    regulariser: object,
    weight: float,
    shell: str | None,
    bend: float | None,
) -> Callable[..., Tensor]:
    """The function of rows, images and residuals that both ways minimise."""
    every = torch.arange(search.copies * search.batch, device=task.y.device)

    def misfit(v: Tensor, image: Tensor, residual: Tensor, rows: Tensor | None) -> Tensor:
        if bend is None:
            return residual
        return search.residual(v, image, every if rows is None else rows, bend)

    if regulariser is None and shell != "penalty":
        return lambda v, image, residual, rows=None: misfit(v, image, residual, rows)
    spread, _ = variance(task)
    half = (task.forward.count / (2 * spread)).expand(search.batch).repeat(search.copies)
    term = None if regulariser in (None, "seed") else image_term(regulariser)

    def objective(v: Tensor, image: Tensor, residual: Tensor, rows: Tensor | None = None) -> Tensor:
        scale = half if rows is None else half[rows]
        total = scale * misfit(v, image, residual, rows)
        if regulariser == "seed":
            total = total + weight * seed_energy(search.seed(v))
        elif term is not None:
            total = total + weight * term(image)
        if shell == "penalty":
            total = total + shells.penalty(search.seed(v))
        return total

    return objective


def _projection(search: SeedSearch) -> Callable[[Tensor], None]:
    def project(v: Tensor) -> None:
        v[:, : search.dimension] = shells.project(v[:, : search.dimension])

    return project


def _by_quasi_newton(
    search: SeedSearch, rows: Tensor, objective: Callable[..., Tensor], iterations: int, memory: int
) -> RestorationOutcome:
    solved = quasi_newton(
        search,
        rows,
        objective,
        iterations=iterations,
        evaluations=4 * iterations,
        memory=memory,
        tolerance=1e-8 if rows.dtype == torch.float64 else 1e-5,
    )
    with torch.no_grad():
        answer = search.answer(solved.rows, solved.images, solved.residual, None)
    words = "interrupted: the last point called" if solved.interrupted else "the solver's end"
    return RestorationOutcome(
        image=answer.image,
        seed=search.first(search.seed(solved.rows), solved.residual),
        unknowns=answer.unknowns,
        chosen=torch.full((search.batch,), solved.calls - 1, device=rows.device),
        why=[words] * search.batch,
        status=f"{'Interrupted' if solved.interrupted else 'Ended'} after {solved.calls} calls.",
        interrupted=solved.interrupted,
    )


def describe(
    best: BestIterate, stopping: bool, iterations: int, window: int, patience: int
) -> RestorationOutcome:
    """What was selected, why, and how it ended, in words."""
    step = [int(k) for k in best.step]
    if not stopping:
        why = [f"the least objective of {best.seen} steps"] * len(step)
        end = f"all {best.seen} steps were made" if not best.interrupted else ""
    else:
        assert best.done is not None
        over = [bool(done) for done in best.done]
        why = [
            f"least variance of a window of {window} steps, not lower for {patience} more"
            if done
            else f"least variance of a window of {window} steps so far"
            if best.seen >= window
            else f"the last of {best.seen} steps: fewer than the window of {window}"
            for done in over
        ]
        end = f"{sum(over)} of {len(over)} images had stopped by themselves"
        if not all(over) and not best.interrupted:
            end += f"; iterations={iterations} ended the others: raise it to let them go on"
    status = f"Interrupted after {best.seen} steps" if best.interrupted else f"{best.seen} steps"
    return RestorationOutcome(
        image=best.image,
        seed=best.seed,
        unknowns=best.unknowns,
        chosen=best.step,
        why=why,
        status=f"{status}{'; ' if end else ''}{end}.",
        interrupted=best.interrupted,
    )
