"""`LossStatus`: how a goal stands while it is trained, on the rows seen last, decided hard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from setpoint._core.notes import Note
from setpoint.expressions.evaluate import Reading
from setpoint.methods.confusion.goal_over_cells import Lowered

SURE = 1.959963984540054  #: standard normal quantile of a two-sided 95 % interval


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
    price : float
        What breaking it by one unit costs, in units of the objective.
    """

    bound: float
    held: bool
    price: float


@dataclass(frozen=True, kw_only=True)
class LossStatus:
    """How the goal stands on the recent window, decided at the loss's own threshold.

    Attributes
    ----------
    step : int
    phase : LossPhase
    threshold : float
        Of the logit; rows at or above it are decided positive.
    rows : int
        In the window.
    seen : tuple of int
        Rows of each class since the start.
    decided : float
        Share of the window that is decided positive.
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
    decided: float
    objective: LossFigure | None
    constraints: tuple[ConstraintStatus, ...]
    alarms: tuple[Note, ...] = ()

    @property
    def held(self) -> bool:
        """Whether every constraint is held right now."""
        return all(c.held for c in self.constraints)

    def __str__(self) -> str:
        head = f"step {self.step:,} ({self.phase}); {self.rows:,} recent rows"
        if self.objective is None:
            return f"{head}; too few to judge the goal"
        lines = [
            f"{head}; {self.decided:.1%} decided (logit >= {self.threshold:.3g})",
            f"  {_shown(self.objective)}",
        ]
        for c in self.constraints:
            word = "held" if c.held else "BROKEN"
            lines.append(f"  {c.text}: {word}, {_shown(c, named=False)}, price {c.price:.3g}")
        return "\n".join([*lines, *(f"  ! {note.text}" for note in self.alarms)])


def _shown(figure: LossFigure, named: bool = True) -> str:
    name = f"{figure.text} " if named else ""
    if math.isnan(figure.value):
        return f"{name}is empty: nobody is decided"
    return f"{name}{figure.value:.3f} (95% interval {figure.low:.3f} to {figure.high:.3f})"


def figures(
    lowered: Lowered, cells: np.ndarray, size: float
) -> tuple[LossFigure, tuple[tuple[LossFigure, float, bool], ...]]:
    """The objective, and each constraint's left side with its bound and whether it is held.

    Parameters
    ----------
    lowered : Lowered
    cells : numpy.ndarray
        (cells,) of hard decisions, per unit of mass.
    size : float
        Rows they are of.
    """
    goal = lowered.goal
    objective = _figure(lowered, goal.objective, cells, size, str(goal.objective))
    constraints = []
    for constraint in goal.constraints:
        figure = _figure(lowered, constraint.left, cells, size, str(constraint))
        bound = _value(lowered, constraint.right, cells).value
        gap = figure.value - float(bound)
        held = {">=": gap >= -1e-12, "<=": gap <= 1e-12}.get(constraint.op, abs(gap) < 1e-9)
        constraints.append((figure, float(bound), bool(held)))
    return objective, tuple(constraints)


def _value(lowered: Lowered, expression: object, cells: np.ndarray) -> Reading:
    totals = lowered.host.count @ cells
    env = dict(zip(lowered.leaves, totals.tolist(), strict=True))
    return expression.read(env)  # type: ignore[attr-defined]


def _figure(
    lowered: Lowered, expression: object, cells: np.ndarray, size: float, text: str
) -> LossFigure:
    """A value with its interval: the delta method, on half a row more in every cell.

    The half row keeps the interval open where a rate is 0 or 1.
    """
    reading = _value(lowered, expression, cells)
    value = float(reading.value) if bool(reading.defined) else math.nan
    padded = (cells * size + 0.5) / (size + 0.5 * len(cells))
    middle = float(_value(lowered, expression, padded).value)
    slope = np.zeros(len(cells))
    for i in range(len(cells)):
        step = max(1e-6, 1e-4 * padded[i])
        ends = [padded.copy(), padded.copy()]
        ends[0][i] -= step
        ends[1][i] += step
        low, high = (float(_value(lowered, expression, x).value) for x in ends)
        slope[i] = (high - low) / (2 * step)
    spread = padded @ slope**2 - (padded @ slope) ** 2
    error = SURE * math.sqrt(max(spread, 0.0) / size)
    return LossFigure(text=text, value=value, low=middle - error, high=middle + error)
