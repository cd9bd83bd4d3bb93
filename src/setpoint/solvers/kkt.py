"""Residual of the conditions of an optimum at a point, and the multipliers that show it.

    r(λ) = ∇f + ω ∇R + Σⱼ λⱼ ∇vⱼ,        λⱼ ∈ [0, μⱼ],  an equation's in [−μⱼ, μⱼ]

    λ = argmin ‖r̂(λ)‖,     stationarity = ‖r̂(λ)‖,     complementarity = maxⱼ λⱼ [−vⱼ]₊

r̂ is r without what the bounds of x hold up: at a lower bound only r < 0 counts, at an upper one
only r > 0; in a set that is no box, what a short step leaves when it is projected back. λ is 0
where a constraint has slack. The ℓ₁ penalty is *exact* once μ is greater than the multipliers of an
optimum, so that the box of λ takes nothing away; and r̂ = 0 for a λ in it says that 0 is a
subgradient of f + ω R + Σ μⱼ [vⱼ]₊ at a point that keeps the constraints.

Three ways to λ, the first that can be afforded:

- *bounded least squares* with the gradients of the active constraints, a backward pass for each;
- the same *without the matrix*, where there are many (a constraint for each row, say). It asks for
  derivatives of derivatives, and stops after a fixed number of passes;
- *the subgradient* of the penalty at x itself: μⱼ where broken, 0 elsewhere. Where its residual is
  small it proves as much, where it is large it proves nothing.

Where f, R or v have a kink at x, gradients are those that autograd takes there: stationarity is an
upper bound and λ may be off. A kink of f written as constraints (t >= x, t >= −x for |x|) is read
rightly. Where the gradients of constraints depend on each other, λ is one choice of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import lsq_linear
from torch import Tensor

from setpoint.programs.constrained_problem import (
    Bounds,
    ConstrainedProblem,
    Variables,
    alike,
    variables,
)
from setpoint.solvers.box_projection import project

# The forces that come nearest to a balance: least squares over a box, one-sided at bounds.
#
#     minimise ½ ‖r̂(λ)‖²   over   low <= λ <= high,      r(λ) = g + Jᵀ λ
#
# r̂ is r where a coordinate is free, min(r, 0) where it is at its lower bound (the bound holds up
# the rest), max(r, 0) at its upper one, 0 at both. Convex and piecewise quadratic in λ. With J at
# hand by
# bounded least squares on the coordinates that count, which gives a direction that descends;
# without it, from products with J and Jᵀ alone, by spectral projected gradients, whose steps are
# 1/curvature
# along the last one. A few constraints that touch everything beside thousands that touch a row each
# are a few great eigenvalues beside equal ones, which such steps find in a few tens.
#
# References
# ----------
# Stark, Parker, Bounded-variable least squares, 1995; Birgin, Martínez, Raydan, Nonmonotone
# spectral projected gradient methods on convex sets, 2000.


CHANGES = 30  #: of the set of coordinates that count
HALVINGS = 20  #: of a step that goes too far
ITERATIONS = 150  #: of the spectral gradients
MEMORY = 10  #: values that a new one must not exceed all

Box = tuple[Tensor, Tensor]  #: the least and the greatest λ
Counted = Callable[[Tensor], Tensor]  #: r -> r̂


@dataclass(frozen=True, eq=False)
class Resting:
    """Which coordinates rest on a bound, (p,) each."""

    low: Tensor
    high: Tensor

    def counted(self, r: Tensor) -> Tensor:
        """r̂: what no bound holds up."""
        r = torch.where(self.low, r.clamp(max=0), r)
        return torch.where(self.high, r.clamp(min=0), r)

    def counts(self, r: Tensor) -> Tensor:
        """Which coordinates count, or would as soon as r moves the wrong way."""
        return ~(self.low & (r > 0)) & ~(self.high & (r < 0)) & ~(self.low & self.high)

    def cpu(self) -> Resting:
        """The same on the host."""
        return Resting(self.low.cpu(), self.high.cpu())


def direct(rows: Tensor, g: Tensor, resting: Resting, box: Box) -> Tensor:
    """λ (k,) from J (k, p), both in double precision on the host."""
    low, high = (side.numpy() for side in box)
    paid = torch.zeros(len(rows), dtype=rows.dtype).clamp(*box)
    r = g + paid @ rows
    value = float(resting.counted(r).square().sum())
    for _ in range(CHANGES):
        kept = resting.counts(r)
        matrix, right = rows[:, kept].T.numpy(), -g[kept].numpy()
        if not matrix.size:
            break
        aim = torch.as_tensor(_bounded(matrix, right, low, high))
        for halving in range(HALVINGS):
            tried = paid + 0.5**halving * (aim - paid)
            after = g + tried @ rows
            reached = float(resting.counted(after).square().sum())
            if reached < value:
                break
        else:
            break
        paid, r, before, value = tried, after, value, reached
        settled = halving == 0 and torch.equal(resting.counts(r), kept)
        if settled or before - value <= 1e-14 * before:
            break
    return paid


def _bounded(
    matrix: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The λ in a box with the least ‖A λ − b‖, by way of the small triangle of A = Q R."""
    if matrix.shape[0] > matrix.shape[1]:
        q, matrix = np.linalg.qr(matrix)
        right = q.T @ right
    return lsq_linear(matrix, right, (low, high), method="bvls").x


