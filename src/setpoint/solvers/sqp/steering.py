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

from setpoint.solvers.sqp import merit, quadratic
from setpoint.solvers.sqp.functions import Evaluated
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
        Where the entries of y and of the bounds rest, to start the next one from.
    """

    d: Tensor
    mu: float
    y: Tensor
    w: Tensor
    slope: float
    gain: float
    sides: np.ndarray


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
    """

    def __init__(
        self,
        point: Evaluated,
        equations: int,
        hessian: Hessian,
        box: Box | None,
        solver: str,
        guess: np.ndarray | None = None,
    ) -> None:
        self.x, self.v, self.g, self.J = point.x, point.v, point.gradient(), point.jacobian()
        self.equations, self.hessian, self.box, self.solver = equations, hessian, box, solver
        self.m = len(self.v)
        self.Hg = hessian.apply(self.g)
        self.HJ = hessian.apply(self.J.T)  # (n, m)
        self.Q = _host(self.J @ self.HJ)
        self.JHg = _host(self.J @ self.Hg)
        self.values = _host(self.v)
        self.lows = np.where(np.arange(self.m) < equations, -1.0, 0.0)
        self.highs = np.ones(self.m)
        self.held = torch.zeros(0, dtype=torch.long, device=self.x.device)  # bounds in the dual
        self.sign = self.x.new_zeros(0)  # 1 of an upper bound, −1 of a lower one
        self.broken = point.total
        self.guess = guess if guess is not None and len(guess) == self.m else None

    def solve(self, mu: float) -> Direction:
        """The direction for μ as it is."""
        y, d, sides = self._dual(mu), None, None
        if self.box is not None:
            for _ in range(ROUNDS):
                d = self._step(mu, y)
                if not self._crossed(d):
                    break
                y = self._dual(mu)
        d = self._step(mu, y)
        if self.box is not None:
            d = self.box.clip(self.x + d) - self.x
        sides = np.where(y <= self.lows, -1.0, np.where(y >= self.highs, 1.0, 0.0))[: self.m]
        self.guess = None if len(self.held) else sides
        y_all = torch.as_tensor(y).to(self.x)
        w = mu * self.g + self.J.T @ y_all[: self.m]
        if len(self.held):
            w = w.index_add(0, self.held, self.sign * y_all[self.m :])
        gain = self._gain(mu, y)
        return Direction(d, mu, y_all[: self.m], w, mu * float(self.g @ d) - gain, gain, sides)

    def _gain(self, mu: float, y: np.ndarray) -> float:
        """By how much d lowers the linearised violation; J d is known from the dual."""
        if not self.m:
            return 0.0
        left = self.values - mu * self.JHg - self.Q @ y
        return self.broken - float(merit.broken(left[: self.m], self.equations).sum())

    def steer(self, mu: float, least: float) -> Direction:
        """The direction, with μ lowered until it heads for the constraints."""
        found = self.solve(mu)
        if not self.m or found.gain >= ENOUGH * self.broken - least:
            return found
        best = self.solve(0.0).gain
        for k in range(TRIES):
            if found.gain >= ENOUGH * best - least:
                break
            mu *= LOWER if k < GENTLE else LOWER**k
            found = self.solve(mu)
        return found

    def _dual(self, mu: float) -> np.ndarray:
        q = mu * self.JHg - self.values
        return quadratic.box(self.Q, q, self.lows, self.highs, self.solver, self.guess)

    def _step(self, mu: float, y: np.ndarray) -> Tensor:
        d = -mu * self.Hg
        return d - self.HJ @ torch.as_tensor(y).to(d) if len(y) else d

    def _crossed(self, d: Tensor) -> bool:
        """Add the bounds that d crosses to the dual; False where there are none."""
        assert self.box is not None
        moved = self.x + d
        slack = 1e-12 * (1 + self.x.abs())
        over, under = moved > self.box.high + slack, moved < self.box.low - slack
        if len(self.held):
            kept_up, kept_down = self.held[self.sign > 0], self.held[self.sign < 0]
            over[kept_up], under[kept_down] = False, False
        index = torch.cat([over.nonzero().reshape(-1), under.nonzero().reshape(-1)])
        if not len(index):
            return False
        ups = int(over.sum())
        sign = self.x.new_ones(len(index))
        sign[ups:] = -1.0
        bound = torch.where(sign > 0, self.box.high[index], self.box.low[index])
        values = sign * (self.x[index] - bound)
        fresh = self.hessian.columns(index) * sign  # (n, k)
        side = torch.cat([self.J @ fresh, self.sign[:, None] * fresh[self.held]])  # (m + old, k)
        corner = sign[:, None] * fresh[index]
        self.Q = np.block([[self.Q, _host(side)], [_host(side).T, _host(corner)]])
        self.HJ = torch.cat([self.HJ, fresh], 1)
        self.JHg = np.concatenate([self.JHg, _host(sign * self.Hg[index])])
        self.values = np.concatenate([self.values, _host(values)])
        self.lows = np.concatenate([self.lows, np.zeros(len(index))])
        self.highs = np.concatenate([self.highs, np.full(len(index), np.inf)])
        self.held, self.sign = torch.cat([self.held, index]), torch.cat([self.sign, sign])
        self.guess = None
        return True


def _host(x: Tensor) -> np.ndarray:
    return x.double().cpu().numpy()
