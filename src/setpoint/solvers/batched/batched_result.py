"""Result of a batched run: one record for B problems, with a sentence for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from torch import Tensor

from setpoint.solvers.batched.hessian import Memory


class End(IntEnum):
    """Why a row ended."""

    RUNNING = 0
    STATIONARY = 1
    PRECISION = 2
    ITERATIONS = 3
    INFEASIBLE = 4
    UNBOUNDED = 5
    START = 6
    EVALUATIONS = 7
    STOPPED = 8


@dataclass(frozen=True, eq=False)
class BatchedState:
    """What a later call needs to go on: the points, the penalty weights and the curvature.

    Attributes
    ----------
    x : torch.Tensor
        (B, n) the last iterate of each row.
    mu : torch.Tensor
        (B,) weight of f in the penalty.
    memory : FullMemory or LimitedMemory
        Curvature of each row.
    """

    x: Tensor
    mu: Tensor
    memory: Memory = field(repr=False)

    def take(self, index: Tensor) -> BatchedState:
        """The state of some rows: the best of several starts, for example."""
        return BatchedState(
            self.x.index_select(0, index),
            self.mu.index_select(0, index),
            self.memory.take(index),
        )


@dataclass(frozen=True, eq=False)
class BatchedResult:
    """Answers of B problems.

    Attributes
    ----------
    x : torch.Tensor
        (B, *shape) the answer where a row converged, otherwise the best point it saw: the least f
        among feasible points, the least violation where there was none.
    fun, violation : torch.Tensor
        (B,) f there, and the greatest of max(c, 0) and |e|.
    kkt : torch.Tensor
        (B,) 2-norm of ∇f + Σ λ∇c + Σ ν∇e, without what the bounds take up.
    gradient : torch.Tensor
        (B,) 2-norm of ∇f there, which the residual is judged against.
    multipliers : torch.Tensor
        (B, p + q) λ of the inequalities, then ν of the equalities, in units of f.
    success : torch.Tensor
        (B,) whether a row is feasible and stationary by the gradients at x itself. At a kink these
        are not small: such a row ends because no step lowers the penalty, and says so.
    status : list of str
        A sentence for each row.
    iterations : torch.Tensor
        (B,) steps taken.
    evaluations : int
        Calls of the functions, each for all rows that were still running.
    state : BatchedState
        To go on from by ``resume=``.
    """

    x: Tensor
    fun: Tensor
    violation: Tensor
    kkt: Tensor
    gradient: Tensor
    multipliers: Tensor
    success: Tensor
    status: list[str]
    iterations: Tensor
    evaluations: int
    state: BatchedState = field(repr=False)


def sentences(
    code: Tensor, iterations: Tensor, violation: Tensor, kkt: Tensor, feasible: Tensor
) -> list[str]:
    """The status of each row."""
    columns = (a.tolist() for a in (code, iterations, violation, kkt, feasible))
    return [_sentence(End(c), *rest) for c, *rest in zip(*columns, strict=True)]


def _sentence(end: End, iterations: int, violation: float, kkt: float, feasible: bool) -> str:
    broken = f"the constraints are broken by {violation:.3g}"
    if end is End.STATIONARY:
        if iterations == 0:
            return "the start is stationary and feasible: no step could lower the objective"
        return "stationary and feasible"
    if end is End.INFEASIBLE:
        return f"infeasible here: {broken}, and no nearby step lowers that; try another start"
    if end is End.UNBOUNDED:
        return "the objective falls without end at feasible points; bound it, or the variables"
    if end is End.START:
        return "a value or a gradient at the start is not finite: start elsewhere"
    reason = {
        End.PRECISION: "no step lowers the penalty any further in this precision",
        End.ITERATIONS: "stopped at max_iterations",
        End.EVALUATIONS: "stopped at max_evaluations",
        End.STOPPED: "stopped by the callback",
    }[end]
    where = f"feasible, KKT residual {kkt:.3g}" if feasible else f"infeasible: {broken}"
    return f"{reason}; {where}"
