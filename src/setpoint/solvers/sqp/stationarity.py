"""Residual of the conditions of an optimum at a point, kinks included.

    r = Σₖ αₖ ∇f(xₖ) + Σⱼ λⱼ ∇vⱼ + z,     α >= 0,  Σ α = 1,  λ of an inequality >= 0,  z of bounds

    kkt = min ‖r‖   over α, λ and z

over the constraints and bounds that are active at x, and gradients at points xₖ no further than a
small radius from it. A smooth problem needs one of them, x itself, and λ are its multipliers. At a
kink the gradients on its sides stand together for the subgradients, and a constraint with a kink
has a λ for each xₖ, whose sum is its multiplier. What the least norm is made of is returned, so
that anybody can check it.

References
----------
Burke, Lewis, Overton, A robust gradient sampling algorithm for nonsmooth, nonconvex optimization,
2005; Curtis, Mitchell, Overton, 2017, section 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.sqp import quadratic_program as quadratic
from setpoint.solvers.sqp.functions import Evaluated, Functions, host
from setpoint.solvers.sqp.steering import Box

RADIUS = 1e-4  #: of the points whose gradients are taken together, relative to the size of x
KINK = 1e-3  #: share by which a constraint's gradients differ, within the radius, at a kink
SIZE = 600  #: of the quadratic program, at most


@dataclass(frozen=True, eq=False)
class Near:
    """An iterate that is remembered, with its gradients."""

    x: Tensor
    f: float
    v: Tensor
    g: Tensor
    J: Tensor


@dataclass(frozen=True, eq=False)
class Stationarity:
    """The conditions of an optimum at a point.

    Attributes
    ----------
    kkt : float
        ‖r‖.
    gap : float
        By how much the tangents at xₖ miss the values at x, and the slack of constraints and
        bounds, weighed as the gradients are: about what can still be gained.
    r : torch.Tensor
        (n,) in units of f.
    scale : torch.Tensor
        (n,) the sum of the sizes of what r is the sum of.
    multipliers : torch.Tensor
        (m,) λ, equations first.
    low, high : torch.Tensor
        (n,) z of the bounds, >= 0.
    points, weights : torch.Tensor
        (l, n) xₖ and (l, 1 + m) what their gradients of f and of the constraints count.
    """

    kkt: float
    gap: float
    r: Tensor
    scale: Tensor
    multipliers: Tensor
    low: Tensor
    high: Tensor
    points: Tensor
    weights: Tensor


class Memory:
    """The last iterates and their gradients, for as long as they are near."""

    def __init__(self, most: int) -> None:
        self.kept: deque[Near] = deque(maxlen=most)

    def add(self, near: Near) -> None:
        self.kept.append(near)

    def near(self, x: Tensor, radius: float) -> list[Near]:
        """Those within the radius of x, the nearest first; x itself is among them."""
        if not self.kept:
            return []
        apart = torch.stack([near.x for near in self.kept]).sub_(x).norm(dim=1)
        order = torch.argsort(apart).tolist()
        return [self.kept[k] for k in order if float(apart[k]) <= radius]


def stationarity(
    near: Sequence[Near],
    v: Tensor,
    equations: int,
    box: Box | None,
    tolerance: float,
    solver: str = "auto",
) -> Stationarity:
    """The least ‖r‖ at the first of the points.

    Parameters
    ----------
    near : sequence of Near
        x first, and other points near it.
    v : torch.Tensor
        (m,) values of the constraints at x.
    equations : int
    box : Box, optional
    tolerance : float
        An inequality or a bound with no more slack is active.
    solver : str
        Of the quadratic program.
    """
    x, m = near[0].x, len(v)
    active = v >= -tolerance
    active[:equations] = True
    index = active.nonzero().reshape(-1)
    kinked = _kinked(near, index)
    near = near[: max(1, (SIZE - len(index)) // (1 + len(kinked)))]
    count = len(near)
    #: (point, constraint) of each column beside those of f
    owner = [(k, j) for j in index.tolist() for k in range(count if j in kinked else 1)]
    points = torch.tensor([k for k, _ in owner], dtype=torch.long, device=x.device)
    which = torch.tensor([j for _, j in owner], dtype=torch.long, device=x.device)
    bounds, sign, both, away = _resting(x, box, tolerance)
    held = x.new_zeros((len(bounds), len(x)))
    held[torch.arange(len(bounds), device=x.device), bounds] = sign
    A = torch.cat([torch.stack([p.g for p in near]), _rows(near, points, which, x), held])
    top, side = _off(near)
    slack = (-v[which]).clamp(min=0) * (which >= equations)
    cost = torch.cat([top, side[points, which] + slack, away])
    low = torch.zeros_like(cost)
    low[count : count + len(owner)][which < equations] = -torch.inf
    low[count + len(owner) :][both] = -torch.inf
    high = torch.full_like(cost, torch.inf)
    high[:count] = 1.0
    y = quadratic.hull(host(A), host(cost), host(low), host(high), count, solver)
    weight = torch.as_tensor(y).to(x)
    r = weight @ A
    weights = x.new_zeros((count, 1 + m))
    weights[:, 0] = weight[:count]
    weights[points, 1 + which] = weight[count : count + len(owner)]
    force = torch.zeros_like(x).index_put((bounds,), sign * weight[count + len(owner) :])
    return Stationarity(
        kkt=float(r.norm()),
        gap=float(cost @ weight.abs()),
        r=r,
        scale=weight.abs() @ A.abs(),
        multipliers=weights[:, 1:].sum(0),
        low=(-force).clamp(min=0),
        high=force.clamp(min=0),
        points=torch.stack([p.x for p in near]),
        weights=weights,
    )


def _rows(near: Sequence[Near], points: Tensor, which: Tensor, like: Tensor) -> Tensor:
    """The gradients of the constraints, (columns, n)."""
    if not len(which):
        return like.new_zeros((0, len(like)))
    if int(points.max()) == 0:
        return near[0].J[which]
    return torch.stack([p.J for p in near])[points, which]


def _off(near: Sequence[Near]) -> tuple[Tensor, Tensor]:
    """By how much each point's tangents miss the values at the first, (l,) and (l, m)."""
    x = near[0].x
    step = torch.stack([x - p.x for p in near])
    top = torch.stack([near[0].f - p.f - s @ p.g for p, s in zip(near, step, strict=True)]).abs()
    side = torch.stack([near[0].v - p.v - p.J @ s for p, s in zip(near, step, strict=True)]).abs()
    return top, side


