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
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import choice, number, numbers, whole
from setpoint.programs.constrained_problem import (
    Bounds,
    ConstrainedProblem,
    Variables,
    alike,
    variables,
)
from setpoint.solvers.box_projection import project, started
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.kkt import Kkt, kkt
from setpoint.solvers.result import Solution
from setpoint.solvers.sqp.penalty_inner_solver import Sqp

# A run of the exact penalty: the variables, what they pay, and the best of them so far.


PROGRESS = 1e-6  #: a relative change of φ this small is none
CHEAP = 32  #: active constraints up to which each round asks whether it has come to an optimum

Judge = Callable[[Any], Any]


class PenaltyRun:
    """What is under way; it changes, and :meth:`state` is all of it."""

    def __init__(
        self,
        solver: ExactPenalty,
        problem: ConstrainedProblem,
        x: Variables,
        judge: Judge | None,
        chosen_as: str,
    ) -> None:
        self.solver = solver
        self.problem = problem
        self.judge = judge
        self.chosen_as = chosen_as
        self.like = x
        if not variables(x) or not all(
            isinstance(p, Tensor) and p.is_floating_point() for p in variables(x)
        ):
            raise DataError("x is a tensor of real numbers, or a tuple of one or more of them")
        self.leaves = [part.detach().clone().requires_grad_() for part in variables(x)]
        self.box: tuple[Bounds, ...] = problem.box(x)
        self._inside()
        self.stepped = not isinstance(solver.primal, Sqp)  #: by gradients
        if isinstance(solver.primal, FirstOrder):
            self.optimiser = started(solver.primal, self.leaves, solver.rates)
        self.round, self.ended = 0, False
        self.strength = float(solver.strength) if problem.regulariser is not None else 0.0
        self.objectives: list[float] = []
        self.worst: list[float] = []
        self.steepest = 0.0
        self.best: dict[str, Any] = {}

    def begin(self, weights: Tensor | None) -> None:
        """The first round's μ, and the start as the first candidate."""
        f, v, broken = self.read()
        scale = torch.ones_like(v) if weights is None else torch.as_tensor(weights).detach().to(v)
        if scale.shape != v.shape or not bool(((scale > 0) & scale.isfinite()).all()):
            raise DataError(
                f"weights of shape {tuple(scale.shape)} for {len(v)} constraints: a positive "
                "number for each"
            )
        self.weights, self.caps = self.solver.weight * scale, self.solver.weight_cap * scale
        self.paid = torch.zeros_like(self.weights)
        self.steepest = self._conditions(self.at(), most=0, thorough=False).gradient
        self._enter(f, v, broken)

    def take_up(self, state: Any) -> None:
        """Go on from a state."""
        self.put(alike(self.like, state["x"]), "resume", inside=True)
        if self.stepped:  # a copy, since the state may be taken up again
            self.optimiser.load_state_dict(deepcopy(state["optimiser"]))
        _, v, self.broken = self.read()
        vectors = (state[name].to(v, copy=True) for name in ("weights", "caps", "paid"))
        self.weights, self.caps, self.paid = vectors
        self.round, self.strength = int(state["round"]), float(state["strength"])
        self.objectives, self.worst = list(state["objectives"]), list(state["worst"])
        self.steepest, self.ended = float(state["steepest"]), bool(state["ended"])
        best = dict(state["best"])
        parts = zip(best["x"], self.leaves, strict=True)
        self.best = best | {"x": tuple(part.to(leaf, copy=True) for part, leaf in parts)}

    def descend(self) -> int:
        """A round of steps; how many there were."""
        solver, primal = self.solver, self.solver.primal
        if self.round:
            self._grow()
        if isinstance(primal, Sqp):
            return self._solved(primal)
        all_steps = solver.rounds * solver.steps
        least, since = math.inf, 0
        self.paid = torch.zeros_like(self.weights)
        for step in range(solver.steps):
            phi = self._penalised()
            value = float(phi.detach())
            if not math.isfinite(value):
                raise self._lost(f"step {step} of round {self.round}", value)
            for leaf, slope in zip(self.leaves, self._slopes(phi), strict=True):
                leaf.grad = slope
            primal.step(self.optimiser, self.round * solver.steps + step, all_steps)
            self._inside()
            if solver.every and (step + 1) % solver.every == 0:
                self._offer(*self.read())
            if value < least - PROGRESS * abs(least) or least == math.inf:
                least, since = value, 0
            elif (since := since + 1) >= solver.patience:
                break
        self.paid *= self.weights / (step + 1)
        return step + 1

    def _solved(self, primal: Sqp) -> int:
        """A round of SQP in place of gradient steps."""
        fixed = [rate == 0 for rate in self.solver.rates]
        strength, steps = self.strength, self.solver.steps
        x, taken = primal.descend(
            self.problem, self.at(), self.weights, strength=strength, steps=steps, fixed=fixed
        )
        self.put(x, "sqp")
        return taken

    def put(self, x: Any, name: str, inside: bool = False) -> None:
        """Take over variables of the same shapes."""
        leaves = variables(x)
        shapes = [tuple(getattr(part, "shape", ())) for part in leaves]
        if shapes != [tuple(leaf.shape) for leaf in self.leaves]:
            expected = [tuple(leaf.shape) for leaf in self.leaves]
            raise DataError(f"{name} gave variables of shapes {shapes}; x has {expected}")
        with torch.no_grad():
            for leaf, part in zip(self.leaves, leaves, strict=True):
                leaf.copy_(torch.as_tensor(part))
        if not inside:
            self._inside()

    def close(self) -> None:
        """The end of a round: a candidate, and the question whether it is an optimum."""
        self.round += 1
        self._enter(*self.read())
        grown = not self.strength or self.strength >= self.solver.strength_cap
        if self.worst[-1] <= self.solver.tolerance and grown:
            conditions = self._conditions(self.at(), most=CHEAP, thorough=False)
            self.steepest = max(self.steepest, conditions.gradient)
            self.ended = conditions.stationarity <= self.solver.stationary * self.steepest

    def at(self) -> Variables:
        """x, as it was given."""
        return alike(self.like, [leaf.detach().clone() for leaf in self.leaves])

    def read(self) -> tuple[float, Tensor, Tensor]:
        """F, v and by how much each is broken."""
        with torch.no_grad():
            at = alike(self.like, [leaf.detach() for leaf in self.leaves])
            f = float(self.problem.objective(at))
            c, e = self.problem.sides(at)
            v, broken = torch.cat([c, e]), torch.cat([c.relu(), e.abs()])
        if not math.isfinite(f) or not bool(torch.isfinite(v).all()):
            raise self._lost(f"the end of round {self.round}" if self.round else "the start", f)
        return f, v, broken

    def state(self) -> dict[str, Any]:
        """To go on from."""
        return {
            "round": self.round,
            "x": variables(self.at()),
            "optimiser": deepcopy(self.optimiser.state_dict()) if self.stepped else {},
            "weights": self.weights.clone(),
            "caps": self.caps.clone(),
            "paid": self.paid.clone(),
            "strength": self.strength,
            "objectives": list(self.objectives),
            "worst": list(self.worst),
            "steepest": self.steepest,
            "best": dict(self.best),
            "ended": self.ended,
        }

    def solution(self) -> Solution:
        """What it came to."""
        best = self.best
        x = alike(self.like, best["x"])
        # a projection that is no box is asked for in every pass of the thorough way
        conditions = self._conditions(x, thorough=self.problem.project is None)
        return Solution(
            x=self.at(),
            best=x,
            objective=best["objective"],
            violations=best["violations"].double().cpu().numpy(),
            multipliers=conditions.multipliers,
            objectives=np.array(self.objectives),
            snapshots=np.array(self.worst)[:, None],
            status=self._status(best["worst"]),
            state=self.state(),
            penalty=self.weights.double().cpu().numpy(),
            paid=self.paid.double().cpu().numpy(),
            strength=self.strength,
            stationarity=conditions.stationarity,
            complementarity=conditions.complementarity,
            how=conditions.how,
        )

    def _inside(self) -> None:
        """Put x back into its bounds."""
        project(self.leaves, self.box)
        if self.problem.project is not None:
            with torch.no_grad():
                point = alike(self.like, [leaf.detach() for leaf in self.leaves])
                parts = variables(self.problem.project(point))
                for leaf, part in zip(self.leaves, parts, strict=True):
                    leaf.copy_(part)

    def _penalised(self) -> Tensor:
        """φ at x; what it pays is added up."""
        at = alike(self.like, self.leaves)
        c, e = self.problem.sides(at)
        broken = torch.cat([c.relu(), e.abs()])
        signed = torch.cat([broken[: len(c)], e]).detach()
        self.paid += signed.sign() if self.solver.power == 1 else signed
        if self.solver.power == 2:
            broken = 0.5 * broken.square()
        phi = self.problem.objective(at) + (self.weights * broken).sum()
        if self.problem.regulariser is not None and self.strength:
            phi = phi + self.strength * self.problem.regulariser(at)
        return phi

    def _slopes(self, phi: Tensor) -> Sequence[Tensor | None]:
        # not phi.backward(): it would leave gradients in tensors that are not ours to move
        return torch.autograd.grad(phi, self.leaves, allow_unused=True)

    def _grow(self) -> None:
        """μ grows where its constraint is broken, ω everywhere; both up to their caps."""
        solver = self.solver
        grown = (self.weights * solver.weight_growth).minimum(self.caps)
        self.weights = torch.where(self.broken > solver.tolerance, grown, self.weights)
        self.strength = min(self.strength * solver.strength_growth, float(solver.strength_cap))

    def _enter(self, f: float, v: Tensor, broken: Tensor) -> None:
        """A start or the end of a round."""
        self.broken = broken
        self.objectives.append(f)
        self.worst.append(_greatest(broken))
        self._offer(f, v, broken)

    def _offer(self, f: float, v: Tensor, broken: Tensor) -> None:
        """A candidate for the best; of equals the first stays."""
        worst = _greatest(broken)
        rank = (-worst if worst > self.solver.tolerance else 0.0, -f)
        if self.judge is not None:
            rank = _ranked(self.judge(self.at()))
        if not self.best or rank > self.best["rank"]:
            self.best = {
                "x": variables(self.at()),
                "objective": f,
                "violations": v.clone(),
                "worst": worst,
                "rank": rank,
            }

    def _conditions(self, x: Variables, **options: Any) -> Kkt:
        solver = self.solver
        return kkt(
            self.problem,
            x,
            self.weights if self.stepped else torch.full_like(self.caps, torch.inf),
            strength=self.strength,
            power=solver.power,
            tolerance=solver.tolerance,
            **options,
        )

    def _status(self, worst: float) -> str:
        solver = self.solver
        which = self.chosen_as if self.judge is not None else "the best iterate"
        early = ", where it came to rest," if self.ended else ""
        done = f"after {self.round} of {solver.rounds} rounds{early} {which}"
        if worst <= solver.tolerance:
            return f"{done} keeps every constraint within {solver.tolerance:g}"
        capped = int((self.weights >= self.caps).sum())
        more = f"; {capped} of its weights are at weight_cap={solver.weight_cap:g}" * (capped > 0)
        return f"{done} breaks a constraint by {worst:.3g}{more}"

    def _lost(self, when: str, value: float) -> DataError:
        return DataError(
            f"at {when} the objective, a constraint or the regulariser is {value:g} or not finite; "
            "take a smaller learning rate or a better start"
        )


