"""A call out of a compiled graph: the start of a guarded step, which reads the window on the host.

A graph of ``torch.compile`` carries tensors and numbers alone. The operator finds the program by a
number, calls it, and says which buffers it writes, so that what follows in the graph sees them.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Protocol

import torch
from torch import Tensor


class BeginsOnHost(Protocol):
    """A program whose steps begin on the host."""

    def begin(self) -> None:
        """What comes before a step."""

    def written(self) -> tuple[Tensor, ...]:
        """The buffers that this writes."""
        ...


_numbers = itertools.count()
_programs: weakref.WeakValueDictionary[int, BeginsOnHost] = weakref.WeakValueDictionary()


def numbered(program: BeginsOnHost) -> int:
    """The number by which graphs find a program, for as long as it lives."""
    number = next(_numbers)
    _programs[number] = program
    return number


@torch.library.custom_op("setpoint::begin_step", mutates_args={"buffers"})
def begin_step(number: int, buffers: list[Tensor]) -> None:
    """Begin a step of the program of this number; ``buffers`` are those it writes, or copies."""
    program = _programs[number]
    program.begin()
    for given, own in zip(buffers, program.written(), strict=True):
        given.copy_(own)
