"""The solvers by name."""

from __future__ import annotations

from setpoint.solvers.exact_penalty import ExactPenalty
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.primal_dual import PrimalDual

SOLVERS: dict[str, type] = {
    "first-order": FirstOrder,
    "primal-dual": PrimalDual,
    "exact-penalty": ExactPenalty,
}
