"""BFGS-SQP: steer, search along the direction, learn the curvature; until the conditions hold.

The best point so far, the one with the least f that keeps the constraints (else the one that breaks
them least), is kept apart from the iterate and is what is returned, however the run ends. Where no
step along the direction of steering lowers the merit, the ways out are, in turn: steering with
H = I, and gradients sampled around the point, which see the kinks that one gradient does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.solvers.result import SolverProgress
from setpoint.solvers.sqp import stopping as ending
from setpoint.solvers.sqp.functions import Evaluated, Functions
from setpoint.solvers.sqp.hessian import Compact, Full, Hessian
from setpoint.solvers.sqp.line_search import LineSearchResult
from setpoint.solvers.sqp.stationarity import LOOSE, SAMPLES, Looking, Stationarity
from setpoint.solvers.sqp.steering import Box, Direction, Steering
from setpoint.solvers.sqp.step_acceptance import Searching, learn
from setpoint.solvers.sqp.stopping import Limits

KIND = "sqp"  #: of a state
PATIENCE = 5  #: steps from one look at the gradients around to the next
SMOOTH = 1e-3  #: what one point leaves of the conditions that does not look like a kink
RESCUES = 30  #: of a run, by gradients around a kink
STALL = 6  #: steps without change after which the end is judged
WORTH = 1e-6  #: share of the objective that is not worth a further step
AT_KINKS = 1e-5  #: what may be left of the conditions where nothing moves any more
MU = 1e8  #: at most, where the gradients at x0 say what it should be
LEAST_MU = 1e-14


@dataclass(frozen=True)
class SqpSettings:
    """Of a run: see :func:`setpoint.solve`."""

    tolerance: float = 1e-8
    feasibility: float = 1e-8
    memory: int | None = None
    qp: str = "auto"
    seed: int = 0


class SqpRun:
    """One run."""

    def __init__(
        self, functions: Functions, box: Box | None, settings: SqpSettings, limits: Limits
    ) -> None:
        self.functions, self.box, self.settings, self.limits = functions, box, settings, limits
        self.mu = 1.0
        self.iteration = 0
        self.still = 0  #: steps in a row that changed nothing
        self.status, self.success = "", False
        self.last: Direction | None = None  #: what the next one starts from
        self.rough = math.nan  #: ‖μ∇f + Jᵀy‖ / μ of the last direction
        self.found: Stationarity | None = None
        self.step = 0.0
        self.rescues = 0
        self.single = math.inf  #: what the iterate alone left of the conditions, when last read
        self.searching = Searching(
            functions, box, settings.feasibility, lambda: limits.spent(functions.calls)
        )
        self.begun = False
        self.fresh_look = False  #: whether ``found`` is of the iterate

    # --- beginning --------------------------------------------------------------------------------

    def begin(self, x: Tensor) -> None:
        """Start at x."""
        x = x if self.box is None else self.box.clip(x)
        self.point = self.functions(x)
        self.equations = self.functions.count[0]
        self.best = self.point
        if not self.point.finite:
            top = not math.isfinite(self.point.f)
            value = self.point.f if top else self.point.total
            what = "the objective" if top else "a constraint"
            self.status = (
                f"{what} is no finite number at x0 ({value:g}); start where it has a value"
            )
            return
        if not self.point.slopes_finite():
            self.status = (
                "a gradient is no finite number at x0; start where the functions have slopes, "
                "such as a little beside it"
            )
            return
        settings = self.settings
        self.looking = Looking(
            self.functions, self.box, self.point, settings.feasibility, settings.qp, settings.seed
        )
        self.mu = self._first_mu()
        self.hessian = self._fresh()
        self.looking.remember(self.point)
        self.begun = True

    def _first_mu(self) -> float:
        """An objective that is no steeper than the constraints: multipliers are of that order."""
        g, J = self.point.gradient(), self.point.jacobian()
        slope = float(J.norm(dim=1).max()) if len(J) else 0.0
        ratio = slope / max(float(g.norm()), 1e-300)
        return ratio if 0 < ratio <= MU else 1.0  # a gradient that is 0 here is larger elsewhere

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from the state of an earlier run."""
        kind = state.get("kind") if isinstance(state, dict) else type(state).__name__
        if not isinstance(state, dict) or kind != KIND:
            raise DataError(f"resume={kind!r}: give the state of a result of sqp, result.state")
        x = state["x"].to(self.functions.first)
        self.begin(x)
        here = [len(x), *self.functions.count, self.settings.memory or 0]
        if list(state["shape"]) != here:
            words = "{} variables, {} equations, {} inequalities, {} pairs of the Hessian (0: all)"
            there = words.format(*state["shape"])
            raise DataError(f"resume: the state has {there}; this problem {words.format(*here)}")
        if not self.begun:
            return
        self.begun = False  # until all of it is back
        best = self.functions(state["best"].to(x))
        best.jacobian()
        self.best = best
        self.hessian.load(state["hessian"])
        self.mu, self.iteration = float(state["mu"]), int(state["iteration"])
        self.still, self.rescues = int(state["still"]), int(state["rescues"])
        self.single = float(state["single"])
        ups, downs = (index.to(x.device) for index in state["held"])
        sides = state["sides"].numpy()
        zero = torch.zeros_like(x)
        self.last = Direction(
            d=zero,
            mu=self.mu,
            y=zero[:0],
            w=zero,
            slope=0.0,
            gain=0.0,
            sides=sides,
            held=(ups, downs),
        )
        self.looking.load(state["looking"])
        self.functions.calls = int(state["evaluations"])
        self.begun = True

    def state(self) -> dict[str, Any]:
        """To go on from."""
        if not self.begun:
            return {}
        last = self.last
        none = torch.zeros(0, dtype=torch.long)
        held = (none, none) if last is None or not last.held else last.held
        n, memory = len(self.point.x), self.settings.memory or 0
        return {
            "kind": KIND,
            "shape": [n, *self.functions.count, memory],
            "x": self.point.x.clone(),
            "best": self.best.x.clone(),
            "hessian": self.hessian.state(),
            "mu": self.mu,
            "iteration": self.iteration,
            "still": self.still,
            "rescues": self.rescues,
            "single": self.single,
            "evaluations": self.functions.calls,
            "sides": torch.as_tensor(np.zeros(0) if last is None else last.sides),
            "held": held,
            "looking": self.looking.state(),
        }

    def concluded(self) -> Stationarity | None:
        """The conditions at the best point; None where it has no gradients."""
        if not self.begun:
            return None
        if self.best is self.point and self.fresh_look:
            return self.found
        return self.looking.look(self.best)

    def _fresh(self) -> Hessian:
        """Nothing known yet: a first step that is no longer than 1."""
        memory, x = self.settings.memory, self.point.x
        scale = 1 / max(1.0, self.mu * self.point.steepness())
        return Full(x, scale) if memory is None else Compact(x, memory, scale)

    @property
    def gradients(self) -> int:
        """Points at which gradients were taken."""
        return self.looking.gradients if self.begun else 0

    # --- the loop ---------------------------------------------------------------------------------

    def go(self, callback: Callable[[SolverProgress], Any] | None) -> None:
        """Step until something ends it."""
        self._stepped(callback)
        if self.begun and not self.functions.depends:
            self.status += ending.CONSTANT

    def _stepped(self, callback: Callable[[SolverProgress], Any] | None) -> None:
        while not self.status:
            self.status = self.limits.sentence(self.iteration, self.functions.calls)
            if self.status:
                break
            self.advance()
            if callback is not None and not self.status and callback(self.progress()):
                self.status = "stopped by the callback"

    def progress(self) -> SolverProgress:
        at = self.point.x
        return SolverProgress(
            what="SQP",
            done=self.iteration,
            evaluations=self.functions.calls,
            fun=self.point.f,
            violation=self.point.worst,
            kkt=self.rough,
            step=self.step,
            mu=self.mu,
            iterate=lambda: self.functions.copied(at),
        )

    def advance(self) -> None:
        """One step, or the end."""
        point = self.point
        try:
            direction = self._steered(self.hessian)
        except FloatingPointError:
            self.status = ending.overflow()
            return
        self.mu, self.last = direction.mu, direction
        self.rough = float(direction.w.norm()) / max(direction.mu, LEAST_MU)
        if self._ended(direction):
            return
        search, direction = self._searched(direction)
        if self.status:
            return
        if search.cut:  # the step is not whole: what it found is kept, and not gone on from
            if search.point is not None and search.point.slopes_finite():
                self._keep(search.point)
            return
        if search.point is None or search.t == 0:
            self._no_step()
            return
        after = search.point
        learn(self.hessian, point, after, direction, search.t, self.equations)
        before, now = point.merit(self.mu), after.merit(self.mu)
        small = 10 * self.functions.eps * max(1e-3, abs(before))
        self.still = self.still + 1 if before - now <= small else 0
        self._arrive(search)
        if self.mu > 1:  # the gradients at x0 may have been small by chance
            self.mu = min(self.mu, max(1.0, self._first_mu()))
        falls = search.endless or after.f <= ending.UNBOUNDED
        if falls and not self._breaks(after):
            self.status = ending.unbounded(after.f)
        elif falls:  # away from the constraints: back to where it broke them least, and μ down
            self.point, self.hessian = self.best, self._fresh()
            self._not_feasible(1e-3)
        elif self.still >= STALL:
            self._no_step()

    def _arrive(self, search: LineSearchResult) -> None:
        assert search.point is not None
        self.point, self.step, self.fresh_look = search.point, search.t, False
        self.iteration += 1
        self.looking.remember(self.point)
        self._keep(self.point)

    def _steered(self, hessian: Hessian) -> Direction:
        steering = Steering(
            self.point, self.equations, hessian, self.box, self.settings.qp, self.last
        )
        return steering.steer(self.mu, 1e-2 * self.settings.feasibility)

    def _keep(self, point: Evaluated) -> None:
        """The best so far."""
        best = self.best
        if self._breaks(best):  # of those that break the constraints alike the first stays
            better = not self._breaks(point) or point.total < (1 - 1e-9) * best.total
        else:
            better = not self._breaks(point) and point.f < best.f
        if better:
            self.best = point

    # --- the search -------------------------------------------------------------------------------

    def _searched(self, direction: Direction) -> tuple[LineSearchResult, Direction]:
        """Along the direction, and along that of H = I where it does not do."""
        search = self._along(direction, self.hessian)
        while search.endless and self.mu > LEAST_MU and self._breaks(search.point):
            # the merit falls for ever where the objective does so faster than constraints break
            self.mu *= 0.1
            direction = self._steered(self.hessian)
            search = self._along(direction, self.hessian)
        if search.t > 0:
            return search, direction
        if not self.hessian.fresh:
            plain = Compact(self.point.x, 1)
            direction = self._steered(plain)
            if direction.slope < 0:
                search = self._along(direction, plain)
                if search.t > 0:
                    self.hessian = self._fresh()
                    self.mu = direction.mu
        return search, direction

    def _breaks(self, point: Evaluated | None) -> bool:
        return point is None or point.worst > self.settings.feasibility

    def _along(self, direction: Direction, hessian: Hessian) -> LineSearchResult:
        return self.searching.along(self.point, direction, self.mu, hessian)

    # --- the end ----------------------------------------------------------------------------------

    def _ended(self, direction: Direction) -> bool:
        """Whether the conditions of an optimum hold here."""
        point, settings = self.point, self.settings
        if self._breaks(point):
            return False
        if self.rough > 1e3 * settings.tolerance * (1 + point.steepness()):
            short = float(direction.d.norm()) <= 1e-6 * self.looking.reach(point.x)
            if self.iteration % PATIENCE or not short:
                return False
        stationarity = self.looking.alone(point)
        left = self.looking.left(stationarity)
        falling, self.single = left < 0.3 * self.single < math.inf, left
        if left > settings.tolerance:
            if falling or left <= SMOOTH:
                return False  # a smooth problem gets there by itself
            stationarity = self.looking.around(point)
            left = self.looking.left(stationarity)
        if left <= settings.tolerance and stationarity.gap <= self._close():
            self.status = ending.solved(stationarity.kkt, len(stationarity.points))
            self.success = True
            if not self.iteration:
                self.status += ending.AT_ONCE
            self.best, self.found, self.fresh_look = point, stationarity, True
        return self.success

    def _close(self) -> float:
        """A gap that is none."""
        return 0.1 * self.settings.tolerance * max(1.0, abs(self.point.f))

    def _no_step(self) -> None:
        """No step lowers the merit: an optimum, a kink, or a point where the constraints part."""
        self.still = 0
        self.status = self.limits.sentence(self.iteration, self.functions.calls)
        if self.status:
            return
        if self._breaks(self.point):
            self._not_feasible()
            return
        stationarity = self.looking.look(self.point)
        if self.looking.left(stationarity) > LOOSE:
            stationarity = self.looking.look(
                self.point, self.looking.sampled(self.point, self.searching.spent)
            )
        # what a step over the radius of the samples could still gain, beside the objective itself
        gain = stationarity.gap + stationarity.kkt * SAMPLES * self.looking.reach(self.point.x)
        worthwhile = WORTH * (1 + abs(self.point.f))
        good = self.looking.left(stationarity) <= AT_KINKS and gain <= worthwhile
        if not good and self._rescued(stationarity):
            return
        self.found, self.fresh_look, self.success = stationarity, True, good
        if good:  # not one that is lower by what it breaks the constraints within their tolerance
            self.best = self.point
        count = int((stationarity.weights[:, 0] > 1e-9).sum())
        self.status = (
            ending.exhausted(stationarity.kkt, count)
            if good
            else ending.stuck(stationarity.kkt, self.searching.bad)
        )

    def _rescued(self, stationarity: Stationarity) -> bool:
        """A step along the least combination of the gradients around, where it leads on."""
        if self.rescues >= RESCUES:
            return False
        self.rescues += 1
        r, mu = self.mu * stationarity.r, self.mu
        sides = np.zeros(len(self.point.v))
        direction = Direction(
            d=-r,
            mu=mu,
            y=mu * stationarity.multipliers,
            w=r,
            slope=-float(r @ r),
            gain=0.0,
            sides=sides,
        )
        before = self.point
        step = self._along(direction, self.hessian)
        if step.point is None or step.t == 0:
            return False
        self.hessian = self._fresh()
        self._arrive(step)
        fell = before.merit(mu) - self.point.merit(mu)
        return fell > 1e-12 * (1e-3 + abs(before.merit(mu)))

    def _not_feasible(self, lower: float = 0.1) -> None:
        """Lower μ where that can still mend it; say infeasible where it cannot."""
        if self.mu > LEAST_MU:
            self.mu *= lower
            self.hessian = self._fresh()
            return
        self.status = ending.infeasible(self.best.total)
