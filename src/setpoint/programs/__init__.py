"""Programs: minimise f subject to c <= 0 over tensors. Nothing here knows of metrics."""

from setpoint.programs.constrained_problem import ConstrainedProblem
from setpoint.programs.duals import DUALS, Additive, Dual, External, Swap, dual
from setpoint.programs.stream_program import Exchange, Priced, StreamProgram

__all__ = [
    "DUALS",
    "Additive",
    "Dual",
    "External",
    "Exchange",
    "Priced",
    "ConstrainedProblem",
    "StreamProgram",
    "Swap",
    "dual",
]
