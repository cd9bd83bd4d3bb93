"""BFGS-SQP: steer, search along the direction, learn the curvature; until the conditions hold.

The best point so far, the one with the least f that keeps the constraints (else the one that breaks
them least), is kept apart from the iterate and is what is returned, however the run ends. Where no
step along the direction of steering lowers the merit, the ways out are, in turn: steering with
H = I, and gradients sampled around the point, which see the kinks that one gradient does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.solvers.result import Progress
from setpoint.solvers.sqp import ending, merit
from setpoint.solvers.sqp.ending import Limits
from setpoint.solvers.sqp.functions import Evaluated, Functions
from setpoint.solvers.sqp.hessian import SHARE, Compact, Full, Hessian, damped
from setpoint.solvers.sqp.line_search import DECREASE, Found, weak_wolfe
from setpoint.solvers.sqp.stationarity import RADIUS, Memory, Near, Stationarity, stationarity
from setpoint.solvers.sqp.steering import Box, Direction, Steering

PATIENCE = 5  #: steps from one look at the gradients around to the next
SMOOTH = 1e-3  #: kkt of one point, relative to the gradient, that does not look like a kink
LOOSE = 1e-6  #: kkt of one point, relative to the gradient, below which no others are asked
STEEP = 1e4  #: times the first gradient, beyond which a gradient says nothing about scale
BENDS = 3  #: corrections of a step
RESCUES = 30  #: of a run, by gradients around a kink
SHORT = 0.1  #: of a step that is cut
STALL = 6  #: steps without change after which the end is judged
WORTH = 1e-6  #: share of the objective that is not worth a further step
KINK_TOLERANCE = 1e-5  #: kkt, relative to the gradient, that counts as solved where nothing moves
SAMPLES = 1e-6  #: radius of the points that are sampled, relative to the size of x
MU = 1e3  #: at most, where the gradients at x0 say what it should be
LEAST_MU = 1e-14


@dataclass(frozen=True)
class Settings:
    """Of a run: see :func:`setpoint.solvers.minimize.minimize`."""

    tolerance: float = 1e-8
    feasibility: float = 1e-8
    memory: int | None = None
    qp: str = "auto"
    seed: int = 0


class Run:
    """One run."""

    def __init__(
        self, functions: Functions, box: Box | None, settings: Settings, limits: Limits
    ) -> None:
        self.functions, self.box, self.settings, self.limits = functions, box, settings, limits
        self.mu = 1.0
        self.iteration = self.gradients = 0
        self.still = 0  #: steps in a row that changed nothing
        self.memory = Memory()
        self.status, self.success = "", False
        self.sides: np.ndarray | None = None
        self.found: Stationarity | None = None
        self.step = 0.0
        self.rescues = 0
        self.single = math.inf  #: kkt of the iterate alone, when it was read last
        self.rng = torch.Generator().manual_seed(settings.seed)
        self.saw_bad = False
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
        self.first = self.point.x
        self.steep = self.point.steepness() or 1.0
        self.mu = self._first_mu()
        self.hessian = self._fresh()
        self.memorise()
        self.begun = True

    def _first_mu(self) -> float:
        """An objective that is no steeper than the constraints: multipliers are of that order."""
        g, J = self.point.gradient(), self.point.jacobian()
        slope = float(J.norm(dim=1).max()) if len(J) else 0.0
        ratio = slope / max(float(g.norm()), 1e-300)
        return ratio if 0 < ratio <= MU else 1.0  # a gradient that is 0 here is larger elsewhere

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from the state of an earlier run."""
        x = state["x"].to(self.functions.first)
        if x.shape != self.functions.first.shape:
            raise DataError(
                f"resume: the state has {len(x)} variables, x0 {len(self.functions.first)}"
            )
        self.begin(x)
        if not self.begun:
            return
        best = self.functions(state["best"].to(x))
        best.jacobian()
        self.best = best
        self.hessian.load(state["hessian"])
        self.mu, self.iteration = float(state["mu"]), int(state["iteration"])
        self.still, self.gradients = int(state["still"]), int(state["gradients"])
        self.sides, self.rescues = state["sides"], int(state["rescues"])
        self.single, self.steep = float(state["single"]), float(state["steep"])
        self.first = state["first"].to(x)
        self.rng.set_state(state["rng"])
        self.memory = Memory()
        for near in zip(*state["memory"], strict=True):
            self.memory.add(Near(near[0].to(x), float(near[1]), *(part.to(x) for part in near[2:])))
        self.functions.calls = int(state["evaluations"])

    def state(self) -> dict[str, Any]:
        """To go on from."""
        if not self.begun:
            return {}
        kept = self.memory.kept
        return {
            "x": self.point.x.clone(),
            "best": self.best.x.clone(),
            "hessian": self.hessian.state(),
            "mu": self.mu,
            "iteration": self.iteration,
            "still": self.still,
            "rescues": self.rescues,
            "single": self.single,
            "steep": self.steep,
            "first": self.first.clone(),
            "gradients": self.gradients,
            "evaluations": self.functions.calls,
            "sides": self.sides,
            "rng": self.rng.get_state(),
            "memory": tuple([getattr(p, name) for p in kept] for name in ("x", "f", "v", "g", "J")),
        }

    def concluded(self) -> Stationarity | None:
        """The conditions at the best point; None where it has no gradients."""
        if not self.begun:
            return None
        if self.best is self.point and self.fresh_look:
            return self.found
        return self.look(self.best)

    def _fresh(self) -> Hessian:
        """Nothing known yet: a first step that is no longer than 1."""
        memory, x = self.settings.memory, self.point.x
        scale = 1 / max(1.0, self.mu * self.point.steepness())
        return Full(x, scale) if memory is None else Compact(x, memory, scale)

    def memorise(self) -> None:
        self.gradients += 1
        self.memory.add(remembered(self.point))

    # --- the loop ---------------------------------------------------------------------------------

    def go(self, callback: Callable[[Progress], Any] | None) -> None:
        """Step until something ends it."""
        self._stepped(callback)
        if self.begun and not self.functions.depends:
            self.status += ending.CONSTANT

    def _stepped(self, callback: Callable[[Progress], Any] | None) -> None:
        while not self.status:
            self.status = self.limits.sentence(self.iteration, self.functions.calls)
            if self.status:
                break
            self.advance()
            if callback is not None and not self.status and callback(self.progress()):
                self.status = "stopped by the callback"

    def progress(self) -> Progress:
        kkt = math.nan if self.found is None else self.found.kkt
        worst = self.point.worst
        at = self.point.x
        return Progress(
            self.iteration,
            self.functions.calls,
            self.point.f,
            worst,
            kkt,
            self.step,
            self.mu,
            lambda: self.functions.copied(at),
        )

    def advance(self) -> None:
        """One step, or the end."""
        point = self.point
        try:
            direction = self._steered(self.hessian)
        except FloatingPointError:
            self.status = ending.overflow()
            return
        self.mu, self.sides = direction.mu, direction.sides
        if self._ended(direction):
            return
        found, direction = self._searched(direction)
        if self.status:
            return
        if found.point is None or found.t == 0:
            self._no_step()
            return
        after = found.point
        self._learn(point, after, direction, found.t)
        before, now = point.merit(self.mu), after.merit(self.mu)
        small = 10 * self.functions.eps * max(1e-3, abs(before))
        self.still = self.still + 1 if before - now <= small else 0
        self._arrive(found)
        if not self._breaks(after) and (found.endless or after.f <= ending.UNBOUNDED):
            self.status = ending.unbounded(after.f)
        elif self.still >= STALL:
            self._no_step()

    def _arrive(self, found: Found) -> None:
        assert found.point is not None
        self.point, self.step, self.fresh_look = found.point, found.t, False
        self.iteration += 1
        self.memorise()
        self._keep(self.point)

    def _steered(self, hessian: Hessian) -> Direction:
        steering = Steering(
            self.point, self.equations, hessian, self.box, self.settings.qp, self.sides
        )
        return steering.steer(self.mu, 1e-2 * self.settings.feasibility)

    def _keep(self, point: Evaluated) -> None:
        """The best so far."""
        if self._rank(point) < self._rank(self.best):
            self.best = point

    def _rank(self, point: Evaluated) -> tuple[float, float]:
        return (point.total if self._breaks(point) else 0.0), point.f

    # --- the search -------------------------------------------------------------------------------

    def _searched(self, direction: Direction) -> tuple[Found, Direction]:
        """Along the direction, and along that of H = I where it does not do."""
        found = self._along(direction)
        while found.endless and self.mu > LEAST_MU and self._breaks(found.point):
            # the merit falls for ever where the objective does so faster than constraints break
            self.mu *= 0.1
            direction = self._steered(self.hessian)
            found = self._along(direction)
        if found.t > 0:
            return found, direction
        if not self.hessian.fresh:
            direction = self._steered(Compact(self.point.x, 1))
            if direction.slope < 0:
                found = self._along(direction)
                if found.t > 0:
                    self.hessian = self._fresh()
                    self.mu = direction.mu
        return found, direction

    def _breaks(self, point: Evaluated | None) -> bool:
        return point is None or point.worst > self.settings.feasibility

    def _along(self, direction: Direction) -> Found:
        if not direction.slope < 0:
            return Found(0.0, None)
        point, d, mu, k = self.point, direction.d, self.mu, self.equations
        start = point.merit(mu)
        room = math.inf if self.box is None else max(1.0, self.box.room(point.x, d))
        noise = 2 * self.functions.eps * abs(start)

        def at(t: float) -> Evaluated:
            return self._at(point.x + t * d)

        def slope_at(trial: Evaluated) -> float:
            return float(trial.pull(mu, merit.paid(trial.v, k)) @ d)

        def further(held: Evaluated, trial: Evaluated) -> bool:
            least = self.settings.feasibility
            return trial.total <= held.total + least

        first = at(1.0)
        enough = start + DECREASE * direction.slope + noise
        if len(point.v) and not (first.finite and first.merit(mu) <= enough):
            bent = self._corrected(direction, first, enough)
            if bent is not None:
                return Found(1.0, bent)
        found = weak_wolfe(
            at,
            lambda trial: trial.merit(mu),
            slope_at,
            start,
            direction.slope,
            room=room,
            noise=noise,
            first=first,
            further=further,
            spent=lambda: self.limits.spent(self.functions.calls),
        )
        self.saw_bad = self.saw_bad or found.bad
        if found.point is not None and bool((found.point.x == point.x).all()):
            return Found(0.0, None, bad=found.bad)  # too short for the numbers that x is made of
        return found

    def _at(self, x: Tensor) -> Evaluated:
        return self.functions(x if self.box is None else self.box.clip(x))

    def _corrected(self, direction: Direction, trial: Evaluated, enough: float) -> Evaluated | None:
        """The full step, bent back to the constraints that it broke by their curvature.

        x + d ← x + d − H Jᵀ (J H Jᵀ)⁻¹ v(x + d), over the constraints that hold d, while that
        breaks them less and less. Without it the merit refuses good steps along a curved
        constraint (Nocedal, Wright, section 18.3).
        """
        active = direction.y.abs() > 1e-12
        active[: self.equations] = True
        rise = trial.total - self.point.total
        if not trial.finite or rise <= 1e-2 * self.settings.feasibility or not bool(active.any()):
            return None
        J = self.point.jacobian()[active]
        HJ = self.hessian.apply(J.T)
        Q = J @ HJ
        Q.diagonal().add_(1e-12 * float(Q.diagonal().mean()))
        factor, failed = torch.linalg.cholesky_ex(Q)
        if int(failed):
            return None
        longest = float(direction.d.norm())
        for _ in range(BENDS):
            step = -(HJ @ torch.cholesky_solve(trial.v[active][:, None], factor)[:, 0])
            if not float(step.norm()) <= longest:
                return None
            before, trial = trial, self._at(trial.x + step)
            if not trial.finite or trial.total > 0.5 * before.total:
                return None
            if trial.merit(self.mu) <= enough:
                return trial if trial.slopes_finite() else None
        return None

    def _learn(self, before: Evaluated, after: Evaluated, direction: Direction, t: float) -> None:
        s = after.x - before.x
        Bs = -t * direction.w  # of the step without its correction, which is of second order
        y = direction.mu * (after.gradient() - before.gradient())
        if len(direction.y):
            y = y + (after.jacobian() - before.jacobian()).T @ direction.y
        if t <= SHORT and float(s @ y) < SHARE * float(s @ Bs):
            # the Lagrangian has less curvature than B along s, and still the step was too long: it
            # is the constraints that bend, and the merit knows of them
            k = self.equations
            far, near = (p.pull(direction.mu, merit.paid(p.v, k)) for p in (after, before))
            y = far - near
        self.hessian.update(s, damped(s, y, Bs))

    # --- the end ----------------------------------------------------------------------------------

    def _ended(self, direction: Direction) -> bool:
        """Whether the conditions of an optimum hold here."""
        point, settings = self.point, self.settings
        if self._breaks(point):
            return False
        size = self._size(point)
        rough = float(direction.w.norm()) / max(direction.mu, LEAST_MU)
        if rough > 1e3 * settings.tolerance * size:
            short = float(direction.d.norm()) <= 1e-6 * self._reach(point.x)
            if self.iteration % PATIENCE or not short:
                return False
        found = self._read(point, [remembered(point)])
        falling = found.kkt < 0.3 * self.single < math.inf
        self.single = found.kkt
        if found.kkt > settings.tolerance * size:
            if falling or found.kkt <= SMOOTH * size:
                return False  # a smooth problem gets there by itself
            found = self._read(point, self._around(point, []))
        if found.kkt <= settings.tolerance * size and found.gap <= self._close():
            self.status, self.success = ending.solved(found.kkt, len(found.points)), True
            self.best, self.found, self.fresh_look = point, found, True
        return self.success

    def _size(self, point: Evaluated) -> float:
        """What kkt is compared with: 1 + ‖∇f‖, or less where gradients are small from the start.

        Where they grow without end, at a pole, they say nothing about scale.
        """
        return min(1.0, self.steep) + min(point.steepness(), STEEP * self.steep)

    def _close(self) -> float:
        """A gap that is none."""
        return 0.1 * self.settings.tolerance * max(1.0, abs(self.point.f))

    def look(self, point: Evaluated, extra: Sequence[Near] = ()) -> Stationarity:
        """The conditions of an optimum: at the point alone, unless gradients near it do better."""
        alone = self._read(point, [remembered(point)])
        if alone.kkt <= LOOSE * self._size(point):
            return alone
        around = self._read(point, self._around(point, extra))
        return around if around.kkt < 0.1 * alone.kkt else alone

    def _read(self, point: Evaluated, near: list[Near]) -> Stationarity:
        tolerance = max(10 * self.settings.feasibility, 1e-7)
        return stationarity(near, point.v, self.equations, self.box, tolerance, self.settings.qp)

    def _around(self, point: Evaluated, extra: Sequence[Near]) -> list[Near]:
        here = remembered(point)
        within = RADIUS * self._reach(point.x)
        others = [p for p in self.memory.near(point.x, within) if p.x is not point.x]
        return [here, *extra, *others]

    def _no_step(self) -> None:
        """No step lowers the merit: an optimum, a kink, or a point where the constraints part."""
        self.still = 0
        self.status = self.limits.sentence(self.iteration, self.functions.calls)
        if self.status:
            return
        if self._breaks(self.point):
            self._not_feasible()
            return
        size = self._size(self.point)
        found = self.look(self.point)
        if found.kkt > LOOSE * size:
            found = self.look(self.point, self._sampled())
        # what a step over the radius of the samples could still gain, beside the objective itself
        gain = found.gap + found.kkt * SAMPLES * self._reach(self.point.x)
        good = found.kkt <= KINK_TOLERANCE * size and gain <= WORTH * (1 + abs(self.point.f))
        if not good and self._rescued(found):
            return
        self.found, self.fresh_look, self.success = found, True, good
        count = int((found.weights[:, 0] > 1e-9).sum())
        self.status = (
            ending.exhausted(found.kkt, count) if good else ending.stuck(found.kkt, self.saw_bad)
        )

    def _rescued(self, found: Stationarity) -> bool:
        """A step along the least combination of the gradients around, where it leads on."""
        if self.rescues >= RESCUES:
            return False
        self.rescues += 1
        r, mu = self.mu * found.r, self.mu
        direction = Direction(
            -r, mu, mu * found.multipliers, r, -float(r @ r), 0.0, np.zeros(len(self.point.v))
        )
        before = self.point
        step = self._along(direction)
        if step.point is None or step.t == 0:
            return False
        self.hessian = self._fresh()
        self._arrive(step)
        fell = before.merit(mu) - self.point.merit(mu)
        return fell > 1e-12 * (1e-3 + abs(before.merit(mu)))

    def _not_feasible(self) -> None:
        """Lower μ where that can still mend it; say infeasible where it cannot."""
        if self.mu > LEAST_MU:
            self.mu *= 0.1
            self.hessian = self._fresh()
            return
        self.status = ending.infeasible(self.best.total)

    def _reach(self, x: Tensor) -> float:
        """The size that x has here: how large it is, or how far it came."""
        return max(float(x.norm()), float((x - self.first).norm())) or 1.0

    def _sampled(self) -> list[Near]:
        """Gradients at random points around the iterate."""
        x = self.point.x
        n = len(x)
        count = min(2 * n, n + 10, 50)
        radius = SAMPLES * self._reach(x)
        out = []
        for _ in range(count):
            step = torch.randn(n, generator=self.rng, dtype=torch.float64).to(x)
            step *= radius / max(float(step.norm()), 1e-300)
            moved = x + step if self.box is None else self.box.clip(x + step)
            trial = self.functions(moved)
            if trial.finite and trial.slopes_finite():
                self.gradients += 1
                out.append(remembered(trial))
        return out


def remembered(point: Evaluated) -> Near:
    """A point with all that is known of it."""
    return Near(point.x, point.f, point.v, point.gradient(), point.jacobian())