def spectral(
    pull: Callable[[Tensor], Tensor],
    push: Callable[[Tensor], Tensor],
    g: Tensor,
    counted: Counted,
    box: Box,
    start: Tensor,
    sizes: Tensor,
) -> Tensor:
    """λ (m,) from products alone.

    Parameters
    ----------
    pull, push : callable
        λ -> Jᵀ λ (p,) and r -> J r (m,).
    g : torch.Tensor
        (p,)
    counted : callable
        r -> r̂; minus the projection of −r onto the directions that are open.
    box : tuple of torch.Tensor
    start : torch.Tensor
        Where to begin; the answer is no worse.
    sizes : torch.Tensor
        (m,) about the norms of the rows of J, 0 for those that are to be left alone.
    """
    # in units of 1/norm all rows are alike, and a step that suits one suits the others
    units = torch.where(sizes > 0, 1 / sizes.clamp(min=torch.finfo(sizes.dtype).tiny), 0)
    paid = start.clamp(*box)
    r = g + pull(paid)
    left = counted(r)
    value = float(left.square().sum())
    best, least, values, length = paid, value, [value], 1.0
    slope = push(left)
    for _ in range(ITERATIONS):
        way = (paid - length * units.square() * slope).clamp(*box) - paid
        along, falls = pull(way), float((slope * way).sum())
        if not falls < 0:
            break
        share, highest = 1.0, max(values[-MEMORY:])
        for _ in range(HALVINGS):  # r is linear along the way: no passes are needed
            left = counted(r + share * along)
            value = float(left.square().sum())
            if value <= highest + 1e-4 * share * falls:
                break
            share *= 0.5
        paid, r = paid + share * way, r + share * along
        values.append(value)
        if value < least:
            best, least = paid, value
        before, slope = slope, push(left)
        bent = float(((slope - before) * way).sum())
        square = float((way * sizes).square().sum())
        length = min(max(share * square / bent, 1e-10), 1e10) if bent > 0 else 1e10
    return best


DIRECT = 200  #: active constraints up to which their gradients are taken one by one
ENTRIES = 20_000_000  #: of their matrix, 160 MB, up to which it is made
PROBES = 8  #: random directions by which the gradients of many constraints are measured


@dataclass(frozen=True, eq=False)
class Kkt:
    """The conditions of an optimum at a point.

    Attributes
    ----------
    multipliers : numpy.ndarray
        (m,) λ, inequalities first.
    stationarity : float
        ‖r̂(λ)‖, Euclidean.
    complementarity : float
        The greatest λⱼ [−vⱼ]₊, or force of a bound times the distance to it.
    gradient : float
        ‖∇f + ω ∇R‖, to compare the first with.
    how : str
        How λ was found.
    """

    multipliers: np.ndarray
    stationarity: float
    complementarity: float
    gradient: float
    how: str


