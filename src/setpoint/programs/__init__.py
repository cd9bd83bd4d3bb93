"""Programs: minimise f subject to c <= 0 over tensors. Nothing here knows of metrics."""

from setpoint.programs.constrained_problem import ConstrainedProblem
from setpoint.programs.duals import DUALS, Additive, Dual, External, Swap, dual
from setpoint.programs.stream_program import (
    Exchange,
    GathersRows,
    KeepsRows,
    Priced,
    StreamProgram,
    TracksThresholds,
)

__all__ = [
    "DUALS",
    "Additive",
    "ConstrainedProblem",
    "Dual",
    "Exchange",
    "External",
    "GathersRows",
    "KeepsRows",
    "Priced",
    "StreamProgram",
    "Swap",
    "TracksThresholds",
    "dual",
]
