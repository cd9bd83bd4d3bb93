"""Events: what a run tells whoever listens. The library never prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainingEvent:
    """Something that happened in a run."""

    phase: str


@dataclass(frozen=True)
class Started(TrainingEvent):
    """A run begins, or goes on after an interruption.

    Attributes
    ----------
    epoch, epochs : int
        The first epoch to come, and how many there are at most.
    steps : int
        Steps of one epoch.
    resumed : bool
    """

    epoch: int
    epochs: int
    steps: int
    resumed: bool


@dataclass(frozen=True)
class Stepped(TrainingEvent):
    """One step is done."""

    step: int
    steps: int


@dataclass(frozen=True)
class EpochDone(TrainingEvent):
    """An epoch is done and judged.

    Attributes
    ----------
    epoch : int
    loss : float
        Mean of the loss over the epoch's batches.
    judged : dict
        What the judge said: the goal on the tune rows.
    best : bool
        Whether it is the best so far.
    seconds : float
    """

    epoch: int
    loss: float
    judged: dict[str, Any]
    best: bool
    seconds: float


@dataclass(frozen=True)
class Stopped(TrainingEvent):
    """A run ends; ``reason`` is a sentence."""

    reason: str
    epoch: int
    best_epoch: int


Listener = Callable[[TrainingEvent], None]
