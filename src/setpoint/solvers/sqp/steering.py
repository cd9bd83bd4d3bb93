"""A direction that lowers the merit and heads for the constraints.

With values v = (e, c), their gradients J, bounds low <= x <= high, and B = H⁻¹,

    minimise over d   μ gᵀd + Σ [v + J d]_broken + ½ dᵀB d     subject to  low <= x + d <= high

is solved by its dual, which has one variable for each constraint and for each bound that d would
cross, however many variables x has:

    minimise over y   ½ wᵀH w − vᵀy,    w = μ g + Jᵀy,     d = −H w
    y of an equation in [−1, 1], of an inequality in [0, 1], of a bound in [0, ∞)

A bound is an inequality with no slack; those that d crosses are added until it crosses none.
*Steering*: where d does not lower the linearised violation by enough of what is possible at all
(the same program with μ = 0), or breaks constraints that hold, μ is lowered.

References
----------
Curtis, Mitchell, Overton, A BFGS-SQP method for nonsmooth, nonconvex, constrained optimization,
2017; Byrd, Lopez-Calva, Nocedal, A line search exact penalty method using steering rules, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setpoint.solvers.sqp import merit
from setpoint.solvers.sqp import quadratic_program as quadratic
from setpoint.solvers.sqp.functions import Evaluated, host
from setpoint.solvers.sqp.hessian import Hessian

ENOUGH = 0.1  #: share of the violation, or of what can be gained of it, that a direction must gain
LOWER = 0.9  #: factor of μ where it does not
GENTLE = 10  #: times that it is lowered by that, before it is lowered faster
TRIES = 25
ROUNDS = 30  #: of adding bounds


@dataclass(frozen=True)
class Box:
    """Bounds (n,), infinite where there is none; ``None`` where there are none at all."""

    low: Tensor
    high: Tensor

    def clip(self, x: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def room(self, x: Tensor, d: Tensor) -> float:
        """The greatest t with x + t d in the box."""
        up = torch.where(d > 0, (self.high - x) / d, torch.inf)
        down = torch.where(d < 0, (self.low - x) / d, torch.inf)
        return float(torch.minimum(up, down).min())


@dataclass(frozen=True, eq=False)
class Direction:
    """What steering came to.

    Attributes
    ----------
    d : torch.Tensor
        (n,)
    mu : float
        Of the merit that it descends.
    y : torch.Tensor
        (m,) what a unit of each constraint costs, in units of the merit.
    w : torch.Tensor
        (n,) μ g + Jᵀy and the forces of the bounds: −B d.
    slope : float
        The change of the merit's model along d; negative.
    gain : float
        By how much it lowers the linearised violation.
    sides : numpy.ndarray
        (m,) where the entries of y rest, to start the next one from.
    held : tuple of torch.Tensor
        Upper and lower bounds that hold d back, for the same.
    """

    d: Tensor
    mu: float
    y: Tensor
    w: Tensor
    slope: float
    gain: float
    sides: np.ndarray
    held: tuple[Tensor, ...] = ()


class Steering:
    """The dual at one point, for any μ.

    Parameters
    ----------
    point : Evaluated
    equations : int
        How many of the constraints come first and are equations.
    hessian : Full or Compact
    box : Box, optional
    solver : str
        Of the quadratic program.
    last : Direction, optional
        What to start from.
    """

    def __init__(
        self,
        point: Evaluated,
        equations: int,
        hessian: Hessian,
        box: Box | None,
        solver: str,
        last: Direction | None = None,
    ) -> None:
        self.x, self.equations, self.hessian, self.box = point.x, equations, hessian, box
        self.solver, self.m = solver, len(point.v)
        #: ∇f, the gradients of the constraints, and those of the bounds that are in the dual
        self.rows = torch.cat([point.gradient()[None], point.jacobian()])
        self.Hrows = hessian.apply(self.rows.T)  # (n, 1 + m)
        self.K = host(self.rows @ self.Hrows)
        self.values = host(point.v)
        self.lows = np.where(np.arange(self.m) < equations, -1.0, 0.0)
        self.highs = np.ones(self.m)
        self.held = torch.zeros(0, dtype=torch.long, device=self.x.device)  # bounds in the dual
        self.sign = self.x.new_zeros(0)  # 1 of an upper bound, −1 of a lower one
        self.broken = point.total
        self.guess = None if last is None or len(last.sides) != self.m else last.sides
        if box is not None and last is not None and any(map(len, last.held)):
            self._add(*last.held)

    def solve(self, mu: float) -> Direction:
        """The direction for μ as it is."""
        y = self._dual(mu)
        d = self._step(y)
        if self.box is not None:
            for _ in range(ROUNDS):
                if not self._crossed(d):
                    break
                y = self._dual(mu)
                d = self._step(y)
            d = self.box.clip(self.x + d) - self.x
        own = y[1:]
        self.guess = np.where(own <= self.lows, -1.0, np.where(own >= self.highs, 1.0, 0.0))
        pushed = torch.as_tensor(own[self.m :] > 0, device=self.x.device)
        held = tuple(self.held[pushed & (self.sign * side > 0)] for side in (1, -1))
        weights = torch.as_tensor(y).to(self.x)
        w = weights @ self.rows
        gain = self._gain(y)
        slope = -mu * float(self.K[0] @ y) - gain
        sides = self.guess[: self.m]
        return Direction(
            d=d,
            mu=mu,
            y=weights[1 : self.m + 1],
            w=w,
            slope=slope,
            gain=gain,
            sides=sides,
            held=held,
        )

    def steer(self, mu: float, least: float) -> Direction:
        """The direction, with μ lowered until it heads for the constraints."""
        direction = self.solve(mu)
        if not self.m or direction.gain >= ENOUGH * self.broken - least:
            return direction
        best = self.solve(0.0).gain
        for k in range(TRIES):
            if direction.gain >= ENOUGH * best - least:
                break
            mu *= LOWER if k < GENTLE else LOWER**k
            direction = self.solve(mu)
        return direction

    def _dual(self, mu: float) -> np.ndarray:
        """(μ, y): what each row of gradients counts."""
        q = mu * self.K[1:, 0] - self.values
        y = quadratic.box(self.K[1:, 1:], q, self.lows, self.highs, self.solver, self.guess)
        return np.concatenate([[mu], y])

    def _step(self, y: np.ndarray) -> Tensor:
        return -(self.Hrows @ torch.as_tensor(y).to(self.x))

    def _gain(self, y: np.ndarray) -> float:
        """By how much d lowers the linearised violation; J d is known from the dual."""
        if not self.m:
            return 0.0
        left = self.values[: self.m] - self.K[1 : self.m + 1] @ y
        return self.broken - float(merit.broken(left, self.equations).sum())

    def _crossed(self, d: Tensor) -> bool:
        """Add the bounds that d crosses to the dual; False where there are none."""
        assert self.box is not None
        moved = self.x + d
        slack = 1e-12 * (1 + self.x.abs())
        over, under = moved > self.box.high + slack, moved < self.box.low - slack
        if len(self.held):
            over[self.held[self.sign > 0]] = False
            under[self.held[self.sign < 0]] = False
        ups, downs = over.nonzero().reshape(-1), under.nonzero().reshape(-1)
        if not len(ups) and not len(downs):
            return False
        self._add(ups, downs)
        return True

    def _add(self, ups: Tensor, downs: Tensor) -> None:
        """Bounds that may hold d back, as rows of the dual."""
        assert self.box is not None
        index = torch.cat([ups, downs])
        sign = self.x.new_ones(len(index))
        sign[len(ups) :] = -1.0
        bound = torch.cat([self.box.high[ups], self.box.low[downs]])
        fresh = self.hessian.columns(index) * sign  # (n, k)
        side, corner = host(self.rows @ fresh), host(sign[:, None] * fresh[index])
        self.K = np.block([[self.K, side], [side.T, corner]])
        rows = self.x.new_zeros((len(index), len(self.x)))
        rows[torch.arange(len(index), device=index.device), index] = sign
        self.rows, self.Hrows = torch.cat([self.rows, rows]), torch.cat([self.Hrows, fresh], 1)
        self.values = np.concatenate([self.values, host(sign * (self.x[index] - bound))])
        self.lows = np.concatenate([self.lows, np.zeros(len(index))])
        self.highs = np.concatenate([self.highs, np.full(len(index), np.inf)])
        self.held, self.sign = torch.cat([self.held, index]), torch.cat([self.sign, sign])
        if self.guess is not None:
            self.guess = np.concatenate([self.guess, np.zeros(len(index))])
