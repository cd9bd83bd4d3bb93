"""Programs: minimise f subject to c <= 0 over tensors. Nothing here knows of metrics."""

from setpoint.programs.stream import Priced, StreamProgram

__all__ = ["Priced", "StreamProgram"]
