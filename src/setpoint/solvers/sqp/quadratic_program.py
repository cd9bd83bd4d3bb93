"""Small quadratic programs, by DAQP or PIQP, with the same answer from either.

    minimise ½ yᵀQ y + qᵀy    subject to   low <= y <= high,   (Σ_{k in sum} y_k = 1)

DAQP is an active-set method, exact and quick up to some dozens of variables; PIQP an interior-point
method, for more. What either gives is *polished*: the entries on a bound are put there, the others
solve the linear equations that are left, and the answer is taken where it satisfies the conditions
of the optimum. With a guess of which entries rest on which bound, polishing alone is often all.
"""

from __future__ import annotations

import daqp
import numpy as np
import piqp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import nnls

from setpoint._core.errors import KindError

Array = NDArray[np.float64]
SMALL = 50  #: variables up to which DAQP is quicker
SOLVERS = ("auto", "daqp", "piqp")
WEIGHT = 1e3  #: of the sum beside the least squares; it is met where those come to nothing
RIDGE = 1e-14  #: of the mean diagonal, so that dependent constraints have one answer


def box(
    Q: Array, q: Array, low: Array, high: Array, solver: str = "auto", guess: Array | None = None
) -> Array:
    """The minimiser in a box.

    Parameters
    ----------
    Q, q : numpy.ndarray
        (k, k) positive semidefinite, and (k,).
    low, high : numpy.ndarray
        (k,) may be infinite.
    solver : {"auto", "daqp", "piqp"}
    guess : numpy.ndarray, optional
        (k,) −1 where y rests on low, 1 on high, 0 between; tried first.

    Examples
    --------
    >>> box(np.eye(2), np.array([-3.0, -0.5]), np.zeros(2), np.ones(2))
    array([1. , 0.5])
    """
    if not len(q):
        return np.zeros(0)
    if not np.isfinite(Q).all() or not np.isfinite(q).all():
        raise FloatingPointError("a quadratic program with entries that are no numbers")
    # in units in which Q has a diagonal of 1: constraints may come in any scale, or have no slope
    size = np.sqrt(np.diag(Q).clip(0))
    size = np.maximum(size, max(1e-8 * size.max(), 1e-16 * np.abs(q).max(), 1e-100))
    size = np.minimum(size, 1e100)
    Q = Q / (size[:, None] * size) + RIDGE * np.eye(len(q))
    q, low, high = q / size, low * size, high * size
    if len(q) == 1:
        return np.clip(-q / Q[0], low, high) / size
    solution = None if guess is None else _polished(Q, q, low, high, guess)
    if solution is None:
        y = _solved(Q, q, low, high, None, solver)
        span = np.where(np.isfinite(high - low), high - low, 1 + np.abs(y))
        near = 1e-6 * span
        sides = np.where(y <= low + near, -1.0, np.where(y >= high - near, 1.0, 0.0))
        solution = _polished(Q, q, low, high, sides)
        solution = np.clip(y, low, high) if solution is None else solution
    return np.clip(solution / size, low / size, high / size)


def hull(
    A: Array, cost: Array, low: Array, high: Array, summed: int, solver: str = "auto"
) -> Array:
    """The least ½ ‖yᵀA‖² + cost·y where the first ``summed`` entries sum to 1, in a box.

    Parameters
    ----------
    A : numpy.ndarray
        (k, n).
    cost : numpy.ndarray
        (k,) >= 0.
    low, high : numpy.ndarray
        (k,) 0 and 1 of the summed ones, 0 or ±∞ of the others.
    summed : int
    solver : {"auto", "daqp", "piqp"}

    Examples
    --------
    >>> hull(np.array([[1.0], [-3.0]]), np.zeros(2), np.zeros(2), np.ones(2), 2)
    array([0.75, 0.25])
    """
    if len(A) == 1:
        return np.ones(1)
    if not np.isfinite(A).all() or np.abs(A).max() > 1e100 or not np.isfinite(cost).all():
        return _sure(cost, low, high, summed)
    top = np.linalg.norm(A[:summed], axis=1).max()
    size = np.linalg.norm(A, axis=1)
    size[:summed] = max(top, 1e-100)
    size[summed:] = np.maximum(size[summed:], 1e-100)
    U = A / size[:, None]
    Q = U @ U.T + RIDGE * np.eye(len(A))
    q = cost / (size * size[0])
    y = np.clip(_solved(Q, q, low, high, summed, solver), low, high)
    y = _refined(U, y, low, summed)
    y[summed:] *= size[:summed].max() / size[summed:]
    return y


