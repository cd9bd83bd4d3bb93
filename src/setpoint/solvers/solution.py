"""What a solver of a constrained problem came to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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
