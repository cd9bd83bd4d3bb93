"""Solvers: they move tensors and know nothing of metrics."""

from setpoint.programs.constrained_problem import ConstrainedProblem
from setpoint.solvers.augmented import AugmentedLagrangian
from setpoint.solvers.batched import solve_batched
from setpoint.solvers.exact_penalty import ExactPenalty, Round
from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.kkt import Kkt, kkt
from setpoint.solvers.mixture import best_feasible, best_mixture
from setpoint.solvers.result import Multipliers, Result, Solution, SolverProgress
from setpoint.solvers.solve import solve
from setpoint.solvers.sqp.penalty_inner_solver import Sqp
from setpoint.solvers.table import SOLVERS

__all__ = [
    "SOLVERS",
    "AugmentedLagrangian",
    "ExactPenalty",
    "FirstOrder",
    "Kkt",
    "Multipliers",
    "ConstrainedProblem",
    "SolverProgress",
    "Result",
    "Round",
    "Solution",
    "Sqp",
    "best_feasible",
    "best_mixture",
    "kkt",
    "solve",
    "solve_batched",
]


def __dir__() -> list[str]:
    return sorted(__all__)
