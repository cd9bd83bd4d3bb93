"""The augmented Lagrangian: first order, for means over batches and for large smooth problems."""

from setpoint.solvers.augmented.augmented_lagrangian import Augmented, AugmentedLagrangian, Pass

__all__ = ["Augmented", "AugmentedLagrangian", "Pass"]
