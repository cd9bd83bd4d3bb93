"""B problems at once: min f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high, row by row.

Penalty BFGS-SQP with steering (see ``steering``), a weak Wolfe line search in which no row waits
for another (``line_search``), true bounds (``bounds``). Rows that are done are set aside every few
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import number, whole
from setpoint._core.progress import Progress
from setpoint.solvers.batched import merit
from setpoint.solvers.batched.batched_result import BatchedResult, BatchedState, End, sentences
from setpoint.solvers.batched.batched_sqp import BatchedLimits, BatchedRows, BatchedRun
from setpoint.solvers.batched.bounds import BatchedBox, box_for
from setpoint.solvers.batched.functions import BatchedFunctions
from setpoint.solvers.batched.hessian import Memory, memory_for
from setpoint.solvers.batched.stationarity import least_force, unbalanced
from setpoint.solvers.batched.steering import BatchedPoint

EVERY = 10  #: calls of the functions from one look at the rows to the next
Side = float | Tensor | None  #: low or high
CALLS = 20  #: of the functions for each step that a row may take, at most


@dataclass(frozen=True, kw_only=True)
class BatchedProgress(Progress):
    """What a callback is told: calls so far, and how many of the rows have ended."""

    done: int
    total: int  # pyright: ignore[reportGeneralTypeIssues]  # by keyword, so the order is free
    evaluations: int

    @property
    def finished(self) -> int:
        """Rows that have ended."""
        return self.done

    @property
    def running(self) -> int:
        """Rows that run on."""
        return self.total - self.done


def solve_batched(
    objective: Callable[..., Tensor],
    x0: Tensor,
    *,
    inequalities: Callable[..., Tensor] | None = None,
    equalities: Callable[..., Tensor] | None = None,
    bounds: tuple[Side, Side] | None = None,
    data: tuple[Tensor, ...] = (),
    tolerance: float | None = None,
    feasibility: float | None = None,
    max_iterations: int = 500,
    max_evaluations: int | None = None,
    hessian: str | int = "auto",
    mu: float = 1.0,
    callback: Callable[[BatchedProgress], object] | None = None,
    resume: BatchedState | None = None,
) -> BatchedResult:
    """Minimise B independent functions at once, each under its own constraints.

    Parameters
    ----------
    objective : callable
        f(x, *data) -> (B,), with x (B, *shape). Row b must depend on row b of x and of the data
        only (a network is in ``eval`` mode), and the number of rows shrinks as rows are done.
    x0 : torch.Tensor
        (B, *shape) starts, float32 or float64, on any device.
    inequalities, equalities : callable, optional
        c and e: (x, *data) -> (B,) or (B, p); c <= 0 and e = 0 are asked for.
    bounds : tuple, optional
        (low, high), each None, a number or a tensor that broadcasts to x0. They hold at every point
        at which a function is called.
    data : tuple of torch.Tensor
        What the functions are given beside x, cut with its rows.
    tolerance : float, optional
        On each coordinate of the KKT residual, relative to 1 + the sizes of what it is the sum of;
        1e-6, in float32 1e-3.
    feasibility : float, optional
        By how much a constraint may be broken; 1e-6, in float32 1e-5.
    max_iterations, max_evaluations : int
        The most steps of a row, and the most calls of the functions: twenty a step by default.
    hessian : "auto", "full" or int
        The whole inverse Hessian (B n² numbers), or that many pairs; "auto" takes the first where
        it is small.
    mu : float
        Weight of f in the penalty at the start; it is only ever lowered.
    callback : callable, optional
        Called every ten calls with a ``BatchedProgress``; true ends all rows.
    resume : BatchedState, optional
        To go on from: points, weights and curvature; x0 then only says the shape.

    Returns
    -------
    BatchedResult
        Points, values, violations, KKT residuals, multipliers, and a sentence for each row.

    Examples
    --------
    The point of a disc nearest to each of two targets:

    >>> import torch
    >>> targets = torch.tensor([[2.0, 0.0], [0.3, 0.4]], dtype=torch.float64)
    >>> found = solve_batched(
    ...     lambda x, a: ((x - a) ** 2).sum(1),
    ...     torch.zeros(2, 2, dtype=torch.float64),
    ...     inequalities=lambda x, a: (x**2).sum(1) - 1,
    ...     data=(targets,),
    ... )
    >>> found.x.round(decimals=4).tolist()
    [[1.0, 0.0], [0.3, 0.4]]
    """
    if max_evaluations is not None:
        whole("max_evaluations", max_evaluations, 1, error=KindError)
    x0 = _checked(x0, data)
    flat = x0.detach().reshape(len(x0), -1)
    box = box_for(bounds, x0)
    functions = BatchedFunctions(
        objective, inequalities, equalities, tuple(data), tuple(x0.shape[1:])
    )
    limits = _limits(x0, tolerance, feasibility, max_iterations)
    if resume is None:
        number("mu", mu, 0, open_low=True, error=KindError)
        weights, memory = flat.new_full((len(flat),), mu), memory_for(hessian, flat)
    else:
        if resume.x.shape != flat.shape:
            raise DataError(
                f"resume holds {tuple(resume.x.shape)} for x0 of {tuple(flat.shape)}: the state of "
                "other rows; pick them by state.take(index)"
            )
        everything = torch.arange(len(flat), device=flat.device)
        flat, weights = resume.x.to(flat), resume.mu.to(flat)
        memory = resume.memory.take(everything)  # a copy: it is written in place
    x = flat.clone() if box is None else box.clip(flat)
    functions = functions.counted(x)
    book = _Book(functions, box, limits)
    run = BatchedRun.start(functions, x, weights, box, memory, limits)
    book.evaluations = 1
    most = CALLS * (limits.iterations + 10) if max_evaluations is None else max_evaluations
    book.fill(run, callback, most)
    return book.result(x0.shape)


class _Book:
    """Rows that are done, and the loop that fills it."""

    def __init__(
        self, functions: BatchedFunctions, box: BatchedBox | None, limits: BatchedLimits
    ) -> None:
        self.functions = functions
        self.box = box
        self.limits = limits
        self.evaluations = 0
        self.rows: BatchedRows | None = None
        self.memory: Memory | None = None

    def fill(
        self,
        run: BatchedRun,
        callback: Callable[[BatchedProgress], Any] | None,
        most: int,
    ) -> None:
        """Run until every row has ended; the rows are only looked at every few calls."""
        rows, memory = run.rows, run.memory
        count = len(rows.code)
        finished = 0
        while True:
            run.looked()
            done = run.rows.code != 0
            number = int(done.sum())
            out = self.evaluations >= most
            stop = callback and callback(
                BatchedProgress(
                    what=f"{self.evaluations} calls",
                    done=finished + number,
                    total=finished + len(done),
                    evaluations=self.evaluations,
                )
            )
            if out or stop:
                run.rows = run.rows.ended(~done, End.EVALUATIONS if out else End.STOPPED)
                number = len(done)
            if number == len(done) == count:
                rows, memory = run.rows, run.memory
                break
            if number:
                if not finished:  # the first rows that are done: a book for all of them
                    memory = run.memory.take(run.rows.index)
                mine = (
                    done.nonzero()[:, 0]
                    if number < len(done)
                    else torch.arange(len(done), device=done.device)
                )
                rows = _written(rows, run.rows.take(mine))
                done_memory: Any = run.memory.take(mine)  # of the same kind as memory
                memory.put(run.rows.index[mine], done_memory)
                finished += number
                if number == len(done):
                    break
                run.take((~done).nonzero()[:, 0])
            left = min(EVERY, most - self.evaluations)
            for _ in range(left):
                run.tick()
            self.evaluations += left
        self.rows, self.memory = rows, memory

    def result(self, shape: torch.Size) -> BatchedResult:
        """The record, with values and residuals computed anew at the points that are returned."""
        rows, memory = self.rows, self.memory
        assert rows is not None
        assert memory is not None
        limits = self.limits
        equal = self.functions.equal(rows.at.x)
        settled = (rows.code == End.STATIONARY)[:, None]
        failed = (rows.code == End.START)[:, None]
        x = torch.where(settled | failed, rows.at.x, rows.best.x)
        values = self.functions.at(x)
        self.evaluations += 1
        at = BatchedPoint(x, values.f.detach(), values.v.detach(), *values.gradients())
        violation = merit.greatest(at.v, equal)
        forces = rows.step.y * settled  # elsewhere the point is another than the last
        force, multipliers = least_force(
            at, rows.step.mu, forces, self.box, equal, near=limits.feasibility
        )
        kkt = force.norm(dim=-1)
        holds = violation <= limits.feasibility
        small = unbalanced(force, at, multipliers) <= limits.tolerance
        calm = torch.tensor([End.PRECISION, End.ITERATIONS, End.EVALUATIONS], device=x.device)
        code = torch.where(
            torch.isin(rows.code, calm) & small & holds, int(End.STATIONARY), rows.code
        )
        success = (code == End.STATIONARY) & holds
        status = sentences(code, rows.iterations, violation, kkt, holds)
        return BatchedResult(
            x=x.reshape(shape),
            fun=at.f,
            violation=violation,
            kkt=kkt,
            gradient=at.g.norm(dim=-1),
            multipliers=multipliers,
            success=success,
            status=status,
            iterations=rows.iterations,
            evaluations=self.evaluations,
            state=BatchedState(rows.at.x, rows.step.mu, memory),
        )


def _written(book: BatchedRows, done: BatchedRows) -> BatchedRows:
    """The book with the rows that are done in their places."""
    back = torch.full((len(book.code),), -1, dtype=torch.long, device=book.code.device)
    back[done.index] = torch.arange(len(done.index), device=back.device)
    return book.merged(back >= 0, done.take(back.clamp_min(0)))


def _checked(x0: Tensor, data: tuple[Tensor, ...]) -> Tensor:
    if not isinstance(x0, Tensor) or not x0.is_floating_point():
        kind = x0.dtype if isinstance(x0, Tensor) else type(x0).__name__
        raise KindError(f"x0 is {kind}: a tensor of floats, a row for each problem")
    if x0.ndim < 2 or x0.numel() == 0:
        raise DataError(
            f"x0 has shape {tuple(x0.shape)}: (B, *shape) with B and all of shape 1 or more"
        )
    if not isinstance(data, tuple):
        raise KindError(f"data is a {type(data).__name__}: a tuple of tensors, (tensor,) of one")
    for k, d in enumerate(data):
        if not isinstance(d, Tensor) or d.ndim == 0 or len(d) != len(x0):
            shape = tuple(d.shape) if isinstance(d, Tensor) else type(d).__name__
            raise DataError(f"data[{k}] is {shape}: a tensor with {len(x0)} rows, one a problem")
    return x0


def _limits(
    x0: Tensor, tolerance: float | None, feasibility: float | None, iterations: int
) -> BatchedLimits:
    double = x0.dtype == torch.float64
    tolerance = (1e-6 if double else 1e-3) if tolerance is None else tolerance
    feasibility = (1e-6 if double else 1e-5) if feasibility is None else feasibility
    return BatchedLimits(
        tolerance=number("tolerance", tolerance, 0, error=KindError),
        feasibility=number("feasibility", feasibility, 0, error=KindError),
        iterations=whole("max_iterations", iterations, 0, error=KindError),
    )
