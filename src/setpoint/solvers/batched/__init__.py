"""Many small problems at once: min f subject to c <= 0, e = 0 and bounds, in one batch."""

from setpoint.solvers.batched.folding import folded
from setpoint.solvers.batched.minimize import BatchedProgress, minimize_batched
from setpoint.solvers.batched.result import BatchedResult, BatchedState

__all__ = ["BatchedProgress", "BatchedResult", "BatchedState", "folded", "minimize_batched"]
