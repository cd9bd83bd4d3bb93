"""Choice among candidates: the best one that keeps the constraints, or a mixture.

    minimise Σₛ pₛ fₛ   subject to   Σₛ pₛ vₛⱼ <= tolerance for each j,   p >= 0,  Σ p = 1

Where there is a duality gap no single candidate need be good, and a mixture is: drawn at random by
p, it keeps each constraint in the mean. A basic solution has at most 1 + m candidates with p > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

from setpoint._core.errors import DataError, SetpointError

NOTHING = 1e-9  #: a share this small is none
ROUNDING = 1e-9  #: by which the least violation is reached twice


def excess(violations: Any, equal: Sequence[bool] = ()) -> np.ndarray:
    """(S,) by how much the most broken constraint of each candidate is broken; 0 where none is.

    Parameters
    ----------
    violations : array of shape (S, m)
    equal : sequence of bool
        Which of them are equations; none by default.
    """
    v = _sided(_table(violations), equal)
    return np.maximum(v, 0).max(1, initial=0.0)


def best_feasible(
    objectives: Any, violations: Any, tolerance: float = 0.0, equal: Sequence[bool] = ()
) -> int:
    """The candidate with the least objective that breaks nothing by more than the tolerance.

    Where there is none, the candidate whose most broken constraint is broken least.

    Examples
    --------
    >>> best_feasible([3.0, 1.0, 2.0], [[0.0], [0.5], [-0.1]])
    2
    """
    f, worst = _checked(objectives, violations)[0], excess(violations, equal)
    feasible = worst <= tolerance
    if not feasible.any():
        return int(np.lexsort((f, worst))[0])
    return int(np.argmin(np.where(feasible, f, np.inf)))


def best_mixture(
    objectives: Any, violations: Any, tolerance: float = 0.0, equal: Sequence[bool] = ()
) -> np.ndarray:
    """Shares p (S,) of the best mixture; at most 1 + m of them are positive.

    Where no mixture keeps the constraints, the best of those that break the most broken one least.

    Examples
    --------
    >>> best_mixture([1.0, 0.0], [[-1.0], [1.0]])
    array([0.5, 0.5])
    """
    f, v = _checked(objectives, violations)
    v = _sided(v, equal)
    bound = tolerance
    if v.shape[1]:
        least = _least(v)
        bound = max(tolerance, least + ROUNDING if least > tolerance else tolerance)
    p = _solved(f, v, bound)
    p = np.where(p > NOTHING, p, 0.0)
    most = 1 + (len(equal) or v.shape[1])
    if np.count_nonzero(p) > most:
        raise SetpointError(f"the mixture has {np.count_nonzero(p)} parts, more than {most}")
    return p / p.sum()


def _least(v: np.ndarray) -> float:
    """The least that the most broken constraint of a mixture is broken by."""
    count, m = v.shape
    cost = np.r_[np.zeros(count), 1.0]
    rows = np.c_[v.T, -np.ones(m)]
    share = np.r_[np.ones(count), 0.0][None]
    bounds = [(0, None)] * count + [(None, None)]
    program = linprog(cost, rows, np.zeros(m), share, [1.0], bounds, method="highs-ds")
    return float(_answer(program).fun)


def _solved(f: np.ndarray, v: np.ndarray, bound: float) -> np.ndarray:
    m = v.shape[1]
    rows, right = (v.T, np.full(m, bound)) if m else (None, None)
    # the dual simplex ends at a corner; an interior point would mix more candidates than it must
    program = linprog(f, rows, right, np.ones((1, len(f))), [1.0], method="highs-ds")
    return _answer(program).x


def _answer(program: Any) -> Any:
    if program.status != 0:
        raise SetpointError(f"the linear program of the mixture was not solved: {program.message}")
    return program


def _sided(v: np.ndarray, equal: Sequence[bool]) -> np.ndarray:
    """Violations with those of −e beside those of e."""
    if not len(equal):
        return v
    if len(equal) != v.shape[1]:
        raise DataError(f"equal holds {len(equal)} marks for {v.shape[1]} constraints")
    return np.concatenate([v, -v[:, np.asarray(equal, dtype=bool)]], 1)


def _table(violations: Any) -> np.ndarray:
    v = np.asarray(violations, dtype=np.float64)
    return v if v.ndim == 2 else v.reshape(len(v), -1)


def _checked(objectives: Any, violations: Any) -> tuple[np.ndarray, np.ndarray]:
    f, v = np.asarray(objectives, dtype=np.float64).reshape(-1), _table(violations)
    if len(f) != len(v) or not len(f):
        raise DataError(
            f"{len(f)} objectives and {len(v)} rows of violations: one of each, 1 or more"
        )
    if not np.isfinite(f).all() or not np.isfinite(v).all():
        raise DataError("objectives and violations of candidates must be finite")
    return f, v
