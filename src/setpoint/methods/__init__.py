"""Methods: a goal becomes a program. Each accepts or refuses, lowers, and recovers."""

from setpoint.methods.costs import Costs
from setpoint.methods.cross_entropy import CrossEntropy
from setpoint.methods.exact.exact import Exact
from setpoint.methods.implicit.implicit import Implicit
from setpoint.methods.lagrangian import Lagrangian
from setpoint.methods.method import Method, Recovered
from setpoint.methods.pairwise import Pairwise
from setpoint.methods.regression.regression_errors import Errors
from setpoint.methods.soft_set import GRID, SoftSet
from setpoint.methods.table import METHODS, method, method_for

__all__ = [
    "GRID",
    "METHODS",
    "Costs",
    "CrossEntropy",
    "Implicit",
    "Errors",
    "Exact",
    "Lagrangian",
    "Method",
    "Pairwise",
    "Recovered",
    "SoftSet",
    "method",
    "method_for",
]


def __dir__() -> list[str]:
    return sorted(__all__)
