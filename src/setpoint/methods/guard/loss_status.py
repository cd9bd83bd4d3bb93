"""`LossStatus`: how a goal stands while it is trained, on the rows seen last, decided hard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from setpoint._core.notes import Note

MOST_SHARES = 8  #: that the text shows: more do not fit on a line


class LossPhase(StrEnum):
    """What a loss descends."""

    EVIDENCE = "cross-entropy, until enough rows of each class are seen"
    BLEND = "cross-entropy, turning into the method"
    GOAL = "the method"


@dataclass(frozen=True, kw_only=True)
class LossFigure:
    """A figure on the recent window, with its 95 % interval; not-a-number where a rate is empty."""

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ConstraintStatus(LossFigure):
    """A constraint on the recent window.

    Attributes
    ----------
    held : bool
        Whether its value is on the right side of the bound; an empty rate is not.
    certain : bool
        Whether the whole interval is on the same side as the value.
    price : float
        What breaking it by one unit costs, in units of the objective.
    """

    bound: float
    held: bool
    certain: bool
    price: float


@dataclass(frozen=True, kw_only=True)
class LossStatus:
    """How the goal stands on the training rows seen last, decided as the loss decides.

    That is at its own threshold; at 0 of several labels, and by the largest logit of several
    classes.

    Attributes
    ----------
    step : int
    phase : LossPhase
    threshold : float
        Of the logit; rows at or above it are decided positive. Not-a-number of several classes.
    rows : int
        In the window.
    seen : tuple of int
        Rows of each class since the start.
    count : int
        Rows decided positive, of several labels their sum; 0 of several classes.
    decided : float
        Share of the window that is decided positive, of several labels their mean; not-a-number of
        several classes.
    shares : tuple of (str, float)
        Share that is decided positive of each group and label, or decided as each class.
    objective : LossFigure
    constraints : tuple of ConstraintStatus
    alarms : tuple of Note
        What the user can do something about.
    """

    step: int
    phase: LossPhase
    threshold: float
    rows: int
    seen: tuple[int, ...]
    count: int
    decided: float
    objective: LossFigure | None
    constraints: tuple[ConstraintStatus, ...]
    shares: tuple[tuple[str, float], ...] = ()
    alarms: tuple[Note, ...] = ()

    @property
    def held(self) -> bool:
        """Whether every constraint is held right now, on these rows; not where there are none."""
        return self.rows > 0 and all(c.held for c in self.constraints)

    @property
    def certain(self) -> bool:
        """Whether every constraint is held with its whole interval."""
        return self.held and all(c.certain for c in self.constraints)

    def __str__(self) -> str:
        head = f"step {self.step:,} ({self.phase}); the {self.rows:,} training rows seen last"
        if self.objective is None:
            return f"{head}; too few to judge the goal"
        lines = [
            f"{head}; {self._decisions()}",
            f"  {_shown(self.objective)}",
        ]
        for c in self.constraints:
            word = ("held" if c.held else "BROKEN") + (
                "" if c.certain else " (too close to be sure)"
            )
            lines.append(f"  {c.text}: {word}, {_shown(c, named=False)}, price {c.price:.3g}")
        return "\n".join([*lines, *(f"  ! {note.text}" for note in self.alarms)])

    def _decisions(self) -> str:
        each = ", ".join(f"{name} {share:.1%}" for name, share in self.shares[:MOST_SHARES])
        each += ", …" if len(self.shares) > MOST_SHARES else ""
        if math.isnan(self.threshold):
            return f"decided by the largest logit: {each}"
        text = f"{self.decided:.1%} decided ({self.count:,}; logit >= {self.threshold:.3g})"
        return f"{text}: {each}" if each else text


def _shown(figure: LossFigure, named: bool = True) -> str:
    name = f"{figure.text} " if named else ""
    if math.isnan(figure.value):
        return f"{name}is undefined: no rows in its denominator"
    return f"{name}{figure.value:.3f} (95% interval {figure.low:.3f} to {figure.high:.3f})"
