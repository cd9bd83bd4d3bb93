"""The surrogates by name."""

from __future__ import annotations

from typing import Any

from setpoint._core.options import choice
from setpoint.surrogates.hinge import Hinge
from setpoint.surrogates.linear import Linear
from setpoint.surrogates.ramp import Ramp
from setpoint.surrogates.sigmoid import Sigmoid
from setpoint.surrogates.surrogate import Surrogate

SURROGATES: dict[str, type[Surrogate]] = {
    "linear": Linear,
    "sigmoid": Sigmoid,
    "ramp": Ramp,
    "hinge": Hinge,
}


def surrogate(x: Any) -> Surrogate:
    """A surrogate from a surrogate or its name."""
    if isinstance(x, Surrogate):
        return x
    return SURROGATES[choice("surrogate", x, SURROGATES)]()
