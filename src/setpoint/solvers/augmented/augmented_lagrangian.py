"""Augmented Lagrangian: prices for constraints, and a quadratic that holds x near to them.

    minimise f(x)  subject to  c(x) <= 0,  e(x) = 0,  low <= x <= high;       v = (c, e)

    L(x, λ) = f + ½ Σ ρⱼ (vⱼ + λⱼ/ρⱼ)²₊,      λ ← [λ + ρ v]₊

with *batches*, where f and v are means over them: steps of Adam on one batch after another, prices
that follow (:mod:`setpoint.solvers.augmented.minibatch_epochs`); without: rounds of L-BFGS-B with
exact values (:mod:`setpoint.solvers.augmented.exact_rounds`), for a smooth problem of too many
variables or constraints for a quadratic program in each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import number, whole
from setpoint.programs.constrained_problem import Bounds
from setpoint.solvers.augmented.exact_rounds import Rounds
from setpoint.solvers.augmented.mean_functions import (
    Balance,
    EndError,
    LostError,
    MeanFunctions,
    Meter,
    Values,
)
from setpoint.solvers.augmented.minibatch_epochs import Epochs, Feed
from setpoint.solvers.augmented.penalty_weight import START
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.result import Multipliers, Result, SolverProgress
from setpoint.solvers.sqp.functions import Functions
from setpoint.solvers.sqp.steering import Box

EXACT, NOISY = 1e-8, 1e-3  #: what may be left of a constraint or of a gradient, by default
NEAR = 10.0  #: times the feasibility: slack up to which a constraint with a price is active


@dataclass(frozen=True, eq=False)
class Pass:
    """What a callback is told after an epoch or a round.

    Attributes
    ----------
    iteration, evaluations : int
    fun, violation : float
        At the best point so far.
    seconds : float
    state : dict
        To go on from.
    """

    iteration: int
    evaluations: int
    fun: float
    violation: float
    seconds: float
    state: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Augmented:
    """The best point, and how far it is a solution.

    Attributes
    ----------
    x : list of torch.Tensor
        The parts.
    fun, violation, kkt : float
        F, the greatest max(c, 0) or |e|, ‖∇f + Jᵀ λ − z_low + z_high‖; over all batches.
    noise : float
        The standard error of that gradient, were the batches drawn at random; 0 for one batch.
    inequalities, equalities, low, high : numpy.ndarray
        The multipliers, of c (p,), e (q,) and the bounds (n,).
    success : bool
    status : str
    iterations, evaluations, gradients : int
        Steps, calls of the functions, and gradients taken.
    seconds : float
    state : dict
    """

    x: list[Tensor]
    fun: float
    violation: float
    kkt: float
    noise: float
    inequalities: np.ndarray
    equalities: np.ndarray
    low: np.ndarray
    high: np.ndarray
    success: bool
    status: str
    iterations: int
    evaluations: int
    gradients: int
    seconds: float
    state: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class AugmentedLagrangian:
    """The augmented Lagrangian, in epochs over batches or in rounds of exact values.

    Parameters
    ----------
    rate : float
        The learning rate at first; it falls along a half cosine. In the units of x.
    optimiser : {"adam", "sgd", "adamw"}
    epochs : int
        Times through the batches.
    steps : int, optional
        Batches of an epoch; all of them by default, 100 where batches is a
        callable.
    rho : float
        ρ at the start, as a multiple of the natural one
        (:mod:`setpoint.solvers.augmented.penalty_weight`).
    growth : float, optional
        By what ρ grows where a violation does not fall: 10 with exact values, 2 over batches by
        default.
    clip : float
        Largest norm of a gradient.
    every : int
        Epochs from one judging of candidates on all batches to the next.
    corrected : bool
        Whether v̂ is moved along with x, which takes one more call a step. Turn it off where the
        functions draw noise of their own (dropout): it would be added up.
    rounds : int
        Of exact values.
    """

    rate: float = 0.05
    optimiser: str = "adam"
    epochs: int = 50
    steps: int | None = None
    rho: float = START
    growth: float | None = None
    clip: float = math.inf
    every: int = 1
    corrected: bool = True
    rounds: int = 50

    def __post_init__(self) -> None:
        for name in ("epochs", "every", "rounds", *(["steps"] if self.steps is not None else [])):
            whole(name, getattr(self, name), 1, floats=True, error=KindError)
        number("rho", self.rho, 0, open_low=True, error=KindError)
        if self.growth is not None:
            number("growth", self.growth, 1, error=KindError)
        number("rate", self.rate, 0, open_low=True, error=KindError)
        _ = self.primal  # it checks the rest

    @property
    def primal(self) -> FirstOrder:
        """The steps for x."""
        return FirstOrder(self.rate, self.optimiser, weight_decay=0.0, clip=self.clip, final=1e-3)

    def solve(
        self,
        values: Values,
        parts: Sequence[Tensor],
        *,
        box: Sequence[Bounds] | None = None,
        batches: Any = None,
        tolerance: float | None = None,
        feasibility: float | None = None,
        max_evaluations: float | None = None,
        max_seconds: float | None = None,
        callback: Callable[[Pass], Any] | None = None,
        resume: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> Augmented:
        """Solve from a start, or go on from the ``state`` of an earlier run.

        Parameters
        ----------
        values : callable
            (parts, batch) -> f scalar, c (p,), e (q,); ``batch`` is None where there are none.
        parts : sequence of torch.Tensor
            Where to start; not changed.
        box : sequence of (low, high), optional
            Bounds of each part, tensors that broadcast to it or None.
        batches : iterable or callable, optional
            See :class:`setpoint.solvers.augmented.minibatch_epochs.Feed`. Each counts the same.
        tolerance, feasibility : float, optional
            kkt over 1 + ‖∇f‖ at the start, and violation, up to which it is solved: 1e-8, or 1e-3
            with batches. With batches a kkt within its noise is enough.
        max_evaluations, max_seconds : number, optional
            What is judged after a limit comes on top of it.
        callback : callable, optional
            Told a :class:`Pass` after each epoch or round; what is true of its answer ends the run.
        resume : dict, optional
        seed : int
            Of the order of batches.
        """
        meter = Meter(values, max_evaluations, max_seconds)
        try:
            run = self._begun(meter, parts, box, batches, tolerance, feasibility, seed)
        except LostError as lost:
            return _nowhere(parts, f"{lost}; start where the functions have values", meter)
        if resume is not None:
            _fits(resume, run)
            run.take_up(resume)
        state, why = run.state(), ""
        last = self.epochs if isinstance(run, Epochs) else self.rounds
        run.meter.open = False
        try:
            while run.number < last and not run.ended and not run.stuck:
                run.advance()
                state = run.state()
                figures = run.number, run.meter.evaluations, run.best["f"], run.best["worst"]
                if callback is not None and callback(Pass(*figures, run.meter.spent, state)):
                    why = f"stopped by the callback after {run.count()}"
                    break
            run.meter.open = True
            if not why:
                run.finish()
        except (EndError, LostError) as end:
            why = str(end)
        except KeyboardInterrupt:
            why = f"interrupted after {run.count()}"
        run.meter.open = True
        return _concluded(run, state, why)

    def _begun(
        self,
        meter: Meter,
        parts: Sequence[Tensor],
        box: Sequence[Bounds] | None,
        batches: Any,
        tolerance: float | None,
        feasibility: float | None,
        seed: int,
    ) -> Epochs | Rounds:
        if not parts or not all(isinstance(p, Tensor) and p.is_floating_point() for p in parts):
            raise DataError("parts is a sequence of one or more tensors of real numbers")
        usual = EXACT if batches is None else NOISY
        coarse = max(torch.finfo(part.dtype).eps for part in parts) ** 0.5
        coarse = coarse if coarse > 1e-6 else 0.0
        near = max(usual if tolerance is None else tolerance, 10 * coarse)
        allowed = max(usual if feasibility is None else feasibility, coarse / 10)
        sides = [(None, None)] * len(parts) if box is None else list(box)
        if batches is None:
            return Rounds(self, MeanFunctions(meter, [None], sides), meter, parts, allowed, near)
        feed = Feed(batches, self.steps, seed)
        functions = MeanFunctions(meter, feed.whole, sides)
        return Epochs(
            solver=self,
            whole=functions,
            feed=feed,
            meter=meter,
            parts=parts,
            feasibility=allowed,
            tolerance=near,
        )


def _fits(state: dict[str, Any], run: Epochs | Rounds) -> None:
    shapes = [tuple(part.shape) for part in state.get("x", [])]
    here = [tuple(part.shape) for part in run.best["x"]]
    if state.get("kind") != run.kind or shapes != here:
        raise DataError(
            f"resume is the state of another problem, of kind {state.get('kind')!r} with shapes "
            f"{shapes}; this one is of kind {run.kind!r} with shapes {here}"
        )


def _nowhere(parts: Sequence[Tensor], why: str, meter: Meter) -> Augmented:
    """The start, where the functions have no value there."""
    x, none = [part.detach().clone() for part in parts], np.zeros(0)
    spent = meter.evaluations, meter.gradients, meter.spent
    no = math.nan
    return Augmented(x, no, no, no, no, none, none, none, none, False, why, 0, *spent, {})


def _balance(run: Epochs | Rounds) -> Balance:
    """The conditions at the best point, with the better of two readings of the multipliers."""
    best, slack = run.best, run.feasibility
    paid = best["paid"]
    active = run.equal | (best["v"] >= -slack) | ((paid > 0) & (best["v"] >= -NEAR * slack))
    return run.whole.balance(best["x"], paid, active, run.equal, slack)


def _concluded(run: Epochs | Rounds, state: dict[str, Any], why: str) -> Augmented:
    best = run.best
    balance = _balance(run)
    limit = run.tolerance * run.steepest
    noisy = balance.residual > limit and balance.residual <= balance.noise
    optimal = balance.residual <= limit or noisy
    feasible = best["worst"] <= run.feasibility
    run.ended |= optimal and feasible
    paid, count = balance.paid.double().cpu().numpy(), int((~run.equal).sum())
    low, high = (side.numpy() for side in balance.bound_forces())
    return Augmented(
        x=best["x"],
        fun=best["f"],
        violation=best["worst"],
        kkt=balance.residual,
        noise=balance.noise,
        inequalities=paid[:count],
        equalities=paid[count:],
        low=low,
        high=high,
        success=optimal and feasible,
        status=_status(run, why, feasible, optimal, balance, noisy),
        iterations=run.step,
        evaluations=run.meter.evaluations,
        gradients=run.meter.gradients,
        seconds=run.meter.spent,
        state=state,
    )


def _status(
    run: Epochs | Rounds, why: str, feasible: bool, optimal: bool, balance: Balance, noisy: bool
) -> str:
    worst = run.best["worst"]
    keeps = (
        f"keeps every constraint within {run.feasibility:g}"
        if feasible
        else f"breaks a constraint by {worst:.3g}"
    )
    if optimal:
        within = (
            f"kkt {balance.residual:.2g} is within the noise of the batches, {balance.noise:.2g}"
            if noisy
            else f"kkt is {balance.residual:.2g}"
        )
    else:
        noise = f" (noise of the batches {balance.noise:.2g})" if balance.noise else ""
        within = f"kkt is still {balance.residual:.2g}{noise}"
    end = why or run.ending()
    return f"{end}; the best point {keeps}, and its {within}"


# From functions of a tensor, a dict or a module to the augmented Lagrangian, and back.


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
    callback: Callable[[SolverProgress], Any] | None = None,
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
        progress = SolverProgress(
            what="augmented Lagrangian",
            done=seen.iteration,
            evaluations=seen.evaluations,
            fun=seen.fun,
            violation=seen.violation,
            kkt=math.nan,
            step=math.nan,
            mu=1.0,
            iterate=lambda: functions.copied(_flat(seen.state["best"]["x"])),
        )
        return callback(progress)

    solution = solver.solve(
        calling(functions, batches is not None),
        parts,
        box=sides,
        batches=batches,
        callback=None if callback is None else told,
        **options,
    )
    paid = Multipliers(solution.inequalities, solution.equalities, solution.low, solution.high)
    return Result(
        x=functions.given(_flat(solution.x)),
        fun=solution.fun,
        violation=solution.violation,
        kkt=solution.kkt,
        multipliers=paid,
        success=solution.success,
        status=solution.status,
        iterations=solution.iterations,
        evaluations=solution.evaluations,
        gradients=solution.gradients,
        seconds=solution.seconds,
        plan=plan,
        bundle=None,
        state=solution.state,
    )


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.detach().reshape(-1).double() for part in parts])
