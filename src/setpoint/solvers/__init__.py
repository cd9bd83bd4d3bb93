"""Solvers: they move tensors and know nothing of metrics."""

from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.mixture import best_feasible, best_mixture
from setpoint.solvers.primal_dual import PrimalDual, Problem, Solution
from setpoint.solvers.table import SOLVERS

__all__ = [
    "SOLVERS",
    "FirstOrder",
    "PrimalDual",
    "Problem",
    "Solution",
    "best_feasible",
    "best_mixture",
]
