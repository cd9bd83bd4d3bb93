"""The solvers by name."""

from __future__ import annotations

from setpoint.solvers.first_order import FirstOrder

SOLVERS: dict[str, type] = {"first-order": FirstOrder}
