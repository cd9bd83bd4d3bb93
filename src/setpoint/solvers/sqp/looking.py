"""Looking around an iterate: its own gradient first, those of points near it where it has a kink.

A smooth problem is judged at x alone. Where that residual stays large, the gradients of earlier
iterates within a small radius are taken along, and, where no step leads on, some at random points.
Sizes are relative: to the size of x and the way it came, and to the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.sqp.functions import Evaluated, Functions
from setpoint.solvers.sqp.stationarity import RADIUS, Memory, Near, Stationarity, stationarity
from setpoint.solvers.sqp.steering import Box

LOOSE = 1e-6  #: what one point may leave of the conditions before others are asked
SAMPLES = 1e-6  #: radius of the points that are sampled, relative to the size of x
MOST = 100  #: iterates that are remembered
ENTRIES = 20_000_000  #: of their gradients, 160 MB, at most


class Looking:
    """What is known around the iterates of a run.

    Parameters
    ----------
    functions : Functions
    box : Box, optional
    start : Evaluated
        Where the run starts.
    feasibility : float
    solver : str
        Of the quadratic programs.
    seed : int
        Of the points that are sampled.
    """

    def __init__(
        self,
        functions: Functions,
        box: Box | None,
        start: Evaluated,
        feasibility: float,
        solver: str,
        seed: int,
    ) -> None:
        self.functions, self.box, self.solver = functions, box, solver
        self.equations = functions.count[0]
        self.active = max(10 * feasibility, 1e-7)  #: slack of what is held to be active
        self.first, self.unit = start.x, min(1.0, start.steepness() or 1.0)
        self.rng = torch.Generator().manual_seed(seed)
        n, m = len(start.x), len(start.v)
        self.memory = Memory(max(2, min(MOST, n + 10, ENTRIES // ((1 + m) * n))))
        self.gradients = 0  #: points at which they were taken

    def remember(self, point: Evaluated) -> None:
        """An iterate that may be near a later one."""
        self.gradients += 1
        self.memory.add(remembered(point))

    def left(self, found: Stationarity) -> float:
        """What is left of the conditions, coordinate by coordinate beside what it is made of.

        maxᵢ |rᵢ| / (1 + Σ |∇f|ᵢ + Σ |λ∇c|ᵢ + |z|ᵢ), with less than 1 where gradients are small from
        the start. A steep slope that a bound or a constraint holds says nothing of the others.
        """
        return float((found.r.abs() / (self.unit + found.scale)).max())

    def reach(self, x: Tensor) -> float:
        """The size that x has here: how large it is, or how far it came."""
        return max(float(x.norm()), float((x - self.first).norm())) or 1.0

    def alone(self, point: Evaluated) -> Stationarity:
        """The conditions of an optimum with the gradients at the point itself."""
        return self._read(point, [remembered(point)])

    def around(self, point: Evaluated, extra: Sequence[Near] = ()) -> Stationarity:
        """The same with those of points near it."""
        within = RADIUS * self.reach(point.x)
        others = [p for p in self.memory.near(point.x, within) if p.x is not point.x]
        return self._read(point, [remembered(point), *extra, *others])

    def look(self, point: Evaluated, extra: Sequence[Near] = ()) -> Stationarity:
        """At the point alone, unless gradients near it do better."""
        alone = self.alone(point)
        if self.left(alone) <= LOOSE:
            return alone
        around = self.around(point, extra)
        return around if around.kkt < 0.1 * alone.kkt else alone

    def sampled(self, point: Evaluated, spent: Callable[[], bool]) -> list[Near]:
        """Gradients at random points around one, as long as no limit is reached."""
        x, n = point.x, len(point.x)
        radius, out = SAMPLES * self.reach(x), []
        for _ in range(min(2 * n, n + 10, 50)):
            if spent():
                break
            step = torch.randn(n, generator=self.rng, dtype=torch.float64).to(x)
            moved = x + step * (radius / max(float(step.norm()), 1e-300))
            trial = self.functions(moved if self.box is None else self.box.clip(moved))
            if trial.finite and trial.slopes_finite():
                self.gradients += 1
                out.append(remembered(trial))
        return out

    def state(self) -> dict[str, Any]:
        """To go on from."""
        kept = self.memory.kept
        return {
            "unit": self.unit,
            "first": self.first.clone(),
            "rng": self.rng.get_state(),
            "gradients": self.gradients,
            "memory": tuple([getattr(p, name) for p in kept] for name in ("x", "f", "v", "g", "J")),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        like = self.first
        self.unit, self.first = float(state["unit"]), state["first"].to(like)
        self.rng.set_state(state["rng"])
        self.gradients = int(state["gradients"])
        self.memory.kept.clear()
        for x, f, *parts in zip(*state["memory"], strict=True):
            self.memory.add(Near(x.to(like), float(f), *(part.to(like) for part in parts)))

    def _read(self, point: Evaluated, near: list[Near]) -> Stationarity:
        return stationarity(near, point.v, self.equations, self.box, self.active, self.solver)


def remembered(point: Evaluated) -> Near:
    """A point with all that is known of it."""
    return Near(point.x, point.f, point.v, point.gradient(), point.jacobian())
