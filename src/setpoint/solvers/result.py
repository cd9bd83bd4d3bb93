"""What a minimisation came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


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


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback is told after a step.

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

    iteration: int
    evaluations: int
    fun: float
    violation: float
    kkt: float
    step: float
    mu: float
    _x: Any = field(repr=False, default=None)

    @property
    def x(self) -> Any:
        """The iterate."""
        return self._x()
