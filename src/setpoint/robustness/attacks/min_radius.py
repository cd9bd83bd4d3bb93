"""The nearest image that is decided otherwise: min d(x, x') s.t. margin ≥ 0 and x' in the box.

    min_u ‖u‖_p   s.t.   max_{j≠y} z_j(x + u) ≥ z_y(x + u),   low ≤ x + u ≤ high

for norms by exact projections on the linearised decision surface (``nearing``), started against
every class and at random (``racing``), and a bisection back to the surface. Any other distance goes
to the constrained solver (``general``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack import AttackResult, Pace
from setpoint.robustness.attacks.attack_problem import Posed, checked, pose
from setpoint.robustness.attacks.bisection import pulled_back
from setpoint.robustness.attacks.boundary_projection import Course, NearestBoundary, near
from setpoint.robustness.attacks.distances import Distance, Measure, as_distance, norms
from setpoint.robustness.attacks.general_distance import general_min_radius
from setpoint.robustness.attacks.model_probe import BATCH, Model
from setpoint.robustness.attacks.projections import reach
from setpoint.robustness.attacks.random_starts import Draws
from setpoint.robustness.attacks.start_selection import heats, race

#: Uniform images drawn for an image that no start has moved over the surface.
_RESCUES = 8


def min_radius(
    model: Model,
    x: Tensor,
    y: Tensor,
    distance: str | Measure | Distance,
    *,
    target: Tensor | int | None = None,
    restarts: int = 3,
    iterations: int = 100,
    rivals: int = 9,
    seed: int | Sequence[int] | Tensor = 0,
    low: float = 0.0,
    high: float = 1.0,
    batch: int = BATCH,
    progress: Callable[[float], object] | None = None,
    **options: Any,
) -> AttackResult:
    """For each image the nearest one that the model decides otherwise.

    Parameters
    ----------
    model : callable
        Images (B, *shape) -> logits (B, K), in evaluation mode. It is not changed.
    x, y : Tensor (B, *shape), Tensor (B,)
        Images inside the box, and their classes.
    distance : str, callable or Distance
        ``"l1"``, ``"l2"``, ``"linf"``, ``"l<p>"``; or a differentiable function, see ``general``.
    target : Tensor (B,), int or None
        The class to be decided for; None: any other than y.
    restarts : int
        Random starts besides those at the image itself.
    iterations : int
        Steps of the line that wins; see ``racing``.
    rivals : int
        Classes that are tried first, in the order of their logits.
    seed : int, or one for each image
        Of the random starts.
    low, high : float
        The box.
    batch : int
        Rows put through the model at once.
    progress : callable or None
        Told the share done, from 0 to 1.
    **options
        For a distance that is a function: what ``general_min_radius`` takes besides.

    Returns
    -------
    AttackResult
        Where nothing was found, the last point tried, and its ``violation`` is above 0.

    Examples
    --------
    A linear model has a closed form: the margin over the norm of the difference of its weights.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> found = min_radius(model, x, y, "l2", low=-2.0, high=2.0)
    >>> round(float((found.x - 0.5).norm()), 3)
    0.7
    """
    measure = as_distance(distance)
    if measure.p is None:
        return general_min_radius(
            model, x, y, measure, target=target, restarts=restarts, iterations=iterations,
            seed=seed, low=low, high=high, batch=batch, progress=progress, **options,
        )  # fmt: skip
    checked(options, restarts, iterations, rivals)
    posed = pose(model, x, y, target, low, high, seed, batch=batch)
    if not len(x):
        return AttackResult(x, x.new_zeros(0), x.new_zeros(0), torch.zeros(0, dtype=torch.long), 0)
    plan = heats(iterations, rivals, restarts)
    pace = Pace(plan.turns + 1, progress)
    draws = Draws(posed.seeds, posed.rows.clean)
    nearest, taken = race(posed, measure.p, plan, draws, pace.tick)
    nearest, extra = _rescued(posed, measure.p, nearest, plan.second, draws)
    moves = torch.where(nearest.radius.isfinite()[:, None], nearest.moves, nearest.last)
    moves = pulled_back(posed.probe, posed.rows, moves)
    moves = torch.where((posed.margins >= 0)[:, None], 0.0, moves)
    pace.end()
    return _told(posed, moves, measure.p, taken + extra)


def _rescued(
    posed: Posed, p: float, nearest: NearestBoundary, course: Course, draws: Draws
) -> tuple[NearestBoundary, Tensor]:
    """Images with nothing found start once more, from a uniform one that is decided otherwise."""
    lost = ~nearest.radius.isfinite()
    extra = torch.zeros_like(lost, dtype=torch.long)
    index = lost.nonzero()[:, 0]
    if not len(index):
        return nearest, extra
    rows, least = posed.rows.take(index), torch.full_like(posed.rows.floor[index], torch.inf)
    start = nearest.last[index]
    for _ in range(_RESCUES):
        spot = draws.uniform(rows.clean.shape[1])[index]
        trial = rows.inside(rows.low + spot * (rows.high - rows.low))
        wanted = posed.probe.margins(rows.clean + trial, rows.labels) >= rows.floor
        size = torch.where(wanted, norms(trial, p), torch.inf)
        start = torch.where((size < least)[:, None], trial, start)
        least = torch.minimum(least, size)
    start = pulled_back(posed.probe, rows, start)
    again = near(posed.probe, rows, start, p, course)
    extra[index] = course.iterations
    return NearestBoundary(
        nearest.radius.index_copy(0, index, again.radius),
        nearest.moves.index_copy(0, index, again.moves),
        nearest.last.index_copy(0, index, again.last),
    ), extra


def _told(posed: Posed, moves: Tensor, p: float, taken: Tensor) -> AttackResult:
    """The record: what is missing of the margin, and the first-order gap of the distance."""
    rows = posed.rows
    seen = posed.probe.look(rows.clean + moves, rows.labels)
    size = norms(moves, p)
    level = (seen.gradient * moves).sum(1) - seen.margin
    nearest = norms(reach(seen.gradient, rows.low, rows.high, level, p), p)
    gap = (1.0 - nearest / torch.where(size > 0, size, 1.0)).clamp(min=0.0)
    return AttackResult(
        posed.images(moves),
        torch.where(size > 0, gap, 0.0),
        (-seen.margin).clamp(min=0.0),
        taken.to(torch.long),
        posed.probe.forwards,
    )
