"""The augmented Lagrangian: first order, for means over batches and for large smooth problems."""

from setpoint.solvers.augmented.solver import Augmented, AugmentedLagrangian, Pass

__all__ = ["Augmented", "AugmentedLagrangian", "Pass"]
