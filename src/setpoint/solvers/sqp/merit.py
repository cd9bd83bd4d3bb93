"""The merit of a point: what is descended in place of the constrained problem.

    φ(x; μ) = μ f(x) + v(x),        v(x) = Σ max(cᵢ(x), 0) + Σ |eⱼ(x)|

For μ below 1 / max |multiplier| its minimisers solve the problem; μ is only ever lowered. What
people ask about is the greatest of the summands: by how much the most broken constraint is broken.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor


def broken(v: np.ndarray, equations: int) -> np.ndarray:
    """What is broken of each constraint, (m,) >= 0."""
    out = np.maximum(v, 0.0)
    out[:equations] = np.abs(v[:equations])
    return out


def paid(v: Tensor, equations: int) -> Tensor:
    """∂(Σ broken)/∂v (m,): 1 where an inequality is broken, the sign of an equation."""
    out = (v > 0).to(v)
    if equations:
        out[:equations] = v[:equations].sign()
    return out
