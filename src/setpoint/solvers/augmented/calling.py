"""From functions of a tensor, a dict or a module to the augmented Lagrangian, and back.

A module is called with the variables in the place of its parameters, wherever it holds them, and
has its own again afterwards; in the end it is left with the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.augmented.solver import AugmentedLagrangian, Pass
from setpoint.solvers.result import Multipliers, Progress, Result
from setpoint.solvers.sqp.functions import Functions
from setpoint.solvers.sqp.steering import Box


class Calling:
    """(parts, batch) -> f, c (p,), e (q,).

    Parameters
    ----------
    functions : Functions
        What the user gave; with ``batched`` its functions are called with the batch beside x.
    batched : bool
    """

    def __init__(self, functions: Functions, batched: bool) -> None:
        self.functions, self.batch = functions, None
        if batched:
            functions.objective = self._beside(functions.objective)
            named = functions.sides.items()
            functions.sides = {name: tuple(map(self._beside, side)) for name, side in named}
        numbers = {id(parameter): k for k, parameter in enumerate(functions.parameters)}
        self.places: list[tuple[dict[str, Any], str, int]] = []
        for part in functions.module.modules() if functions.module is not None else ():
            held: dict[str, Any] = part._parameters  # a tied one is held in several places
            self.places += [(held, n, numbers[id(p)]) for n, p in held.items() if id(p) in numbers]

    def _beside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: function(x, self.batch)

    def __call__(self, parts: Sequence[Tensor], batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        functions, self.batch = self.functions, batch
        x: Any = functions.module
        if x is None:
            x = parts[0] if functions.single else dict(zip(functions.names, parts, strict=True))
        for held, name, k in self.places:
            held[name] = parts[k]
        try:
            f = functions._top(functions.objective(x))
            sides = [functions._side(name, x) for name in ("inequalities", "equalities")]
        finally:
            for held, name, k in self.places:
                held[name] = functions.parameters[k]
        none = f.new_zeros(0)
        c, e = (torch.cat([none, *(piece.to(f) for piece in side)]) for side in sides)
        return f, c, e


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
        Calling(functions, batches is not None),
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
