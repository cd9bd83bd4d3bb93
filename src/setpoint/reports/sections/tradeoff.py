"""The trade-off: the objective against each limited metric, with the rule and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns, Constraint, Domain, Sweep, Total
from setpoint.goals import Goal
from setpoint.metrics import positive_rate
from setpoint.reports.sections.key_figures import KeyFigure
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.tradeoff_curve import spread_over

MOST = 180  #: points of a curve
PANELS = 3  #: limits that are drawn
FLAGGED = "share of rows flagged"


def tradeoff(
    goal: Goal,
    rule: DecisionRule,
    rows: Sequence[tuple[str, Columns]],
    figures: Sequence[KeyFigure],
    contenders: Sequence[dict[str, Any]],
) -> dict[str, Any] | None:
    """Panels of the trade-off as plain data, one for each limit that is a number.

    Parameters
    ----------
    goal : Goal
        Lowered.
    rule : DecisionRule
    rows : sequence of (name, Columns)
        Rows to draw a curve of.
    figures : sequence of KeyFigure
        Of the rule; the objective first, then the limits in order.
    contenders : sequence of dict
        With ``name``, ``value`` and ``kept``, as in the record of a comparison.
    """
    numeric = [j for j, c in enumerate(goal.constraints) if c.number is not None]
    lines = [] if rule.kind != "threshold" else [(name, _line(goal, c)) for name, c in rows]
    lines = [(name, line) for name, line in lines if line is not None]
    panels = [
        _panel(goal.constraints[j], j, figures, lines, contenders) for j in numeric[:PANELS]
    ] or ([_flagged(figures, lines)] if not goal.constraints and lines else [])
    panels = [p for p in panels if p["curves"] or p["others"]]
    if not panels:
        return None
    return {"objective": str(goal.objective), "sense": goal.sense, "panels": panels}


def _line(goal: Goal, columns: Columns) -> dict[str, Any] | None:
    """Objective, left sides and share flagged at some thresholds; None for goals on scores."""
    problem = GoalOnRows.ground(goal, columns)
    if not all(isinstance(leaf, Total) for leaf in problem.leaves()):
        return None
    sweep = Sweep(columns)
    places = spread_over(sweep.size, MOST)
    env = {leaf: sweep.at(leaf, places) for leaf in problem.leaves()}
    flagged = positive_rate.expand(Domain(columns))
    share = {leaf: sweep.at(leaf, places) for leaf in flagged.leaves()}
    judged = [c.judge(env) for c in problem.constraints]
    return {
        "y": _column(*problem.objective.read(env), places.size),
        "sides": [_column(j.value, j.defined, places.size) for j in judged],
        "flagged": _column(*flagged.read(share), places.size),
    }


def _column(values: Any, defined: Any, size: int) -> np.ndarray:
    """Values, not-a-number where they are not defined."""
    return np.where(np.broadcast_to(defined, size), np.broadcast_to(values, size), np.nan)


def _panel(
    constraint: Constraint,
    j: int,
    figures: Sequence[KeyFigure],
    lines: list[tuple[str, dict[str, Any]]],
    contenders: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "limit": str(constraint),
        "x": str(constraint.left),
        "op": constraint.op,
        "bound": constraint.number,
        "curves": [{"name": n, "x": line["sides"][j], "y": line["y"]} for n, line in lines],
        "point": _point(figures[1 + j], figures[0]) if figures else None,
        "others": [
            {"name": c["name"], "chosen": c["chosen"], "x": c["kept"][j]["value"], "y": c["value"]}
            for c in contenders
            if j < len(c["kept"]) and c["value"] is not None and c["kept"][j]["value"] is not None
        ],
    }


def _flagged(
    figures: Sequence[KeyFigure], lines: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Without a limit: the objective against how many rows are flagged."""
    share = next((f for f in figures if f.name == str(positive_rate)), None)
    return {
        "limit": None,
        "x": FLAGGED,
        "op": None,
        "bound": None,
        "curves": [{"name": name, "x": line["flagged"], "y": line["y"]} for name, line in lines],
        "point": None if share is None else _point(share, figures[0]),
        "others": [],
    }


def _point(x: KeyFigure, y: KeyFigure) -> dict[str, Any] | None:
    if x.value is None or y.value is None:
        return None
    return {
        "x": x.value,
        "x_low": x.low,
        "x_high": x.high,
        "y": y.value,
        "y_low": y.low,
        "y_high": y.high,
    }
