"""Solvers: they move tensors and know nothing of metrics."""

from setpoint.programs.problem import Problem
from setpoint.solvers.conditions import Kkt, kkt
from setpoint.solvers.exact_penalty import ExactPenalty, Round
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.mixture import best_feasible, best_mixture
from setpoint.solvers.primal_dual import PrimalDual
from setpoint.solvers.solution import Solution
from setpoint.solvers.table import SOLVERS

__all__ = [
    "SOLVERS",
    "ExactPenalty",
    "FirstOrder",
    "Kkt",
    "PrimalDual",
    "Problem",
    "Round",
    "Solution",
    "best_feasible",
    "best_mixture",
    "kkt",
]
