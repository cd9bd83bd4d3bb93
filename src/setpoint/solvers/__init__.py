"""Solvers: they move tensors and know nothing of metrics."""

from setpoint.solvers.first_order import FirstOrder
from setpoint.solvers.table import SOLVERS

__all__ = ["SOLVERS", "FirstOrder"]
