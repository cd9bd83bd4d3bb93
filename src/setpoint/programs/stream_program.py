"""A program whose objective and constraints are functions of sums over rows.

    minimise  F(C)   subject to  v(C) <= 0,      C = Σᵢ wᵢ c(zᵢ) / Σᵢ wᵢ,

where zᵢ are a model's outputs on row i. Rows arrive a batch at a time, F and v are not sums over
rows, and so the gradient of a batch's own F(C) is biased. What is unbiased at every batch size is

    ∂L/∂C at the totals of the whole stream  ×  ∂C/∂z of the batch,      L = F + Σⱼ λⱼ vⱼ,

so a program offers the two factors apart: ``price`` reads ∂L/∂C, the *prices*, from totals, and
``pull`` multiplies them into a batch. Whoever runs the program keeps the totals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

# What a program may ask of the other processes it is run on.


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


class Priced(NamedTuple):
    """A program read at some totals.

    ``value`` F, ``violations`` v (m,) with <= 0 where held, ``prices`` −∂L/∂C, shaped like the
    totals: what one more unit of each total is worth. Arrays or tensors, as the totals were.
    """

    value: Any
    violations: Any
    prices: Any


class StreamProgram(nn.Module, ABC):
    """One goal, lowered: totals of a batch, their prices, and the pull of prices on outputs.

    Every method runs without autograd and without waiting for a device. Sums over rows are meant
    throughout: whoever runs the program divides by the mass of weights. Small sums are numpy arrays
    and numbers where the rows lie on the host, tensors elsewhere.

    Attributes
    ----------
    shape : tuple of int
        Shape of the totals.
    start : torch.Tensor
        (m,) multipliers to start from, one per constraint.
    """

    gathers: ClassVar[bool] = False  #: whether it needs the rows of all processes in one place
    settles: bool = False  #: whether it keeps something beside the totals that moves with the rows
    follows: bool = False  #: whether it moves with the optimiser's step too
    refreshes: bool = False  #: whether it can be set anew from many rows at once
    together: bool = False  #: whether a batch must come as a whole
    indexed: ClassVar[bool] = False  #: whether it keeps something for each row, by its number
    exact: ClassVar[bool] = False  #: whether ``measure`` gives by how much the totals change
    population: int = 0  #: rows there are in all, where it is exact
    shape: tuple[int, ...]
    start: Tensor

    @abstractmethod
    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Any:
        """Check a batch's shapes and prepare it; handed to the methods below."""

    @abstractmethod
    def mass(self, rows: Any) -> tuple[Any, int]:
        """Σ wᵢ and the number of rows."""

    def place(
        self, rows: Any, row: Any, exchange: Exchange | None, prices: Tensor, on: Any
    ) -> None:
        """Find the rows of a batch among those it keeps something for; before ``settle``.

        Called in training where ``indexed``; ``row`` holds their numbers, ``prices`` are those the
        batch will be pulled by, and ``on`` is as for ``pull``.
        """

    def gathered(self, exchange: Exchange | None) -> dict[str, Tensor]:
        """What the state of all processes together has otherwise than this one's."""
        del exchange
        return {}

    def settle(self, rows: Any, step: Tensor, exchange: Exchange | None, alone: bool) -> None:
        """Move what the program keeps beside the totals, such as thresholds; before ``measure``.

        Called in training where ``settles``; ``exchange`` is None in a single process, ``alone``
        says that every batch is read at its own totals. What it moves are buffers of its own, so
        that a run can be taken up.
        """

    def refresh(self, rows: Any, exchange: Exchange | None) -> None:
        """Set it anew from many rows at once, whose outputs were made in evaluation mode."""

    def follow(self, outputs: Tensor, exchange: Exchange | None) -> None:
        """Move it by what the optimiser's step did to the outputs of the last batch."""

    def shown(self, totals: Tensor) -> dict[str, Any]:
        """What a history should show of it."""
        del totals
        return {}

    @abstractmethod
    def measure(self, rows: Any, step: Tensor) -> tuple[Any, Any]:
        """The batch's totals Σ wᵢ c(zᵢ), and whatever ``pull`` wants to remember.

        Of an ``exact`` program in training: by how much the batch changes the totals of all rows
        seen so far, in float64, always finite.
        """

    @abstractmethod
    def price(self, totals: Any, multipliers: Any) -> Priced:
        """F, v and −∂L/∂C at totals per unit of mass; numpy on the host, tensors elsewhere."""

    @abstractmethod
    def pull(
        self, rows: Any, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        """Scale · Σ-gradient of the loss in the outputs, with as many entries.

        ``on`` is 1 where prices count and 0 while the totals are still being gathered, when the
        program's base loss alone is descended.
        """

    @abstractmethod
    def base(self, rows: Any) -> Any:
        """Σ wᵢ of the base loss, which is mixed in and starts the program."""

    @abstractmethod
    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        """The loss to report, from what is priced and the mean base loss."""

    @abstractmethod
    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        """The multipliers after a step; ``share`` is the batch's part of the memory."""

    @abstractmethod
    def notices(self, totals: Any, unseen: Any) -> list[str]:
        """Sentences on what makes the program hopeless as posed, from totals on the host.

        ``unseen`` is the share of batches without a row of each class.
        """

    @abstractmethod
    def check(self, rows: Any) -> None:
        """Look at the values of a batch, as only the first one can afford."""

    @abstractmethod
    def whole(self, totals: Any) -> Any:
        """The mass of rows in totals."""

    @abstractmethod
    def presence(self, totals: Any) -> Any:
        """1 for each class that a batch's totals hold a row of."""
