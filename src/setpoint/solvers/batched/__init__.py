"""Many small problems at once: min f subject to c <= 0, e = 0 and bounds, in one batch."""

from setpoint.solvers.batched.batched_result import BatchedResult, BatchedState
from setpoint.solvers.batched.functions import folded
from setpoint.solvers.batched.solve_batched import BatchedProgress, solve_batched

__all__ = ["BatchedProgress", "BatchedResult", "BatchedState", "folded", "solve_batched"]
