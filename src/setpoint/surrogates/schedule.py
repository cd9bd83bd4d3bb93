"""Schedules: a number that may change with the step of training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.options import is_real, number


class Schedule(ABC):
    """A positive number as a function of the step, counted from 0."""

    @property
    @abstractmethod
    def moves(self) -> bool:
        """Whether it changes at all."""

    @abstractmethod
    def at(self, step: Any) -> Any:
        """The value at a step, a number or a 0-dimensional tensor."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same at every step."""

    value: float = 1.0

    def __post_init__(self) -> None:
        number("Constant.value", self.value, 0, open_low=True, error=KindError)

    @property
    def moves(self) -> bool:
        return False

    def at(self, step: Any) -> float:
        del step
        return float(self.value)


@dataclass(frozen=True)
class Annealed(Schedule):
    """start · (stop / start)^(step / steps), then stop: a straight line in the logarithm.

    Examples
    --------
    >>> cooling = Annealed(1.0, 0.01, 100)
    >>> cooling.at(0), round(cooling.at(50), 3), cooling.at(200)
    (1.0, 0.1, 0.01)
    """

    start: float
    stop: float
    steps: int

    def __post_init__(self) -> None:
        for name in ("start", "stop", "steps"):
            number(f"Annealed.{name}", getattr(self, name), 0, open_low=True, error=KindError)

    @property
    def moves(self) -> bool:
        return self.start != self.stop

    def at(self, step: Any) -> Any:
        left = 1 - step / self.steps
        left = left.clamp(0, 1) if hasattr(left, "clamp") else min(max(left, 0.0), 1.0)
        return self.stop * (self.start / self.stop) ** left


def schedule(x: Any, name: str) -> Schedule:
    """A schedule from a schedule or a number."""
    if isinstance(x, Schedule):
        return x
    if is_real(x):
        return Constant(x)
    raise KindError(f"{name} is a number or a schedule such as Annealed(1, 0.1, steps); got {x!r}")
