"""Balance: what a held rate costs where the thresholds are functions of the scores.

With thresholds λ = h(s) that keep g(s, λ) = 0, the implicit function theorem gives

    d/ds f(s, h(s)) = ∂f/∂s + Σₖ μₖ ∂gₖ/∂s,        (∂g/∂λ)ᵀ μ = −∂f/∂λ.

One threshold for each constraint, each in one of them only: μ is a ratio, −∂f/∂λ / ∂g/∂λ. Coupled
constraints take a small solve; with fewer constraints than thresholds, λ being the best that keep
them, the same equation holds (the envelope theorem), and inequalities have μ >= 0.

References
----------
Kumar, Narasimhan, Cotter, Implicit Rate-Constrained Optimization of Non-decomposable Objectives,
ICML 2021 (diagonal constraints).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import lsq_linear

GUARD = 1e-6  #: least slope of a held rate, per unit of sharpness
MOST = 100.0  #: no multiplier of an inequality grows beyond


def ratio(objective: Any, held: Any, guard: float) -> Any:
    """−objective / held, the divisor kept at least ``guard`` from 0 on its own side."""
    if isinstance(held, np.ndarray):
        size = np.maximum(np.abs(held), guard)
        return -objective / np.where(held < 0, -size, size)
    size = held.abs().clamp(min=guard)
    return -objective / torch.where(held < 0, -size, size)


def multipliers(objective: Any, held: Any, active: Any, equal: Any, guard: float) -> Any:
    """μ (m,) from ∂f/∂λ (L,) and ∂g/∂λ (m, L); 0 where a constraint is not active.

    Parameters
    ----------
    objective, held : numpy.ndarray or torch.Tensor
    active, equal : like them
        (m,) 1 where a constraint binds, and where it is an equation.
    guard : float
        Slopes shorter than this count as this long.
    """
    if isinstance(held, np.ndarray):
        if not active.any():
            return 0 * active
        if held.shape[0] == 1 == held.shape[1]:
            found = ratio(objective, held[:, 0], guard)
        else:
            found = np.zeros(len(active))
            rows = np.flatnonzero(active)
            low = np.where(equal[rows] > 0, -MOST, 0.0)
            if np.abs(held[rows]).max() > guard:
                solved = lsq_linear(held[rows].T, -objective, (low, MOST))
                found[rows] = solved.x
    else:
        on = active[:, None] * held
        if held.shape[0] == 1 == held.shape[1]:
            found = ratio(objective, held[:, 0], guard)
        else:
            found = torch.linalg.pinv(on.T) @ -objective
    return found.clip(equal * -MOST, 0 * found + MOST) * active
