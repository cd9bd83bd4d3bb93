"""Training: running totals, processes, batches, the loop, checkpoints, events."""

from setpoint.training.running import RunningLoss

__all__ = ["RunningLoss"]
