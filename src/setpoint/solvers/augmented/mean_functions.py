"""Functions of batches averaged over all of them: values, gradients, conditions.

    f(x) = 1/N Σ f(x, batch),     v(x) = 1/N Σ (c, e)(x, batch),     r(λ) = ∇f + Jᵀ λ

Every batch counts the same. Sums are kept in double precision, and one batch is held at a time.
λ is found by least squares over the active constraints, as in :mod:`setpoint.solvers.kkt`,
where their gradients can be kept; r̂ is what the bounds of x do not hold up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.programs.constrained_problem import Bounds
from setpoint.solvers.kkt import DIRECT, ENTRIES, Resting, direct

Values = Callable[[Sequence[Tensor], Any], tuple[Tensor, Tensor, Tensor]]


class LostError(Exception):
    """A value that is not finite; the message is a sentence. It never leaves the solver."""


@dataclass(frozen=True, eq=False)
class MeanReading:
    """F and v (m,) at a point, and which of v are equations."""

    f: float
    v: Tensor
    equal: Tensor
    count: int

    @property
    def broken(self) -> Tensor:
        """(m,) by how much each constraint is broken."""
        return torch.where(self.equal, self.v.abs(), self.v.clamp(min=0))

    @property
    def worst(self) -> float:
        """By how much the most broken one is."""
        return float(self.broken.max()) if len(self.v) else 0.0


@dataclass(frozen=True, eq=False)
class Balance:
    """The conditions of an optimum: λ (m,), r(λ) (n,), ‖r̂(λ)‖, and how uncertain r is."""

    paid: Tensor
    left: Tensor
    resting: Resting
    noise: float

    @property
    def residual(self) -> float:
        """‖r̂‖."""
        return float(self.resting.counted(self.left).norm())

    def bound_forces(self) -> tuple[Tensor, Tensor]:
        """The forces of the lower and of the upper bounds, (n,) each, 0 or more."""
        force = self.left - self.resting.counted(self.left)
        return force.clamp(min=0), (-force).clamp(min=0) + 0.0  # no −0


@dataclass(frozen=True, eq=False)
class MeanFunctions:
    """The functions in the mean over batches; the only batch is None where there are none.

    Parameters
    ----------
    values : callable
        (parts, batch) -> f, c (p,), e (q,).
    batches : iterable
        Can be gone through again and again.
    box : sequence of Bounds
        Of each part.
    """

    values: Values
    batches: Iterable[Any]
    box: Sequence[Bounds]

    def read(self, parts: Sequence[Tensor], when: str) -> MeanReading:
        """The values at a point; ``when`` goes into the sentence if one is not finite."""
        f, v, sides, count = torch.zeros(()), torch.zeros(0), (0, 0), 0
        with torch.no_grad():
            for batch in self.batches:
                value, c, e = self.values(parts, batch)
                seen, value = torch.cat([c, e]).double(), value.double()
                checked(value, seen, f"{when}, batch {count + 1}")
                if count and sides != (len(c), len(e)):
                    raise DataError(
                        f"batch {count + 1} gave {len(c)} inequalities and {len(e)} equalities, "
                        f"the first gave {sides[0]} and {sides[1]}; every batch needs as many"
                    )
                f, v = (f + value, v + seen) if count else (value, seen)
                sides, count = (len(c), len(e)), count + 1
        if not count:
            raise DataError("batches holds no batch; give one or more")
        equal = torch.arange(sum(sides), device=v.device) >= sides[0]
        return MeanReading(float(f) / count, v / count, equal, count)

    def balance(
        self, parts: Sequence[Tensor], paid: Tensor, active: Tensor, equal: Tensor, slack: float
    ) -> Balance:
        """The λ of least residual over the active constraints; ``paid`` where there are too many.

        Parameters
        ----------
        parts : sequence of torch.Tensor
        paid, active, equal : torch.Tensor
            (m,) multipliers to fall back on, which constraints may have one, which are equations.
        slack : float
            Distance from a bound up to which x rests on it.
        """
        rows = active.nonzero().reshape(-1).tolist()
        size = sum(part.numel() for part in parts)
        if len(rows) > min(DIRECT, ENTRIES // max(size, 1)):
            rows, multipliers = [], paid * active
        else:
            multipliers = torch.zeros_like(paid)
        # the first row is the gradient of f + λᵀ v, the others those of active constraints
        slopes, count = torch.zeros(1 + len(rows), size, dtype=torch.float64), 0
        squares = slopes @ slopes.T
        for batch in self.batches:
            of_batch = self._slopes(parts, batch, multipliers, rows)
            slopes += of_batch
            squares, count = squares + of_batch @ of_batch.T, count + 1
        slopes, squares = slopes / count, squares / count
        resting = at_bounds(parts, self.box, slack).cpu()
        renewed = torch.zeros(len(rows), dtype=torch.float64)
        if not bool(torch.isfinite(slopes).all()):
            rows, slopes = [], slopes[:1]  # the residual is no number either, and says so
            squares, renewed = squares[:1, :1], renewed[:0]
        if rows:
            high = torch.full_like(renewed, torch.inf)
            low = torch.where(equal[rows].cpu(), -high, 0.0)
            renewed = direct(slopes[1:], slopes[0], resting, (low, high))
            multipliers = multipliers.clone()
            multipliers[rows] = renewed.to(multipliers)
        mix = torch.cat([torch.ones(1, dtype=torch.float64), renewed])
        left = mix @ slopes
        spread = float(mix @ (squares @ mix) - left.square().sum())
        noise = (max(spread, 0.0) / (count - 1)) ** 0.5 if count > 1 else 0.0
        return Balance(multipliers, left, resting, noise)

    def slopes(
        self,
        parts: Sequence[Tensor],
        paid: Tensor,
        mixed: Tensor | None,
        rows: Sequence[int] | None = None,
    ) -> Tensor:
        """∇(f + λᵀ v), and ∇vⱼ for each j of ``rows``, or of one mixture where that is given."""
        asked = range(len(paid)) if rows is None else rows
        total, count = torch.zeros(()), 0
        for batch in self.batches:
            slopes = self._slopes(parts, batch, paid, asked if mixed is None else [], mixed)
            total, count = total + slopes, count + 1
        return total / max(count, 1)

    def _slopes(
        self,
        parts: Sequence[Tensor],
        batch: Any,
        paid: Tensor,
        rows: Sequence[int],
        mixed: Tensor | None = None,
    ) -> Tensor:
        leaves = [part.detach().clone().requires_grad_() for part in parts]
        with torch.enable_grad():
            f, c, e = self.values(leaves, batch)
            v = torch.cat([c, e])
            tops = [f + (paid.to(v) * v).sum(), *(v[j] for j in rows)]
            if mixed is not None and len(mixed):
                tops.append((mixed.to(v) * v).sum())
            slopes = [flat(gradients(top, leaves)) for top in tops]
        return torch.stack(slopes).double().cpu()


def gradients(y: Tensor, leaves: Sequence[Tensor], keep: bool = True) -> list[Tensor]:
    """∇y in each leaf, zeros where y does not know of it."""
    if not y.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return list(
        torch.autograd.grad(y, leaves, retain_graph=keep, allow_unused=True, materialize_grads=True)
    )


def flat(parts: Sequence[Tensor]) -> Tensor:
    """The parts one after another, (n,)."""
    return torch.cat([part.detach().reshape(-1) for part in parts])


def checked(f: Tensor, v: Tensor, where: str) -> None:
    """Refuse what is not finite."""
    if not bool(torch.isfinite(f)):
        raise LostError(f"the objective is {float(f):g} at {where}")
    if not bool(torch.isfinite(v).all()):
        k = int((~torch.isfinite(v)).nonzero()[0])
        raise LostError(f"constraint {k + 1} of {len(v)} is {float(v[k]):g} at {where}")


def at_bounds(parts: Sequence[Tensor], box: Sequence[Bounds], slack: float) -> Resting:
    """Which coordinates rest on a bound."""
    sides: tuple[list[Tensor], list[Tensor]] = ([], [])
    for part, bounds in zip(parts, box, strict=True):
        for side, bound in zip(sides, bounds, strict=True):
            near = torch.zeros_like(part, dtype=torch.bool)
            if bound is not None:
                near = (part - bound).abs() <= slack
            side.append(near.reshape(-1))
    return Resting(torch.cat(sides[0]), torch.cat(sides[1]))


# Functions that count their calls and end a run when it has had enough of them.


class EndError(Exception):
    """A limit is reached; the message is a sentence. It never leaves the solver."""


class Meter:
    """The functions (parts, batch) -> f, c, e, with limits while it is not ``open``."""

    def __init__(
        self, values: Values, max_evaluations: float | None, max_seconds: float | None
    ) -> None:
        self.values, self.most, self.seconds = values, max_evaluations, max_seconds
        self.evaluations = self.gradients = 0
        self.since = time.perf_counter()
        self.open = True

    def __call__(self, parts: Sequence[Tensor], batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        if not self.open:
            if self.most is not None and self.evaluations >= self.most:
                raise EndError(f"the limit of {self.most:g} evaluations is reached")
            if self.seconds is not None and self.spent >= self.seconds:
                raise EndError(f"the limit of {self.seconds:g} seconds is reached")
        self.evaluations += 1
        f, c, e = self.values(parts, batch)
        return f.reshape(()), c.reshape(-1), e.reshape(-1)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.since
