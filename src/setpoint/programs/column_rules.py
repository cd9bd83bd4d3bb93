"""Rules for labels and weights: which numbers a column of a batch may hold.

On the host a column is checked at every call, by one quick pass. On a device nobody waits for an
answer: a rule gives the worst entry as a small tensor there, and whoever runs the loss reads it
some calls later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError


@dataclass(frozen=True)
class ColumnRule(ABC):
    """Which numbers a column may hold.

    Parameters
    ----------
    words : str
        The rule as the beginning of a sentence.
    """

    words: str

    @abstractmethod
    def holds(self, x: np.ndarray) -> bool:
        """Whether every number may stand, in a pass or two that warn of nothing."""

    @abstractmethod
    def excess(self, x: Tensor) -> Tensor:
        """0 for each number that may stand, another number or NaN for the others."""

    def check(self, x: Any) -> None:
        """Raise with the first number that breaks the rule; waits for a device."""
        if isinstance(x, np.ndarray):
            if self.holds(x):
                return
        elif x.is_cpu and self.holds(x.numpy()):
            return
        column = torch.as_tensor(x)
        odd = column[self.excess(column) != 0]
        if odd.numel():
            raise DataError(f"{self.words}; got {odd[0].item():g}")

    def worst(self, x: Any) -> Tensor:
        """(2,) the largest excess, and the number that has it; nothing waits."""
        x = torch.as_tensor(x)
        size, at = self.excess(x).abs().max(0)
        return torch.stack([size.float(), x.gather(0, at.view(1))[0].float()])


class ZeroOrOne(ColumnRule):
    """Labels of two classes."""

    def holds(self, x: np.ndarray) -> bool:
        # not 0 is the same as 1: the cheapest exact question, and silent about NaN and infinity
        return x.astype(bool).tobytes() == (x == 1).tobytes()

    def excess(self, x: Tensor) -> Tensor:
        return x - x * x


@dataclass(frozen=True)
class ClassIndex(ColumnRule):
    """Indices of ``count`` classes, as whole numbers of 64 bits."""

    count: int

    def holds(self, x: np.ndarray) -> bool:
        return bool(x.view(np.uint64).max() < self.count)  # a negative one is huge

    def excess(self, x: Tensor) -> Tensor:
        return x - x.clamp(0, self.count - 1)


class NotNegative(ColumnRule):
    """Finite numbers, 0 or more: weights, relevances."""

    def holds(self, x: np.ndarray) -> bool:
        return bool(x.min() >= 0 and x.max() < np.inf)

    def excess(self, x: Tensor) -> Tensor:
        return x * 0 - x.clamp(max=0)


class Finite(ColumnRule):
    """Finite numbers: targets of regression."""

    def holds(self, x: np.ndarray) -> bool:
        return bool(np.isfinite(x).all())

    def excess(self, x: Tensor) -> Tensor:
        return x * 0


BINARY = ZeroOrOne("target must hold 0 and 1")
WEIGHT = NotNegative("weight must be finite and not negative")

Checked = Sequence[tuple[ColumnRule, Any]]  #: rules and the columns they are for


def check_columns(columns: Checked) -> None:
    """Raise for the first number of a column that its rule does not allow."""
    for rule, column in columns:
        rule.check(column)


def lies_on_host(x: Tensor) -> bool:
    """Whether its values can be looked at without waiting for a device."""
    return x.is_cpu


#: calls from one copy of the faults to the next, which is when the one before is read
READ_EVERY = 16


class ColumnWatch:
    """Faults of columns on a device, gathered there and read some calls later.

    Waiting for a device at every call would cost more than the loss. It is no part of the loss's
    state, and a copy begins anew.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._worst: Tensor | None = None  # (columns, 2), the first faults so far
        self._copy: Tensor | None = None
        self._landed: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Nothing on a device, and no event of one, is pickled."""
        return ColumnWatch().__dict__

    def see(self, columns: Checked) -> None:
        """Take a batch's columns in; raise for what an earlier batch held.

        Raises
        ------
        DataError
            With the number, and the calls between which it came.
        """
        worst = torch.stack([rule.worst(column) for rule, column in columns])
        old = self._worst
        if old is not None and old.shape == worst.shape and old.device == worst.device:
            worst = torch.where(old[:, :1] == 0, worst, old)
        self._worst = worst
        self._calls += 1
        if self._calls % READ_EVERY == 0:
            self._read([rule for rule, _ in columns])
            self._copy = worst.to("cpu", non_blocking=True)
            if not worst.is_cpu:
                self._landed = torch.Event(device=worst.device)
                self._landed.record()

    def _read(self, rules: Sequence[ColumnRule]) -> None:
        copy, landed = self._copy, self._landed
        if copy is None or len(copy) != len(rules):
            return
        if landed is not None and not landed.query():
            return  # the next copy holds it too
        for rule, (size, value) in zip(rules, copy.tolist(), strict=True):
            if size != 0:
                last = self._calls - READ_EVERY
                self.__init__()  # type: ignore[misc]
                raise DataError(
                    f"{rule.words}; a batch among the last ones before call {last} held "
                    f"{value:g}, and the loss's totals hold it too: repair such rows and start "
                    "this loss anew"
                )
