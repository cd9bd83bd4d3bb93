"""The merit of a point: what is descended in place of the constrained problem.

    φ(x; μ) = μ f(x) + v(x),        v(x) = Σ max(cᵢ(x), 0) + Σ |eⱼ(x)|

For μ below 1 / max |multiplier| its minimisers solve the problem; μ is only ever lowered. ``worst``
is what people ask about: by how much the most broken constraint is broken.
"""

from __future__ import annotations

from torch import Tensor

from setpoint.solvers.sqp.functions import Evaluated


def parts(v: Tensor, equations: int) -> Tensor:
    """What is broken of each constraint, (m,) >= 0."""
    broken = v.clamp(min=0)
    broken[:equations] = v[:equations].abs()
    return broken


def total(v: Tensor, equations: int) -> float:
    """V, the sum of what is broken."""
    return float(parts(v, equations).sum()) if len(v) else 0.0


def worst(v: Tensor, equations: int) -> float:
    """The most broken constraint."""
    return float(parts(v, equations).max()) if len(v) else 0.0


def merit(point: Evaluated, mu: float, equations: int) -> float:
    """φ at a point."""
    return mu * point.f + total(point.v, equations)


def paid(v: Tensor, equations: int) -> Tensor:
    """∂(Σ broken)/∂v (m,): 1 where an inequality is broken, the sign of an equation."""
    out = (v > 0).to(v)
    out[:equations] = v[:equations].sign()
    return out
