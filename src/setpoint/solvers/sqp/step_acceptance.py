"""From a direction to the next point, and what the step says of curvature.

The full step is tried first. Where it breaks the constraints by their curvature, it is bent back to
them; where that does not do, a line search finds a shorter or a longer one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.solvers.sqp import merit
from setpoint.solvers.sqp.functions import Evaluated, Functions
from setpoint.solvers.sqp.hessian import SHARE, Hessian, damped
from setpoint.solvers.sqp.line_search import DECREASE, LineSearchResult, weak_wolfe
from setpoint.solvers.sqp.steering import Box, Direction

BENDS = 3  #: corrections of a step
SHORT = 0.1  #: of a step that is cut


class Searching:
    """Steps of a run.

    Parameters
    ----------
    functions : Functions
    box : Box, optional
    feasibility : float
    spent : callable
        Whether a limit is reached.
    """

    def __init__(
        self,
        functions: Functions,
        box: Box | None,
        feasibility: float,
        spent: Callable[[], bool],
    ) -> None:
        self.functions, self.box, self.feasibility, self.spent = functions, box, feasibility, spent
        self.bad = False  #: whether a trial gave values that are no numbers

    def along(
        self, point: Evaluated, direction: Direction, mu: float, hessian: Hessian
    ) -> LineSearchResult:
        """A step along a direction; none where the model does not fall along it."""
        if not direction.slope < 0:
            return LineSearchResult(0.0, None)
        d, k = direction.d, self.functions.count[0]
        start = point.merit(mu)
        room = math.inf if self.box is None else max(1.0, self.box.room(point.x, d))
        noise = 2 * self.functions.eps * abs(start)

        def at(t: float) -> Evaluated:
            return self._at(point.x + t * d)

        def slope_at(trial: Evaluated) -> float:
            return float(trial.pull(mu, merit.paid(trial.v, k)) @ d)

        def further(held: Evaluated, trial: Evaluated) -> bool:
            return trial.total <= held.total + self.feasibility

        first = at(1.0)
        enough = start + DECREASE * direction.slope + noise
        if len(point.v) and not (first.finite and first.merit(mu) <= enough):
            bent = self._bent(point, direction, first, mu, hessian, enough)
            if bent is not None:
                return LineSearchResult(1.0, bent)
        search = weak_wolfe(
            at,
            lambda trial: trial.merit(mu),
            slope_at,
            start,
            direction.slope,
            room=room,
            noise=noise,
            first=first,
            further=further,
            spent=self.spent,
        )
        self.bad = self.bad or search.bad
        if search.point is not None and bool((search.point.x == point.x).all()):
            return LineSearchResult(
                0.0, None, bad=search.bad
            )  # too short for the numbers that x is made of
        return search

    def _at(self, x: Tensor) -> Evaluated:
        return self.functions(x if self.box is None else self.box.clip(x))

    def _bent(
        self,
        point: Evaluated,
        direction: Direction,
        trial: Evaluated,
        mu: float,
        hessian: Hessian,
        enough: float,
    ) -> Evaluated | None:
        """The full step, bent back to the constraints that it broke by their curvature.

        x + d ← x + d − H Jᵀ (J H Jᵀ)⁻¹ v(x + d), over the constraints that hold d, while that
        breaks them less and less. Without it the merit refuses good steps along a curved
        constraint (Nocedal, Wright, section 18.3).
        """
        active = direction.y.abs() > 1e-12
        active[: self.functions.count[0]] = True
        rise = trial.total - point.total
        if not trial.finite or rise <= 1e-2 * self.feasibility or not bool(active.any()):
            return None
        J = point.jacobian()[active]
        HJ = hessian.apply(J.T)
        Q = J @ HJ
        Q.diagonal().add_(1e-12 * float(Q.diagonal().mean()))
        factor, failed = torch.linalg.cholesky_ex(Q)
        if int(failed):
            return None
        longest = float(direction.d.norm())
        for _ in range(BENDS):
            if self.spent():
                return None
            step = -(HJ @ torch.cholesky_solve(trial.v[active][:, None], factor)[:, 0])
            if not float(step.norm()) <= longest:
                return None
            before, trial = trial, self._at(trial.x + step)
            if not trial.finite or trial.total > 0.5 * before.total:
                return None
            if trial.merit(mu) <= enough:
                return trial if trial.slopes_finite() else None
        return None


def learn(
    hessian: Hessian,
    before: Evaluated,
    after: Evaluated,
    direction: Direction,
    t: float,
    equations: int,
) -> None:
    """Teach H the change of the Lagrangian's gradient, μ ∇f + Jᵀ y, over a step."""
    s = after.x - before.x
    Bs = -t * direction.w  # of the step without its correction, which is of second order
    y = direction.mu * (after.gradient() - before.gradient())
    if len(direction.y):
        y = y + (after.jacobian() - before.jacobian()).T @ direction.y
    if t <= SHORT and float(s @ y) < SHARE * float(s @ Bs):
        # the Lagrangian has less curvature than B along s, and still the step was too long: it is
        # the constraints that bend, and the merit knows of them
        far, near = (p.pull(direction.mu, merit.paid(p.v, equations)) for p in (after, before))
        y = far - near
    hessian.update(s, damped(s, y, Bs))
