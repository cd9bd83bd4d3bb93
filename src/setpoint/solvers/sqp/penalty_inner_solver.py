"""SQP as the inner solver of a penalty's rounds: for small problems that are read whole.

    minimise f(x) + ω R(x)   subject to  μⱼ cⱼ(x) <= 0,  μⱼ eⱼ(x) = 0,  low <= x <= high

from where the round starts, for a number of steps. Gradient steps on the penalty cross and recross
its kinks; these solve the constraints with each step, at the price of a quadratic program with one
variable for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import choice, number
from setpoint.programs.constrained_problem import (
    Bounds,
    ConstrainedProblem,
    Variables,
    alike,
    variables,
)
from setpoint.solvers.sqp.bfgs_sqp import SqpRun, SqpSettings
from setpoint.solvers.sqp.functions import Functions
from setpoint.solvers.sqp.quadratic_program import SOLVERS
from setpoint.solvers.sqp.steering import Box
from setpoint.solvers.sqp.stopping import Limits

MOST = 2000  #: rows, and constraints beside a few, that a quadratic program is made of
FULL = 1000  #: variables up to which the Hessian is kept as a matrix
MEMORY = 30  #: pairs that are kept of a larger one


@dataclass(frozen=True)
class Sqp:
    """Steps of BFGS-SQP.

    Parameters
    ----------
    tolerance, feasibility : float
        As in :func:`setpoint.solve`.
    qp : {"auto", "daqp", "piqp"}
    """

    tolerance: float = 1e-6
    feasibility: float = 1e-6
    qp: str = "auto"

    def __post_init__(self) -> None:
        number("tolerance", self.tolerance, 0, open_low=True, error=KindError)
        number("feasibility", self.feasibility, 0, open_low=True, error=KindError)
        choice("qp", self.qp, SOLVERS)

    def descend(
        self,
        problem: ConstrainedProblem,
        x: Variables,
        weights: Tensor,
        *,
        strength: float = 0.0,
        steps: int = 50,
        fixed: Sequence[bool] = (),
    ) -> tuple[Variables, int]:
        """Up to so many steps from x; where they lead, and how many there were.

        Parameters
        ----------
        problem : ConstrainedProblem
        x : torch.Tensor or tuple of them
        weights : torch.Tensor
            (m,) μ, inequalities first.
        strength : float
            ω.
        steps : int
        fixed : sequence of bool
            Variables that stay as they are.
        """
        if problem.project is not None:
            raise DataError("sqp keeps bounds; a set that is no box is for gradient steps")
        if len(weights) > MOST:
            raise DataError(
                f"sqp solves a quadratic program in all {len(weights):,} constraints at once, and "
                f"takes up to {MOST:,}; take gradient steps for more"
            )
        parts = variables(x)
        names = [str(k) for k in range(len(parts))]

        def given(named: dict[str, Tensor]) -> Variables:
            return alike(x, [named[name] for name in names])

        def objective(named: dict[str, Tensor]) -> Tensor:
            f = problem.objective(given(named))
            if problem.regulariser is not None and strength:
                f = f + strength * problem.regulariser(given(named))
            return f

        def inequalities(named: dict[str, Tensor]) -> Tensor:
            assert problem.constraints is not None
            c = problem.constraints(given(named)).reshape(-1)
            return c * weights[: len(c)].to(c)

        def equalities(named: dict[str, Tensor]) -> Tensor:
            assert problem.equations is not None
            e = problem.equations(given(named)).reshape(-1)
            return e * weights[len(weights) - len(e) :].to(e)

        functions = Functions(
            objective,
            dict(zip(names, parts, strict=True)),
            () if problem.constraints is None else inequalities,
            () if problem.equations is None else equalities,
        )
        memory = None if len(functions.first) <= FULL else MEMORY
        settings = SqpSettings(self.tolerance, self.feasibility, memory, self.qp)
        box = _box(parts, problem.box(x), fixed)
        run = SqpRun(functions, box, settings, Limits(steps))
        run.begin(functions.first)
        run.go(None)
        return alike(x, functions.split(run.point.x)), run.iteration


def _box(parts: Sequence[Tensor], bounds: Sequence[Bounds], fixed: Sequence[bool]) -> Box:
    """Bounds of all variables, flat; those of a fixed one are where it is."""
    sides: tuple[list[Tensor], list[Tensor]] = ([], [])
    for k, (part, pair) in enumerate(zip(parts, bounds, strict=True)):
        is_fixed = bool(fixed) and fixed[k]
        for side, bound, fill in zip(sides, pair, (-math.inf, math.inf), strict=True):
            if is_fixed:
                bound = part.detach()
            given = torch.full_like(part, fill) if bound is None else bound.expand(part.shape)
            side.append(given.detach().reshape(-1).double())
    return Box(torch.cat(sides[0]), torch.cat(sides[1]))
