"""Surrogates of the step: one number in [0, 1] per example where the decision is 0 or 1."""

from setpoint.surrogates.hinge import Hinge
from setpoint.surrogates.linear import Linear
from setpoint.surrogates.ramp import Ramp
from setpoint.surrogates.schedule import Annealed, Constant, Schedule, schedule
from setpoint.surrogates.sigmoid import Sigmoid
from setpoint.surrogates.surrogate import PiecewiseLinear, Surrogate
from setpoint.surrogates.table import SURROGATES, surrogate

__all__ = [
    "SURROGATES",
    "Annealed",
    "Constant",
    "Hinge",
    "Linear",
    "PiecewiseLinear",
    "Ramp",
    "Schedule",
    "Sigmoid",
    "Surrogate",
    "schedule",
    "surrogate",
]


def __dir__() -> list[str]:
    return sorted(__all__)