def _refined(U: Array, y: Array, low: Array, summed: int) -> Array:
    """The same support, by least squares on U itself: its square has half of the digits."""
    total = y[:summed].sum()
    if total <= 0:
        y[:summed], total = 1 / summed, 1.0
    y = y / total
    index = ((np.abs(y) > 1e-9) | (low < 0)).nonzero()[0]
    free = index[low[index] < 0]
    rows = np.concatenate([U[index], -U[free]])
    one = np.concatenate([np.where(index < summed, WEIGHT, 0.0), np.zeros(len(free))])
    if len(rows) > 2 * SMALL:
        return y
    try:
        z, _ = nnls(np.column_stack([rows, one]).T, np.append(np.zeros(U.shape[1]), WEIGHT))
    except RuntimeError:  # it went round in circles
        return y
    solution = np.zeros_like(y)
    solution[index] = z[: len(index)]
    solution[free] -= z[len(index) :]
    total = solution[:summed].sum()
    if total <= 0:
        return y
    solution /= total
    return solution if np.linalg.norm(solution @ U) <= np.linalg.norm(y @ U) else y


def _polished(Q: Array, q: Array, low: Array, high: Array, sides: Array) -> Array | None:
    """The answer that rests on these bounds, where it is one."""
    free = sides == 0
    y = np.where(sides < 0, low, np.where(sides > 0, high, 0.0))
    if not np.isfinite(y).all():
        return None
    if free.any():
        rows = Q[free]
        right = -(q[free] + rows[:, ~free] @ y[~free])
        try:
            if len(rows) <= SMALL:
                y[free] = np.linalg.solve(rows[:, free], right)
            else:
                y[free] = cho_solve(cho_factor(rows[:, free], check_finite=False), right)
        except LinAlgError:
            return None
    slope = Q @ y + q
    size = 1e-10 * (1 + np.abs(q).max() + np.abs(slope).max())
    inside = ((y >= low) & (y <= high)).all()
    signs_hold = (slope[sides < 0] >= -size).all() and (slope[sides > 0] <= size).all()
    solved = np.abs(slope[free]).max(initial=0.0) <= 1e3 * size
    return y if inside and signs_hold and solved else None


def _solved(Q: Array, q: Array, low: Array, high: Array, summed: int | None, solver: str) -> Array:
    if solver not in SOLVERS:
        raise KindError(f'qp="{solver}": one of {", ".join(SOLVERS)}')
    if solver == "daqp" or (solver == "auto" and len(q) <= SMALL):
        solution = _daqp(Q, q, low, high, summed)
        if solution is not None:
            return solution
    solution = _piqp(Q, q, low, high, summed)
    if solution is None and solver == "piqp" and len(q) <= 10 * SMALL:
        solution = _daqp(Q, q, low, high, summed)
    return _sure(q, low, high, summed) if solution is None else solution


def _sure(q: Array, low: Array, high: Array, summed: int | None) -> Array:
    """A point that keeps the bounds, where no solver has an answer."""
    y = np.clip(np.zeros(len(q)), low, high)
    if summed:
        y[:summed] = 1 / summed
    return y


def _daqp(Q: Array, q: Array, low: Array, high: Array, summed: int | None) -> Array | None:
    k = len(q)
    top, bottom = np.minimum(high, 1e30), np.maximum(low, -1e30)
    sense = np.zeros(k + (summed is not None), dtype=np.int32)
    A = np.zeros((0, k))
    if summed is not None:
        A = np.zeros((1, k))
        A[0, :summed] = 1.0
        top, bottom, sense[-1] = np.append(top, 1.0), np.append(bottom, 1.0), 5
    y, _, flag, _ = daqp.solve(
        np.ascontiguousarray(Q), q, A, top, bottom, sense, primal_tol=1e-12, dual_tol=1e-12
    )
    y = np.asarray(y)
    return y if flag > 0 and np.isfinite(y).all() else None


def _piqp(Q: Array, q: Array, low: Array, high: Array, summed: int | None) -> Array | None:
    k = len(q)
    program = piqp.DenseSolver()
    settings = program.settings
    settings.eps_abs = settings.eps_rel = 1e-12
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = 1e-12
    settings.max_iter = 100
    A = b = None
    if summed is not None:
        A, b = np.zeros((1, k)), np.ones(1)
        A[0, :summed] = 1.0
    program.setup(Q, q, A, b, None, None, None, low, high)
    program.solve()
    y = np.array(program.result.x)
    # at the limit of iterations it is still nearer than anything else
    fine = program.result.info.status.name in ("PIQP_SOLVED", "PIQP_MAX_ITER_REACHED")
    return y if fine and np.isfinite(y).all() else None