def _ranked(judged: Any) -> tuple[float, ...]:
    """A judgement as plain numbers, which can be kept and compared."""
    values = judged if isinstance(judged, tuple | list) else (judged,)
    rank = tuple(float(x) for x in values)
    if not rank or any(math.isnan(x) for x in rank):
        raise DataError(f"judge gave {judged!r}; a tuple of one or more numbers is compared")
    return rank


def _greatest(x: Tensor) -> float:
    return float(x.max()) if x.numel() else 0.0


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
        μ of the first round (1), its factor after a round in which the constraint is broken by
        more than the tolerance (1.3), and its greatest value (1000).
    strength, strength_growth, strength_cap : float
        The same for ω, which grows after every round (0.1, 1.2 and 2).
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
        choice("power", self.power, (1, 2))
        if self.power != 1 and isinstance(self.primal, Sqp):
            raise KindError("power=2 is for gradient steps; Sqp solves the constraints themselves")
        for name, least in (("rounds", 1), ("steps", 1), ("patience", 1), ("every", 0)):
            count = whole(name, getattr(self, name), least, floats=True, error=KindError)
            object.__setattr__(self, name, count)
        for name in ("strength", "tolerance", "stationary"):
            number(name, getattr(self, name), 0, error=KindError)
        number("weight", self.weight, 0, open_low=True, error=KindError)
        for name in ("weight", "strength"):
            number(f"{name}_growth", getattr(self, f"{name}_growth"), 1, error=KindError)
            least = getattr(self, name)
            number(f"{name}_cap", getattr(self, f"{name}_cap"), least, error=KindError)
        if not isinstance(self.rates, tuple):
            raise KindError(f"rates={self.rates!r}: a tuple of numbers, 0 or more")
        if self.rates:
            numbers("rates", self.rates, 0, error=KindError)

    def solve(
        self,
        problem: ConstrainedProblem,
        x: Variables,
        *,
        resume: Any = None,
        until: int | None = None,
        weights: Tensor | None = None,
        settle: Callable[[Any], Any] | None = None,
        judge: Callable[[Any], Any] | None = None,
        chosen_as: str = "the iterate judged best",
        listener: Callable[[Round], Any] | None = None,
    ) -> Solution:
        """Solve from x, or go on from the ``state`` of an earlier solution or round.

        Parameters
        ----------
        problem : ConstrainedProblem
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
        chosen_as : str
            How ``status`` calls the candidate that ``judge`` preferred.
        listener : callable, optional
            Is told a :class:`Round` after each; what is true of its answer ends the run.
        """
        run = PenaltyRun(self, problem, x, judge, chosen_as)
        run.begin(weights) if resume is None else run.take_up(resume)
        last = self.rounds if until is None else min(until, self.rounds)
        while run.round < last and not run.ended:
            taken = run.descend()
            if settle is not None:
                run.put(settle(run.at()), "settle")
            run.close()
            if listener is not None:
                report = run.objectives[-1], run.worst[-1], run.weights.clone(), run.strength
                if listener(Round(run.round, *report, taken, run.state())):
                    break
        return run.solution()
