"""Exact penalty: constraints as kinks, made steeper round by round until they hold.

    minimise f(x)  subject to  c(x) <= 0,  e(x) = 0,  low <= x <= high

    φ(x) = f(x) + Σⱼ μⱼ [cⱼ(x)]₊ + Σⱼ μⱼ |eⱼ(x)| + ω R(x)

Once μⱼ is greater than the multiplier |λⱼ| of a solution, that solution minimises φ: a finite μ is
enough. The square (``power=2``: ½ μ [c]₊², for comparison) has no kink and leaves a violation of
about λ/μ at every μ. φ is descended by projected gradient steps, in rounds: after each, μⱼ grows
where its constraint is broken, up to a cap, and ω grows to a cap of its own. A weak start lets x go
where it would before it is held (homotopy); a strong one freezes it where it starts. Scale a
constraint and its μ, its multiplier and its tolerance scale with it.

References
----------
Han, Mangasarian, Exact penalty functions in nonlinear programming, 1979; Nocedal, Wright, Numerical
optimization, 2006, section 17.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.reals import is_real
from setpoint.programs.constrained_problem import Problem, Variables
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.penalty_run import Run
from setpoint.solvers.solution import Solution
from setpoint.solvers.sqp.penalty_inner_solver import Sqp


@dataclass(frozen=True, eq=False)
class Round:
    """What is told after a round.

    Attributes
    ----------
    round : int
        How many are done.
    objective, violation : float
        F, and by how much the most broken constraint is broken, at its end.
    weights : torch.Tensor
        (m,) μ in it.
    strength : float
        ω in it.
    steps : int
        How many it took.
    state : dict
        To go on from.
    """

    round: int
    objective: float
    violation: float
    weights: Tensor
    strength: float
    steps: int
    state: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ExactPenalty:
    """Projected gradient steps on f + Σ μ [c]₊ + Σ μ |e| + ω R, with μ and ω that grow.

    Parameters
    ----------
    primal : FirstOrder or Sqp
        What takes the steps of a round. A first-order one's rate falls over all rounds, and its
        state is kept from one round to the next; :class:`Sqp` is for few constraints, and starts
        anew with each.
    rates : tuple of float
        For each variable a multiple of the learning rate; 0 keeps it where it is. None given: 1.
    power : {1, 2}
        Of the penalty; 1 is exact.
    weight, weight_growth, weight_cap : float
        μ of the first round, its factor after a round in which the constraint is broken by more
        than the tolerance, and its greatest value.
    strength, strength_growth, strength_cap : float
        The same for ω, which grows after every round.
    rounds, steps : int
        The most of them, and the most steps in each.
    patience : int
        Steps without progress of φ after which a round ends.
    every : int
        Steps within a round from one candidate for the best iterate to the next; 0: only where
        rounds end.
    tolerance : float
        What a constraint may be broken by.
    stationary : float
        It ends before the last round where the constraints hold, ω has grown up, and the residual
        of stationarity is this share of the greatest gradient of f + ω R seen.
    """

    primal: FirstOrder | Sqp = field(
        default_factory=lambda: FirstOrder(
            0.02, "adam", weight_decay=0.0, clip=math.inf, final=0.01
        )
    )
    rates: tuple[float, ...] = ()
    power: int = 1
    weight: float = 1.0
    weight_growth: float = 1.3
    weight_cap: float = 1e3
    strength: float = 0.1
    strength_growth: float = 1.2
    strength_cap: float = 2.0
    rounds: int = 50
    steps: int = 200
    patience: int = 50
    every: int = 0
    tolerance: float = 1e-3
    stationary: float = 1e-3

    def __post_init__(self) -> None:
        if self.power not in (1, 2):
            raise KindError(f"power={self.power!r}: 1 (exact) or 2")
        if self.power != 1 and isinstance(self.primal, Sqp):
            raise KindError("power=2 is for gradient steps; Sqp solves the constraints themselves")
        for name, least in (("rounds", 1), ("steps", 1), ("patience", 1), ("every", 0)):
            x = getattr(self, name)
            if not is_real(x) or x < least or x % 1:
                raise KindError(f"{name}={x!r}: a whole number, {least} or more")
            object.__setattr__(self, name, int(x))
        for name in ("strength", "tolerance", "stationary"):
            x = getattr(self, name)
            if not is_real(x) or not 0 <= x < math.inf:
                raise KindError(f"{name}={x!r}: a number, 0 or more")
        if not is_real(self.weight) or not 0 < self.weight < math.inf:
            raise KindError(f"weight={self.weight!r}: a positive number")
        for name in ("weight", "strength"):
            growth, cap = getattr(self, f"{name}_growth"), getattr(self, f"{name}_cap")
            if not is_real(growth) or not 1 <= growth < math.inf:
                raise KindError(f"{name}_growth={growth!r}: a number, 1 or more")
            if not is_real(cap) or not getattr(self, name) <= cap < math.inf:
                raise KindError(f"{name}_cap={cap!r}: a number, {name} or more")
        if not isinstance(self.rates, tuple) or not all(
            is_real(x) and 0 <= x < math.inf for x in self.rates
        ):
            raise KindError(f"rates={self.rates!r}: a tuple of numbers, 0 or more")

    def solve(
        self,
        problem: Problem,
        x: Variables,
        *,
        resume: Any = None,
        until: int | None = None,
        weights: Tensor | None = None,
        settle: Callable[[Any], Any] | None = None,
        judge: Callable[[Any], Any] | None = None,
        listener: Callable[[Round], Any] | None = None,
    ) -> Solution:
        """Solve from x, or go on from the ``state`` of an earlier solution or round.

        Parameters
        ----------
        problem : Problem
        x : torch.Tensor or tuple of them
            Where to start; not changed. Put into its bounds it is the first candidate.
        resume : dict, optional
        until : int, optional
            Stop after so many of the rounds.
        weights : torch.Tensor, optional
            (m,) a multiple of μ for each constraint, inequalities first: it starts at ``weight``
            times it, and its cap is ``weight_cap`` times it. For constraints that come as thousands
            of small parts of one thing, and are to be held to the tolerance each.
        settle : callable, optional
            x -> x, called after each round: a step of the caller's own, such as the exact minimum
            over one of the variables.
        judge : callable, optional
            x -> tuple of numbers. The candidate with the greatest is the best; without it the one
            with the least f that keeps the constraints, or the one that breaks them least.
        listener : callable, optional
            Is told a :class:`Round` after each; what is true of its answer ends the run.
        """
        if problem.noisy or problem.proxies is not None:
            raise DataError(
                "the exact penalty descends the constraints as they are; a problem with noise or "
                "proxies is for PrimalDual"
            )
        run = Run(self, problem, x, judge)
        run.begin(weights) if resume is None else run.take_up(resume)
        last = self.rounds if until is None else min(until, self.rounds)
        while run.round < last and not run.ended:
            taken = run.descend()
            if settle is not None:
                run.put(settle(run.at()), "settle")
            run.close()
            if listener is not None:
                told = run.objectives[-1], run.worst[-1], run.weights.clone(), run.strength
                if listener(Round(run.round, *told, taken, run.state())):
                    break
        return run.solution()
