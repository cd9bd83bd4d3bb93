"""Trade-off: the objective against each limited metric, with the rule and the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._core.json_codec import Record
from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns, Constraint, Domain, Sweep, Total
from setpoint.goals import Goal
from setpoint.metrics import positive_rate
from setpoint.reports.sections.key_figures import KeyFigure
from setpoint.reports.sections.summaries import ContenderSummary
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.tradeoff_curve import spread_over

MOST = 180  #: points of a curve: more cannot be told apart on a figure of 4.9 inches
PANELS = 3  #: limits that are drawn, the first ones
FLAGGED = "share of rows flagged"


@dataclass(frozen=True, eq=False)
class TradeoffCurve(Record):
    """One line of a panel: the limited metric and the objective at each threshold."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


@dataclass(frozen=True)
class RulePoint(Record):
    """Where the rule stands, with the interval of each axis."""

    x: float
    x_low: float | None
    x_high: float | None
    y: float
    y_low: float | None
    y_high: float | None


@dataclass(frozen=True)
class ContenderPoint(Record):
    """Where a contender stands."""

    name: str
    chosen: bool
    x: float
    y: float


@dataclass(frozen=True, eq=False)
class TradeoffPanel(Record):
    """The objective against one limited metric, or against the share flagged without a limit."""

    limit: str | None
    x: str
    op: str | None
    bound: float | None
    curves: tuple[TradeoffCurve, ...]
    point: RulePoint | None
    others: tuple[ContenderPoint, ...]


@dataclass(frozen=True, eq=False)
class Tradeoff(Record):
    """The objective, its sense, and a panel for each limit."""

    objective: str
    sense: str
    panels: tuple[TradeoffPanel, ...]


@dataclass(frozen=True, eq=False)
class _Line:
    """Objective, left sides of the constraints and share flagged, at some thresholds."""

    name: str
    objective: np.ndarray
    sides: tuple[np.ndarray, ...]
    flagged: np.ndarray


def tradeoff(
    goal: Goal,
    rule: DecisionRule,
    rows: Sequence[tuple[str, Columns]],
    figures: Sequence[KeyFigure],
    contenders: Sequence[ContenderSummary],
) -> Tradeoff | None:
    """Panels of the trade-off, one for each limit that is a number.

    Parameters
    ----------
    goal : Goal
        Lowered.
    rule : DecisionRule
    rows : sequence of (name, Columns)
        Rows to draw a curve of.
    figures : sequence of KeyFigure
        Of the rule; the objective first, then the limits in order.
    contenders : sequence of ContenderSummary
    """
    numeric = [j for j, c in enumerate(goal.constraints) if c.number is not None]
    lines = [] if not rule.point.along_scores else [_line(name, goal, c) for name, c in rows]
    lines = [line for line in lines if line is not None]
    panels = [_panel(goal.constraints[j], j, figures, lines, contenders) for j in numeric[:PANELS]]
    if not goal.constraints and lines:
        panels = [_flagged(figures, lines)]
    panels = [panel for panel in panels if panel.curves or panel.others]
    return Tradeoff(str(goal.objective), goal.sense, tuple(panels)) if panels else None


def _line(name: str, goal: Goal, columns: Columns) -> _Line | None:
    """The curve of some rows; None for goals on scores."""
    problem = GoalOnRows.ground(goal, columns)
    if not all(isinstance(leaf, Total) for leaf in problem.leaves()):
        return None
    sweep = Sweep(columns)
    places = spread_over(sweep.size, MOST)
    env = {leaf: sweep.at(leaf, places) for leaf in problem.leaves()}
    flagged = positive_rate.expand(Domain(columns))
    share = {leaf: sweep.at(leaf, places) for leaf in flagged.leaves()}
    judged = [c.judge(env) for c in problem.constraints]
    return _Line(
        name=name,
        objective=_column(*problem.objective.read(env), places.size),
        sides=tuple(_column(j.value, j.defined, places.size) for j in judged),
        flagged=_column(*flagged.read(share), places.size),
    )


def _column(values: Any, defined: Any, size: int) -> np.ndarray:
    """Values, not-a-number where they are not defined."""
    return np.where(np.broadcast_to(defined, size), np.broadcast_to(values, size), np.nan)


def _panel(
    constraint: Constraint,
    j: int,
    figures: Sequence[KeyFigure],
    lines: Sequence[_Line],
    contenders: Sequence[ContenderSummary],
) -> TradeoffPanel:
    return TradeoffPanel(
        limit=str(constraint),
        x=str(constraint.left),
        op=constraint.op,
        bound=constraint.number,
        curves=tuple(TradeoffCurve(line.name, line.sides[j], line.objective) for line in lines),
        point=_point(figures[1 + j], figures[0]) if figures else None,
        others=tuple(_contenders(j, contenders)),
    )


def _contenders(j: int, contenders: Sequence[ContenderSummary]) -> Iterator[ContenderPoint]:
    """Those that have an objective and a value of the constraint number j."""
    for contender in contenders:
        side = contender.kept[j].value if j < len(contender.kept) else None
        if contender.value is not None and side is not None:
            yield ContenderPoint(contender.name, contender.chosen, side, contender.value)


def _flagged(figures: Sequence[KeyFigure], lines: Sequence[_Line]) -> TradeoffPanel:
    """Without a limit: the objective against how many rows are flagged."""
    share = next((f for f in figures if f.name == str(positive_rate)), None)
    return TradeoffPanel(
        limit=None,
        x=FLAGGED,
        op=None,
        bound=None,
        curves=tuple(TradeoffCurve(line.name, line.flagged, line.objective) for line in lines),
        point=None if share is None else _point(share, figures[0]),
        others=(),
    )


def _point(x: KeyFigure, y: KeyFigure) -> RulePoint | None:
    if x.value is None or y.value is None:
        return None
    return RulePoint(x=x.value, x_low=x.low, x_high=x.high, y=y.value, y_low=y.low, y_high=y.high)
