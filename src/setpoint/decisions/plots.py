"""Plots of curves and trade-offs. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core.errors import GoalError, KindError
from setpoint.decisions.curves import MetricCurve
from setpoint.rules.decision_rule import DecisionRule


def plot_curve(curve: MetricCurve, ax: Any = None, **style: Any) -> Any:
    """Draw a curve; returns the matplotlib axes.

    Parameters
    ----------
    curve : MetricCurve
        From ``roc_curve``, ``pr_curve`` or ``metric_curve``.
    ax : matplotlib axes, optional
        A new figure's without it.
    **style
        Passed to ``ax.plot``.
    """
    if not isinstance(curve, MetricCurve):
        raise KindError(
            f"a curve is needed, from roc_curve, pr_curve or metric_curve; got {curve!r}"
        )
    ax = new_axes(ax)
    ax.plot(curve.x, curve.y, **{"drawstyle": "default", "linewidth": 1.6, **style})
    ax.set_xlabel(curve.x_name)
    ax.set_ylabel(curve.y_name)
    ax.grid(alpha=0.25)
    return ax


def plot_frontier(rule: DecisionRule, constraint: int = 0, ax: Any = None) -> Any:
    """Draw a rule's objective against one of its constrained metrics, with bound and rule marked.

    Without constraints the objective is drawn against the threshold.

    Parameters
    ----------
    rule : DecisionRule
        Of kind "threshold".
    constraint : int
        Which constraint gives the x axis.
    ax : matplotlib axes, optional
    """
    if not isinstance(rule, DecisionRule):
        raise KindError(f"a DecisionRule is needed, from sp.tune; got {rule!r}")
    frontier = rule.frontier
    if frontier is None:
        why = "was chosen with proof and" if rule.certificate is not None else ""
        raise GoalError(
            f'this rule of kind "{rule.kind}" {why} has no trade-off along one threshold to draw; '
            "tune without prove= and with one threshold has"
        )
    if frontier.constraints and not 0 <= constraint < len(frontier.constraints):
        raise GoalError(
            f"constraint={constraint}: the rule has {len(frontier.constraints)}, from 0"
        )
    ax = new_axes(ax)
    y = _floats(frontier.values)
    feasible = np.array(frontier.feasible)
    ax.set_ylabel(frontier.objective)
    ax.grid(alpha=0.25)
    if not frontier.constraints:
        thresholds = np.array(frontier.thresholds)
        shown = np.isfinite(thresholds)
        ax.plot(thresholds[shown], y[shown], linewidth=1.6)
        ax.set_xlabel("threshold")
        if rule.value is not None and np.isfinite(rule.threshold or np.inf):
            ax.plot([rule.threshold], [rule.value], "o", label="rule")
            ax.legend(frameon=False)
        return ax
    x = _floats(frontier.sides[constraint])
    ax.plot(x, y, color="0.65", linewidth=1.2, zorder=1)
    ax.scatter(x[feasible], y[feasible], s=10, label="feasible", zorder=2)
    bound = rule.goal.constraints[constraint]
    if not bound.right.needs():
        value = float(bound.right.read({}).value)
        ax.axvline(value, linestyle="--", linewidth=1, color="0.3", label=str(bound))
    held = rule.held[constraint]
    if held.value is not None and rule.value is not None:
        marker = "o" if rule.feasible else "x"
        name = "rule" if rule.feasible else "nearest (not feasible)"
        ax.plot([held.value], [rule.value], marker, markersize=9, color="black", label=name)
    ax.set_xlabel(str(bound.left))
    ax.legend(frameon=False)
    return ax


def _floats(values: tuple[float | None, ...]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def new_axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure  # a figure of its own: no global state

    return Figure(figsize=(5, 4), layout="constrained").subplots()
