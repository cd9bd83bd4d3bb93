"""What a program may ask of the other processes it is run on."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class Exchange(ABC):
    """Sums and rows over processes; whoever runs a program provides one."""

    world: int  #: number of processes
    rank: int  #: the number of this one among them

    @abstractmethod
    def summed(self, x: Tensor) -> Tensor:
        """The sum over processes."""

    @abstractmethod
    def rows(self, *columns: Tensor) -> list[Tensor]:
        """The rows of all processes, in order of rank; they may have different numbers of them."""
