"""A program whose objective and constraints are functions of sums over rows.

    minimise  F(C)   subject to  v(C) <= 0,      C = Σᵢ wᵢ c(zᵢ) / Σᵢ wᵢ,

where zᵢ are a model's outputs on row i. Rows arrive a batch at a time, F and v are not sums over
rows, and so the gradient of a batch's own F(C) is biased. What is unbiased at every batch size is

    ∂L/∂C at the totals of the whole stream  ×  ∂C/∂z of the batch,      L = F + Σⱼ λⱼ vⱼ,

so a program offers the two factors apart: ``price`` reads ∂L/∂C, the *prices*, from totals, and
``pull`` multiplies them into a batch. Whoever runs the program keeps the totals.

What some programs need or keep beside the totals is a capability, stated by a mix-in:
:class:`GathersRows`, :class:`TracksThresholds`, :class:`KeepsRows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

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

    shape: tuple[int, ...]
    start: Tensor

    @abstractmethod
    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> Any:
        """Check a batch's shapes and prepare it; handed to the methods below.

        Whoever runs the program reads ``logits``, ``host``, ``small`` and ``checked`` of them: the
        columns of labels and weights with their rules (:mod:`setpoint.programs.column_rules`).
        """

    @abstractmethod
    def mass(self, rows: Any) -> tuple[Any, int]:
        """Σ wᵢ and the number of rows."""

    @abstractmethod
    def measure(self, rows: Any, step: Tensor) -> tuple[Any, Any]:
        """The batch's totals Σ wᵢ c(zᵢ), and whatever ``pull`` wants to remember."""

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
        """Look at all values of a batch, as only the first one can afford."""

    @abstractmethod
    def whole(self, totals: Any) -> Any:
        """The mass of rows in totals."""

    @abstractmethod
    def presence(self, totals: Any) -> Any:
        """1 for each class that a batch's totals hold a row of."""


# What a program may need or keep beside the totals.


class GathersRows:
    """A program that reads the rows of all processes in one place, as pairs of rows ask for."""


class TracksThresholds(ABC):
    """A program with thresholds that move with the rows.

    They are buffers of its own, so that a run can be taken up.
    """

    follows: bool = False  #: whether ``follow`` is wanted after each step of the optimiser
    refreshes: bool = False  #: whether ``refresh`` has something to do
    needs_whole_batch: bool = False  #: whether a batch may not come in parts

    @abstractmethod
    def settle(self, rows: Any, step: Tensor, exchange: Exchange | None, alone: bool) -> None:
        """Move the thresholds; called in training before ``measure``.

        ``exchange`` is None in a single process; ``alone`` says that every batch is read at its
        own totals.
        """

    def refresh(self, rows: Any, exchange: Exchange | None) -> None:
        """Set them anew from many rows at once, whose outputs were made in evaluation mode."""
        del rows, exchange

    def follow(self, outputs: Tensor, exchange: Exchange | None) -> None:
        """Move them by what the optimiser's step did to the outputs of the last batch."""
        del outputs, exchange

    def shown(self) -> dict[str, Any]:
        """What a history should show of them."""
        return {}


class KeepsRows(ABC):
    """A program that keeps something for each row, by its number among all rows.

    Its totals are those of all rows and never fade: in training ``measure`` gives by how much the
    batch changes them, in float64, always finite.
    """

    population: int  #: rows there are in all

    def fading(self, steps: Any, count: Any) -> Any:
        """What is left of earlier steps; all of it while rows come by for the first time.

        So multipliers rest until the totals are those of all rows.
        """
        all_seen = (steps * count >= self.population) * 1.0
        return 1 - all_seen * count / self.population

    @abstractmethod
    def place(
        self, rows: Any, row: Any, exchange: Exchange | None, prices: Tensor, on: Any
    ) -> None:
        """Find the rows of a batch among those it keeps; called in training before ``measure``.

        ``row`` holds their numbers, ``prices`` are those the batch will be pulled by, and ``on``
        is as for ``pull``.
        """

    @abstractmethod
    def gathered(self, exchange: Exchange | None) -> dict[str, Tensor]:
        """What the state of all processes together has otherwise than this one's."""
