"""From functions of a tensor, a dict or a module to the augmented Lagrangian, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.augmented.augmented_lagrangian import AugmentedLagrangian, Pass
from setpoint.solvers.result import Multipliers, Progress, Result
from setpoint.solvers.sqp.functions import Functions
from setpoint.solvers.sqp.steering import Box

Values = Callable[[Sequence[Tensor], Any], tuple[Tensor, Tensor, Tensor]]


def calling(functions: Functions, batched: bool) -> Values:
    """(parts, batch) -> f, c (p,), e (q,); ``batched`` functions get the batch beside x."""

    def values(parts: Sequence[Tensor], batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        f, *sides = functions.read(parts, *((batch,) if batched else ()))
        none = f.new_zeros(0)
        e, c = (torch.cat([none, *(piece.to(f) for piece in side)]) for side in sides)
        return f, c, e

    return values


def solved(
    solver: AugmentedLagrangian,
    functions: Functions,
    box: Box | None,
    plan: str,
    *,
    batches: Any = None,
    callback: Callable[[Progress], Any] | None = None,
    **options: Any,
) -> Result:
    """The result of :meth:`AugmentedLagrangian.solve` for what the user gave.

    Parameters
    ----------
    solver : AugmentedLagrangian
    functions : Functions
    box : Box, optional
        Over the flat x.
    plan : str
    batches : iterable or callable, optional
    callback : callable, optional
        Told of the best point so far, after each epoch or round.
    **options
        tolerance, feasibility, max_evaluations, max_seconds, resume, seed.
    """
    parts = functions.split(functions.first)
    sides = None
    if box is not None:
        pairs = zip(functions.split(box.low), functions.split(box.high), strict=True)
        sides = [(low, high) for low, high in pairs]

    def told(seen: Pass) -> Any:
        assert callback is not None
        unknown = math.nan
        at = lambda: functions.copied(_flat(seen.state["best"]["x"]))  # noqa: E731
        progress = Progress(
            seen.iteration, seen.evaluations, seen.fun, seen.violation, unknown, unknown, 1.0, at
        )
        return callback(progress)

    found = solver.solve(
        calling(functions, batches is not None),
        parts,
        box=sides,
        batches=batches,
        callback=None if callback is None else told,
        **options,
    )
    paid = Multipliers(found.inequalities, found.equalities, found.low, found.high)
    return Result(
        functions.given(_flat(found.x)),
        found.fun,
        found.violation,
        found.kkt,
        paid,
        found.success,
        found.status,
        found.iterations,
        found.evaluations,
        found.gradients,
        found.seconds,
        plan,
        None,
        found.state,
    )


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.detach().reshape(-1).double() for part in parts])
