"""The solvers by name."""

from __future__ import annotations

from setpoint.solvers.augmented import AugmentedLagrangian
from setpoint.solvers.exact_penalty import ExactPenalty
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.sqp.penalty_inner_solver import Sqp

SOLVERS: dict[str, type] = {
    "first-order": FirstOrder,
    "exact-penalty": ExactPenalty,
    "augmented-lagrangian": AugmentedLagrangian,
    "sqp": Sqp,
}
