"""Training: running totals, processes, batches, the loop, checkpoints, events."""

from setpoint.training.running_loss import RunningLoss

__all__ = ["RunningLoss"]
