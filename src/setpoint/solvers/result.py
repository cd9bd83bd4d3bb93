"""Result of a minimisation: point, multipliers, what a callback is told, solution record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint._core.progress import Progress


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What a unit of each constraint costs, in units of the objective.

    Attributes
    ----------
    inequalities, equalities : numpy.ndarray
        (p,) >= 0, and (q,).
    low, high : numpy.ndarray
        (n,) >= 0, of the bounds, in the order of the flat x.
    """

    inequalities: np.ndarray
    equalities: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class Result:
    """The best point that was found, and how far it is a solution.

    Attributes
    ----------
    x : torch.Tensor or dict of tensors
        As x0 was given; the parameters of a module by their names, which the module holds too.
    fun : float
        The objective there.
    violation : float
        The greatest max(c, 0) or |e| there; bounds are kept exactly.
    kkt : float
        ‖∇f + Σ λ∇c + Σ ν∇e − z_low + z_high‖; at kinks that of the smallest combination of
        gradients at points near x: see ``bundle``.
    multipliers : Multipliers
    success : bool
        Whether the constraints hold and the conditions of an optimum do, to the tolerances: a
        stationary point, as a rule a local minimum, where the problem is not convex.
    status : str
        How it ended, as a sentence.
    iterations, evaluations, gradients : int
        Steps taken, calls of the functions, and points at which gradients were taken.
    seconds : float
    plan : str
        The method, and why it was chosen.
    bundle : tuple of numpy.ndarray, optional
        Points (l, n) and weights (l, 1 + q + p) of their gradients (objective, equations,
        inequalities), whose sum with the forces of the bounds has the norm ``kkt``.
    state : dict
        To go on from (``resume``); plain tensors and numbers.
    """

    x: Any
    fun: float
    violation: float
    kkt: float
    multipliers: Multipliers
    success: bool
    status: str
    iterations: int
    evaluations: int
    gradients: int
    seconds: float
    plan: str
    bundle: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    state: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class SolverProgress(Progress):
    """What a callback is told after a step; where the run ends is not known.

    Attributes
    ----------
    iteration, evaluations : int
    fun, violation : float
        At the iterate.
    kkt : float
        ‖∇f + Jᵀy‖ with the prices y of the last step, a rough reading of the conditions; nan where
        it is not known.
    step : float
        Length of the step along its direction.
    mu : float
        What the objective counts in the merit; 0 where there is none.
    x : torch.Tensor or dict of tensors
        The iterate, made when it is asked for.
    """

    done: int
    evaluations: int
    fun: float
    violation: float
    kkt: float
    step: float
    mu: float
    iterate: Callable[[], Any] = field(repr=False)

    @property
    def iteration(self) -> int:
        """Steps so far."""
        return self.done

    @property
    def x(self) -> Any:
        """The iterate."""
        return self.iterate()


# What a solver of a constrained problem came to.


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver came to.

    Attributes
    ----------
    x : torch.Tensor or tuple of them
        The last iterate.
    best : torch.Tensor or tuple of them
        The best snapshot that keeps the constraints; where none does, the one nearest to it. Where
        the caller judged the snapshots, the one judged best.
    objective : float
        F at ``best``.
    violations : numpy.ndarray
        (m,) v at ``best``.
    multipliers : numpy.ndarray
        (m,) what a unit of each costs.
    objectives, snapshots : numpy.ndarray
        (S,) f and (S, m) v of the snapshots, for ``best_mixture``. A penalty method, which may have
        a constraint for each row, keeps (S, 1), how much the most broken one is broken.
    status : str
        How it ended, as a sentence.
    state : dict
        To go on from; plain tensors and numbers.
    penalty : numpy.ndarray
        (m,) μ in the end; empty where there is no penalty.
    paid : numpy.ndarray
        (m,) what the penalty paid for a unit of each in the mean over the last round, μ times the
        share of steps in which it was broken: a second reading of the multipliers, coarser (to
        μ / steps), which does not mind kinks. It means nothing where gradients were clipped, and is
        0 where SQP took the steps.
    strength : float
        ω, the weight of the regulariser in the end.
    stationarity, complementarity : float
        What is left of the conditions of an optimum at ``best`` with these multipliers: see
        :class:`setpoint.solvers.kkt.Kkt`. nan where they were not read.
    how : str
        How the multipliers were found.
    """

    x: Any
    best: Any
    objective: float
    violations: np.ndarray
    multipliers: np.ndarray
    objectives: np.ndarray
    snapshots: np.ndarray
    status: str
    state: dict[str, Any] = field(repr=False)
    penalty: np.ndarray = field(default_factory=lambda: np.zeros(0))
    paid: np.ndarray = field(default_factory=lambda: np.zeros(0))
    strength: float = 0.0
    stationarity: float = math.nan
    complementarity: float = math.nan
    how: str = "the state of the dual"