def kkt(
    problem: ConstrainedProblem,
    x: Variables,
    weights: Any,
    *,
    strength: float = 0.0,
    power: int = 1,
    tolerance: float = 1e-3,
    most: int = DIRECT,
    thorough: bool = True,
) -> Kkt:
    """Multipliers and residuals at x.

    Parameters
    ----------
    problem : ConstrainedProblem
    x : torch.Tensor or tuple of them
    weights : torch.Tensor
        (m,) μ.
    strength : float
        ω, the weight of the regulariser.
    power : {1, 2}
        Of the penalty. With 2 the multipliers have no greatest value.
    tolerance : float
        A constraint or a bound is active where its slack is no greater.
    most : int
        Active constraints up to which their gradients are taken one by one.
    thorough : bool
        Where there are more: whether to go the way without the matrix, or to stay with the
        subgradient, which costs one pass.

    Examples
    --------
    The nearest point to 2 below 1, where a unit of the bound costs 1:

    >>> problem = ConstrainedProblem(lambda x: 0.5 * (x - 2).square().sum(), lambda x: x - 1)
    >>> at = kkt(problem, torch.tensor([1.0]), torch.tensor([3.0]))
    >>> at.multipliers, at.stationarity
    (array([1.]), 0.0)
    """
    leaves = [part.detach().clone().requires_grad_() for part in variables(x)]
    at = alike(x, leaves)
    with torch.enable_grad():
        top = problem.objective(at)
        if problem.regulariser is not None and strength:
            top = top + strength * problem.regulariser(at)
        c, e = problem.sides(at)
        slopes = _Slopes(torch.cat([c, e]), leaves)
        g = _flat(_gradients(top, leaves), leaves)
    v = slopes.v.detach()
    equal = torch.arange(len(v), device=v.device) >= len(c)
    mu = torch.as_tensor(weights).to(v)
    resting, gap = _resting(leaves, problem.box(x), tolerance)
    counted = resting.counted
    most = min(most, ENTRIES // max(len(g), 1))
    if problem.project is not None:
        counted = _tangent(problem, x, g, tolerance)
        most = 0  # least squares with the matrix knows of bounds alone
    start, box = _penalised(v, mu, equal, power)
    active = equal | (v >= -tolerance)
    paid, how = _found(slopes, g, (resting, counted), box, active, start, most, thorough)
    r = g + slopes.pull(paid)
    slack = torch.where(equal, 0, -v).clamp(min=0)
    forces = (r - resting.counted(r)).abs() * gap
    return Kkt(
        paid.double().cpu().numpy(),
        float(counted(r).norm()),
        max(0.0, _greatest(paid * slack), _greatest(forces)),
        float(g.norm()),
        how,
    )


def _penalised(v: Tensor, mu: Tensor, equal: Tensor, power: int) -> tuple[Tensor, Box]:
    """What the penalty itself pays for each constraint, and between what it could."""
    broken = torch.where(equal, v, v.clamp(min=0))
    high = mu if power == 1 else torch.full_like(mu, torch.inf)
    paid = mu * (broken.sign() if power == 1 else broken)
    return paid, (torch.where(equal, -high, 0), high)


def _found(
    slopes: _Slopes,
    g: Tensor,
    held: tuple[Resting, Counted],
    box: Box,
    active: Tensor,
    start: Tensor,
    most: int,
    thorough: bool,
) -> tuple[Tensor, str]:
    """λ, and how it was found."""
    count, sizes = int(active.sum()), None
    if count > most:
        sizes = slopes.sizes() if thorough else None
        if sizes is None:
            return start, "the subgradient of the penalty"
        sizes = sizes * active
        active = sizes > 0  # what has no slope here has no say
        count = int(active.sum())
    if sizes is not None and count > most:
        paid = spectral(slopes.pull, slopes.push, g, held[1], box, start * active, sizes)
        return paid, f"least squares without the matrix over {count} active constraints"
    paid = torch.zeros_like(start)
    index = active.nonzero().reshape(-1)
    if count:
        rows = torch.stack([slopes.row(int(j)) for j in index]).double().cpu()
        low, high = (side[index].double().cpu() for side in box)
        multipliers = direct(rows, g.double().cpu(), held[0].cpu(), (low, high))
        paid[index] = multipliers.to(paid)
    return paid, f"least squares over {count} active constraint{'s' * (count != 1)}"


class _Slopes:
    """J, the gradients of v, by products with it."""

    def __init__(self, v: Tensor, leaves: Sequence[Tensor]) -> None:
        self.v, self.leaves = v, leaves
        self.like = _flat([None] * len(leaves), leaves)  # (p,) of the type that all have together
        self.probe = torch.zeros_like(v, requires_grad=True)
        self.pulled: Tensor | None = None  # Jᵀ u as a function of u

    def row(self, j: int) -> Tensor:
        """∇vⱼ (p,)."""
        return _flat(_gradients(self.v[j], self.leaves), self.leaves)

    def pull(self, paid: Tensor) -> Tensor:
        """Jᵀ λ (p,)."""
        return _flat(_gradients(self.v, self.leaves, paid), self.leaves)

    def push(self, r: Tensor) -> Tensor:
        """J r (m,): the gradient of r · Jᵀ u in u."""
        if self.pulled is None:
            pulled = _gradients(self.v, self.leaves, self.probe, again=True)
            self.pulled = _flat(pulled, self.leaves)
        if not self.pulled.requires_grad:
            return torch.zeros_like(self.v)
        (out,) = torch.autograd.grad(self.pulled, self.probe, r, retain_graph=True)
        return out

    def sizes(self) -> Tensor | None:
        """(m,) about ‖∇vⱼ‖, from random directions; None where v has no second derivatives."""
        rng = torch.Generator().manual_seed(0)
        total = torch.zeros_like(self.v)
        for _ in range(PROBES):
            r = torch.randn(self.like.shape, generator=rng, dtype=torch.float64)
            try:
                total += self.push(r.to(self.like)).square()
            except RuntimeError:  # an operation that autograd goes back through only once
                return None
        return (total / PROBES).sqrt()


def _gradients(
    y: Tensor, leaves: Sequence[Tensor], weights: Tensor | None = None, again: bool = False
) -> Sequence[Tensor | None]:
    if not y.requires_grad or not y.numel():
        return [None] * len(leaves)
    return torch.autograd.grad(
        y, leaves, weights, retain_graph=True, create_graph=again, allow_unused=True
    )


def _flat(parts: Sequence[Tensor | None], leaves: Sequence[Tensor]) -> Tensor:
    pairs = zip(parts, leaves, strict=True)
    return torch.cat([(torch.zeros_like(x) if g is None else g).reshape(-1) for g, x in pairs])


def _resting(
    leaves: Sequence[Tensor], box: Sequence[Bounds], tolerance: float
) -> tuple[Resting, Tensor]:
    """Which coordinates rest on a bound, and how far from it they are."""
    lows, highs, gaps = [], [], []
    for leaf, (low, high) in zip(leaves, box, strict=True):
        x = leaf.detach()
        below = torch.full_like(x, torch.inf) if low is None else (x - low).abs()
        above = torch.full_like(x, torch.inf) if high is None else (high - x).abs()
        lows.append((below <= tolerance).reshape(-1))
        highs.append((above <= tolerance).reshape(-1))
        near = torch.minimum(below, above).reshape(-1)
        gaps.append(torch.where(near <= tolerance, near, 0))
    return Resting(torch.cat(lows), torch.cat(highs)), torch.cat(gaps)


def _tangent(problem: ConstrainedProblem, x: Variables, g: Tensor, tolerance: float) -> Counted:
    """r̂ for any convex set, from a short step and back: (x − Π(x − τ r)) / τ."""
    parts = variables(x)
    sizes = [part.numel() for part in parts]
    box = problem.box(x)
    start = torch.cat([part.detach().reshape(-1) for part in parts])
    tau = max(tolerance, torch.finfo(start.dtype).eps ** 0.5) / max(_greatest(g.abs()), 1e-12)

    def counted(r: Tensor) -> Tensor:
        pieces = (start - tau * r).split(sizes)
        moved = [p.reshape(part.shape).to(part) for p, part in zip(pieces, parts, strict=True)]
        project(moved, box)
        if problem.project is not None:
            moved = variables(problem.project(alike(x, moved)))
        return (start - torch.cat([part.reshape(-1) for part in moved])) / tau

    return counted


def _greatest(x: Tensor) -> float:
    return float(x.max()) if x.numel() else 0.0