def _kinked(near: Sequence[Near], index: Tensor) -> set[int]:
    """Active constraints whose gradients differ from point to point."""
    if len(near) < 2 or not len(index):
        return set()
    rows = torch.stack([p.J[index] for p in near])  # (l, a, n)
    apart = (rows - rows[:1]).norm(dim=2).amax(0)
    size = rows[0].norm(dim=1).clamp(min=1e-300)
    return set(index[apart > KINK * size].tolist())


def _resting(x: Tensor, box: Box | None, tolerance: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Coordinates that rest on a bound; 1 on an upper, −1 on a lower one; on both; how far away."""
    if box is None:
        none = torch.zeros(0, dtype=torch.long, device=x.device)
        return none, x.new_zeros(0), none.bool(), x.new_zeros(0)
    slack = tolerance * (1 + x.abs())
    lows, highs = x <= box.low + slack, x >= box.high - slack
    index = (lows | highs).nonzero().reshape(-1)
    upper = highs[index]
    away = torch.where(upper, box.high[index] - x[index], x[index] - box.low[index])
    return index, torch.where(upper, 1.0, -1.0).to(x), (lows & highs)[index], away


# Looking around an iterate: its own gradient first, those of points near it where it has a kink.
#
# A smooth problem is judged at x alone. Where that residual stays large, the gradients of earlier
# iterates within a small radius are taken along, and, where no step leads on, some at random
# points. Sizes are relative: to the size of x and the way it came, and to the gradients.


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

    def left(self, stationarity: Stationarity) -> float:
        """What is left of the conditions, coordinate by coordinate beside what it is made of.

        maxᵢ |rᵢ| / (1 + Σ |∇f|ᵢ + Σ |λ∇c|ᵢ + |z|ᵢ), with less than 1 where gradients are small from
        the start. A steep slope that a bound or a constraint holds says nothing of the others.
        """
        return float((stationarity.r.abs() / (self.unit + stationarity.scale)).max())

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
