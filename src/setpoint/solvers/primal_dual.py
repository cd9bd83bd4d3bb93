"""Primal-dual: gradient steps for x, ascent for the multipliers.

    minimise f(x)  subject to  c(x) <= 0,  e(x) = 0;       L(x, λ) = w₀ f(x) + Σⱼ [λⱼ + ρ vⱼ]₊ ṽⱼ(x)

v = (c, e) exactly as they are, ṽ a *proxy* of them that has a slope (v itself where none is given).
x descends L, λ ascends on v. Without ρ the pair circles around a solution; ρ damps it (augmented
Lagrangian). Where f or c are not convex the last x may be far from a solution while a mixture of
iterates is one, so objective and violations of snapshots are kept, and the best mixture of them is
a linear program.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import is_real
from setpoint.programs.constrained_problem import ConstrainedProblem
from setpoint.programs.duals import Additive, Dual, Equal, one_sided
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.mixture import best_feasible, excess
from setpoint.solvers.result import Solution


@dataclass(frozen=True)
class PrimalDual:
    """Gradient descent for x and ascent for the multipliers, step by step in turn.

    Parameters
    ----------
    primal : FirstOrder
    dual : Dual
    steps : int
    augment : float
        ρ.
    every : int
        Steps from one snapshot to the next.
    tolerance : float
        What a constraint may be broken by.
    seed : int
        Of the noise; step s draws from seed + s, so that a run can be taken up anywhere.
    """

    primal: FirstOrder = field(
        default_factory=lambda: FirstOrder(0.02, "adam", weight_decay=0.0, final=0.01)
    )
    dual: Dual = field(default_factory=lambda: Additive(0.05))
    steps: int = 2000
    augment: float = 1.0
    every: int = 10
    tolerance: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "every"):
            x = getattr(self, name)
            if not is_real(x) or x < 1 or x % 1:
                raise KindError(f"{name}={x!r}: a whole number, 1 or more")
        for name in ("augment", "tolerance"):
            x = getattr(self, name)
            if not is_real(x) or not 0 <= x < math.inf:
                raise KindError(f"{name}={x!r}: a number, 0 or more")

    def solve(
        self,
        problem: ConstrainedProblem,
        x: Tensor,
        *,
        resume: Any = None,
        until: int | None = None,
    ) -> Solution:
        """Solve from x, or go on from the ``state`` of an earlier solution.

        Parameters
        ----------
        problem : Problem
        x : torch.Tensor
            Where to start; not changed.
        resume : dict, optional
        until : int, optional
            Stop after so many of the steps.
        """
        if problem.bounded or problem.regulariser is not None or not isinstance(x, Tensor):
            raise DataError(
                "primal-dual moves one tensor without bounds or a regulariser; write the bounds as "
                "constraints, or take ExactPenalty"
            )
        x = x.detach().clone().requires_grad_()
        optimiser = self.primal.start([x])  # type: ignore[list-item]
        _, equal = problem.violations(*self._given(problem, x.detach(), 0))
        dual = torch.as_tensor(self.dual.start(equal)).to(x)
        first, kept = 0, []
        if resume is not None:
            first, kept = int(resume["step"]), list(resume["kept"])
            with torch.no_grad():
                x.copy_(resume["x"])
            optimiser.load_state_dict(deepcopy(resume["optimiser"]))  # it may be taken up again
            dual = resume["dual"].to(x)
        last = self.steps if until is None else min(until, self.steps)
        for step in range(first, last):
            dual, f, v = self._step(problem, x, optimiser, dual, step, equal)
            if not torch.isfinite(f) or not torch.isfinite(v).all():
                raise DataError(
                    f"at step {step} the objective or a constraint is {float(f):g} or not finite; "
                    "take a smaller learning rate or a better start"
                )
            if (step + 1) % self.every == 0 or step + 1 == self.steps:
                kept.append(self._snapshot(problem, x.detach(), step + 1))
        state = {
            "step": max(first, last),
            "x": x.detach().clone(),
            "dual": dual.clone(),
            "optimiser": deepcopy(optimiser.state_dict()),
            "kept": kept,
        }
        return self._solution(state, kept or [self._snapshot(problem, x.detach(), last)], equal)

    def _given(self, problem: ConstrainedProblem, x: Tensor, step: int) -> tuple[Any, ...]:
        """The arguments of the problem's functions at a step."""
        if not problem.noisy:
            return (x,)
        return x, torch.Generator(x.device).manual_seed(self.seed + step)

    def _step(
        self,
        problem: ConstrainedProblem,
        x: Tensor,
        optimiser: Any,
        dual: Tensor,
        step: int,
        equal: Equal,
    ) -> tuple[Tensor, Tensor, Tensor]:
        given = self._given(problem, x, step)
        f = problem.objective(*given)
        near, _ = problem.violations(*given)
        v = near.detach()
        if problem.proxies is not None:
            near = problem.proxies(*given).reshape(-1)
        if not equal:
            f.backward()
        else:
            seen = v.numpy() if v.is_cpu else v  # a dozen numbers are numpy's sooner
            state = dual.numpy() if v.is_cpu else dual
            top, paid = self.dual.weights(state, equal)
            charged = one_sided(paid + self.augment * seen, equal) if self.augment else paid
            (top * f + (torch.as_tensor(charged).to(near) * near).sum()).backward()
            dual = torch.as_tensor(self.dual.step(state, seen, 1.0, equal)).to(dual)
        self.primal.step(optimiser, step, self.steps)
        return dual, f.detach(), v

    def _snapshot(
        self, problem: ConstrainedProblem, x: Tensor, step: int
    ) -> tuple[float, Any, Tensor]:
        given = self._given(problem, x, step)
        with torch.no_grad():
            f, (v, _) = problem.objective(*given), problem.violations(*given)
        return float(f), v.double().cpu().numpy(), x.clone()

    def _solution(self, state: dict[str, Any], kept: list[Any], equal: Equal) -> Solution:
        objectives = np.array([f for f, _, _ in kept])
        snapshots = np.array([v for _, v, _ in kept]).reshape(len(kept), len(equal))
        index = best_feasible(objectives, snapshots, self.tolerance, equal)
        worst = float(excess(snapshots[index : index + 1], equal)[0])
        done = f"after {state['step']} of {self.steps} steps"
        if worst <= self.tolerance:
            status = f"{done} the best snapshot keeps every constraint within {self.tolerance:g}"
        else:
            status = (
                f"{done} no snapshot keeps the constraints; the nearest breaks one by {worst:.3g}"
            )
        paid = np.zeros(0)
        if equal:
            paid = self.dual.multipliers(state["dual"].double().cpu().numpy(), equal)
        return Solution(
            state["x"],
            kept[index][2],
            float(objectives[index]),
            snapshots[index],
            paid,
            objectives,
            snapshots,
            status,
            state,
        )
