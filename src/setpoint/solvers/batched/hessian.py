"""Which memory of curvature the rows keep: the whole inverse Hessian, or the last m pairs."""

from __future__ import annotations

from torch import Tensor

from setpoint._core.errors import KindError
from setpoint.solvers.batched.full import FullMemory
from setpoint.solvers.batched.limited import LimitedMemory

Memory = FullMemory | LimitedMemory

WIDE = 200  #: from this many variables on, pairs are kept
NUMBERS = 2e7  #: and where B n² would be more numbers than this
PAIRS = 10


def memory_for(hessian: str | int, x: Tensor) -> Memory:
    """The memory that ``hessian`` asks for: "auto", "full" or how many pairs."""
    rows, wide = x.shape
    if hessian == "auto":
        hessian = "full" if wide < WIDE and rows * wide * wide <= NUMBERS else PAIRS
    if hessian == "full":
        return FullMemory.start(x)
    if isinstance(hessian, bool) or not isinstance(hessian, int) or hessian < 1:
        raise KindError(f'hessian={hessian!r}: "auto", "full" or a number of pairs, 1 or more')
    return LimitedMemory.start(x, hessian)
