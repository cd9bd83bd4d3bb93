"""Rounds of the augmented Lagrangian with exact values: minimise, renew the prices, and again.

    L(x) = f(x) + ½ Σ ρⱼ (vⱼ + λⱼ/ρⱼ)²₊       (an equation's square is taken of both signs)
    x ← argmin L over the box, to ω,         λ ← [λ + ρ v]₊,        ω ← ω / 10
    ρⱼ ← 10 ρⱼ where what is left of constraint j has not fallen to a half

The minimum in the box is found by L-BFGS-B, which keeps a few vectors of x's length and no matrix.
What is left of constraint j is max(vⱼ, −λⱼ/ρⱼ), for an equation |vⱼ|.

References
----------
Nocedal, Wright, Numerical Optimization, 2006, framework 17.3; Birgin, Martínez, Practical Augmented
Lagrangian Methods, 2014, chapter 4; Byrd, Lu, Nocedal, Zhu, A limited memory algorithm for bound
constrained optimization, 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize, root
from torch import Tensor

from setpoint.solvers.augmented.mean_functions import (
    EndError,
    LostError,
    MeanFunctions,
    MeanReading,
    Meter,
    at_bounds,
    checked,
    flat,
    gradients,
)
from setpoint.solvers.augmented.penalty_weight import EXACT_GROWTH, natural
from setpoint.solvers.box_projection import project

if TYPE_CHECKING:
    from setpoint.solvers.augmented.augmented_lagrangian import AugmentedLagrangian

FIRST = 0.1  #: ω of the first round, a share of ‖∇f‖
STEPS = 1000  #: of L-BFGS-B in a round
RADIUS = 1e12  #: of λ
FAR = 1e12  #: below which an objective is taken to have no least value
POLISH = 20  #: Newton steps on the gradient where values no longer tell: two or three are usual
NEAR = 1e-4  #: how far such steps may lead, relative to x: beyond it they sought another zero
SAME = 1e-9  #: a difference of objectives this small is none


class Rounds:
    """What is under way; it changes, and :meth:`state` is all of it."""

    kind = "rounds"

    def __init__(
        self,
        solver: AugmentedLagrangian,
        whole: MeanFunctions,
        meter: Meter,
        parts: Sequence[Tensor],
        feasibility: float,
        tolerance: float,
    ) -> None:
        self.solver, self.whole, self.meter = solver, whole, meter
        self.feasibility, self.tolerance = feasibility, tolerance
        self.parts = [part.detach().clone() for part in parts]
        project(self.parts, whole.box)
        self.number, self.step, self.ended, self.stuck = 0, 0, False, False
        self.best: dict[str, Any] = {}
        at = whole.read(self.parts, "the start")
        self.equal, self.paid = at.equal, torch.zeros_like(at.v)
        self.offer(at, self.parts)
        reach = 1 + float(flat(self.parts).abs().max())
        self.first = self.rho = solver.rho * natural(whole, self.parts, self.paid, reach)
        self.steepest = 1 + float(whole.slopes(self.parts, self.paid, self.paid[:0])[0].norm())
        self.omega = FIRST * self.steepest
        self.least = tolerance * self.steepest / 10 / max(len(flat(self.parts)), 1) ** 0.5
        self.before = torch.full_like(at.v, torch.inf)
        self.low, self.high = self._bounds()

    def advance(self) -> None:
        """Minimise over the box, renew λ and ρ, ask whether it is an optimum."""
        start = flat(self.parts).double().cpu().numpy()
        bounds = None if self.low is None else np.stack([self.low, self.high], 1)
        minimum = minimize(
            self._lagrangian,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={
                "maxiter": STEPS,
                "maxfun": 10**9,
                "ftol": 0.0,
                "gtol": self.omega,
                "maxcor": 20,
            },
        )
        slope = minimum.jac
        if int(minimum.nit) == 0 and self.low is None and np.abs(slope).max() > self.omega:
            minimum.x, slope = self._polished(minimum.x, slope)
        self.parts = self._cut(minimum.x)
        self.step += int(minimum.nit)
        self.number += 1
        at = self.whole.read(self.parts, f"the end of round {self.number}")
        left = self._renew(at)
        self.offer(at, self.parts)
        gradient = torch.as_tensor(slope)  # ∇f + Jᵀ λ with the λ that was just renewed
        residual = float(at_bounds(self.parts, self.whole.box, 0.0).cpu().counted(gradient).norm())
        limit = self.tolerance * self.steepest
        self.ended = residual <= limit and left <= self.feasibility
        # with something left of a constraint ρ grows, and the next round has something to do
        rest = int(minimum.nit) == 0 and self.omega <= self.least and left <= self.feasibility
        grown = bool((self.rho > EXACT_GROWTH.cap * self.first).any())
        self.stuck = not self.ended and (rest or grown)
        self.omega = max(self.omega / 10, self.least)

    def _polished(self, x: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point of smaller gradient near one where values no longer differ, and its gradient.

        Near a minimum values differ by the square of the distance and drown in rounding half the
        digits earlier than gradients do. So the gradient's own zero is sought, by Newton steps
        without a matrix; a line search by values (more of them, a looser test) was no help.
        """

        def gradient(point: np.ndarray) -> np.ndarray:
            return self._lagrangian(point)[1]

        options = {"maxiter": POLISH, "fatol": self.omega}
        with np.errstate(all="ignore"):
            zero = root(gradient, x, method="krylov", options=options)
        nearer = np.linalg.norm(zero.fun) < np.linalg.norm(slope)
        near = np.linalg.norm(zero.x - x) <= NEAR * (1 + np.linalg.norm(x))
        return (zero.x, zero.fun) if nearer and near else (x, slope)

    def offer(self, at: MeanReading, parts: Sequence[Tensor]) -> None:
        """A candidate for the best; of equals the last stays, whose prices are the better ones."""
        feasible = at.worst <= self.feasibility
        rank = (0.0 if feasible else -at.worst, -at.f)
        near = self.best and feasible and self.best["rank"][0] == 0
        close = near and at.f <= self.best["f"] + SAME * (1 + abs(at.f))
        if not self.best or close or rank >= self.best["rank"]:
            x = [part.detach().clone() for part in parts]
            self.best = {"x": x, "f": at.f, "v": at.v, "worst": at.worst, "rank": rank}
            self.best["paid"] = self.paid.clone()

    def finish(self) -> None:
        """Rounds end on the constraints by themselves."""

    def count(self) -> str:
        """How far it has come."""
        return f"{self.number} rounds"

    def ending(self) -> str:
        """How it ended by itself."""
        if self.ended:
            return f"solved in {self.count()}"
        if self.stuck and self.best["worst"] > self.feasibility:
            return (
                f"no nearer to the constraints after {self.count()}: they may exclude each other "
                "near here, start elsewhere or relax them"
            )
        if self.stuck:
            return f"no further step after {self.count()}: rounding, or a kink, is in the way"
        return f"the limit of {self.count()} is reached"

    def _renew(self, at: MeanReading) -> float:
        """λ and ρ after a round; the greatest thing left of a constraint."""
        left = torch.where(self.equal, at.v.abs(), torch.maximum(at.v, -self.paid / self.rho).abs())
        paid = self.paid + self.rho * at.v
        self.paid = torch.where(self.equal, paid, paid.clamp(min=0)).clamp(-RADIUS, RADIUS)
        worse = (left > EXACT_GROWTH.share * self.before) & (left > self.feasibility)
        self.rho = torch.where(worse, self.rho * EXACT_GROWTH.step(self.solver.growth), self.rho)
        self.before = left
        return float(left.max()) if len(left) else 0.0

    def _lagrangian(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        leaves = [part.requires_grad_() for part in self._cut(x)]
        f, c, e = self.meter(leaves, None)
        self.meter.gradients += 1
        v = torch.cat([c, e]).double()
        checked(f.detach(), v.detach(), f"evaluation {self.meter.evaluations}")
        if float(f.detach()) < -FAR * (1 + abs(self.best["f"])):
            raise EndError(
                f"the objective falls to {float(f.detach()):.3g}: it seems to be unbounded"
            )
        moved = self.paid + self.rho * v
        moved = torch.where(self.equal, moved, moved.clamp(min=0))
        value = f.double() + (0.5 * (moved.square() - self.paid.square()) / self.rho).sum()
        slope = flat(gradients(value, leaves, keep=False)).double().cpu()
        if not bool(torch.isfinite(slope).all()):
            raise LostError(f"a gradient is not finite at evaluation {self.meter.evaluations}")
        return float(value.detach()), slope.numpy()

    def _cut(self, x: np.ndarray) -> list[Tensor]:
        """The flat x as the parts were given, in their bounds to the last bit."""
        pieces = torch.tensor(x).split([part.numel() for part in self.parts])
        pairs = zip(pieces, self.parts, strict=True)
        parts = [piece.reshape(part.shape).to(part) for piece, part in pairs]
        project(parts, self.whole.box)
        return parts

    def _bounds(self) -> tuple[Any, Any]:
        if all(bound is None for bounds in self.whole.box for bound in bounds):
            return None, None
        sides: tuple[list[Tensor], list[Tensor]] = ([], [])
        for part, bounds in zip(self.parts, self.whole.box, strict=True):
            for side, bound, none in zip(sides, bounds, (-torch.inf, torch.inf), strict=True):
                filled = torch.full_like(part, none) if bound is None else bound.expand(part.shape)
                side.append(filled.reshape(-1).double().cpu())
        return torch.cat(sides[0]).numpy(), torch.cat(sides[1]).numpy()

    def state(self) -> dict[str, Any]:
        """To go on from."""
        tensors = ("paid", "rho", "first", "before")
        numbers = ("number", "step", "omega", "ended", "stuck", "steepest")
        return (
            {"kind": self.kind, "x": [part.clone() for part in self.parts], "best": dict(self.best)}
            | {name: getattr(self, name).clone() for name in tensors}
            | {name: getattr(self, name) for name in numbers}
            | {"evaluations": self.meter.evaluations, "gradients": self.meter.gradients}
        )

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.parts = [part.to(x, copy=True) for part, x in zip(state["x"], self.parts, strict=True)]
        for name in ("paid", "rho", "first", "before"):
            setattr(self, name, state[name].to(self.paid, copy=True))
        for name in ("number", "step", "omega", "steepest"):
            setattr(self, name, state[name])
        self.best = dict(state["best"])
        self.ended = self.stuck = False  # with other tolerances it may go on
        self.meter.evaluations += int(state["evaluations"])
        self.meter.gradients += int(state["gradients"])
