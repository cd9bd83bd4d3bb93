"""Plots of curves and trade-offs. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.axes import new_axes
from setpoint._core.errors import GoalError, KindError
from setpoint.decisions.curves import MetricCurve
from setpoint.decisions.monitor import Monitor
from setpoint.decisions.plan import Plan
from setpoint.decisions.risk_coverage import RiskCoverage
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
    limit = rule.goal.constraints[constraint]
    if limit.number is not None:
        ax.axvline(limit.number, linestyle="--", linewidth=1, color="0.3", label=str(limit))
    held = rule.held[constraint]
    if held.value is not None and rule.value is not None:
        marker = "o" if rule.feasible else "x"
        name = "rule" if rule.feasible else "nearest (not feasible)"
        ax.plot([held.value], [rule.value], marker, markersize=9, color="black", label=name)
    ax.set_xlabel(str(limit.left))
    ax.legend(frameon=False)
    return ax


def _floats(values: tuple[float | None, ...]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


# Plots of plans and monitors. Matplotlib is imported when something is drawn, not before.


def plot_plan(plan: Plan, constraint: int = 0, ax: Any = None) -> Any:
    """Draw how the provable bound of one constraint moves with the number of fresh labelled rows.

    Parameters
    ----------
    plan : Plan
        From ``sp.plan``.
    constraint : int
        Which constraint.
    ax : matplotlib axes, optional
        A new figure's without it.
    """
    if not isinstance(plan, Plan):
        raise KindError(f"a Plan is needed, from sp.plan; got {plan!r}")
    if not 0 <= constraint < len(plan.needs):
        raise GoalError(f"constraint={constraint}: the goal has {len(plan.needs)}, from 0")
    need, asked = plan.needs[constraint], plan.goal.constraints[constraint]
    ax = new_axes(ax)
    known = [(n, bound) for n, bound in need.bounds if bound is not None]
    if known:
        rows, values = zip(*known, strict=True)
        ax.plot(rows, values, marker="o", markersize=3, linewidth=1.6, label="provable")
    if need.value is not None:
        ax.axhline(need.value, linewidth=1, color="0.65", label="on these rows")
    if asked.number is not None:
        ax.axhline(asked.number, linestyle="--", linewidth=1, color="0.3", label=str(asked))
    if need.rows is not None:
        ax.axvline(need.rows, linestyle=":", linewidth=1, color="0.3", label=f"{need.rows:,} rows")
    ax.set_xscale("log")
    ax.set_xlabel(f"fresh labelled rows ({plan.confidence:.0%} confidence, power {plan.power:g})")
    ax.set_ylabel(str(asked.left))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax


def plot_monitor(monitor: Monitor, ax: Any = None) -> Any:
    """Draw the evidence against the promise over the rows fed, with the line at which it is broken.

    Parameters
    ----------
    monitor : Monitor
    ax : matplotlib axes, optional
        A new figure's without it.
    """
    if not isinstance(monitor, Monitor):
        raise KindError(f"a Monitor is needed; got {monitor!r}")
    ax = new_axes(ax)
    if monitor.trace:
        rows, evidence = zip(*monitor.trace, strict=True)
        ax.plot(rows, [e / math.log(10) for e in evidence], linewidth=1.6, label="evidence")
    limit = monitor.limit / math.log(10)
    ax.axhline(limit, linestyle="--", linewidth=1, color="0.3", label="broken from here")
    if monitor.alarm is not None:
        ax.axvline(
            monitor.alarm, linestyle=":", linewidth=1, color="0.3", label=f"row {monitor.alarm:,}"
        )
    ax.set_xlabel("labelled rows since the certificate")
    ax.set_ylabel("evidence against the promise (powers of ten)")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax


# The plot of risk against coverage. Matplotlib is imported when something is drawn.


def plot_risk_coverage(
    curve: RiskCoverage | Mapping[str, RiskCoverage], ax: Any = None, **style: Any
) -> Any:
    """Draw selective risk against coverage; returns the matplotlib axes.

    Parameters
    ----------
    curve : RiskCoverage or mapping of str to RiskCoverage
        From ``risk_coverage``. Of a mapping each curve is drawn and its name put into a legend;
        ``{"confidence": curve, "best order": curve.best}`` shows what is left to gain.
    ax : matplotlib axes, optional
        A new figure's without it.
    **style
        Passed to ``ax.plot``.
    """
    curves = curve if isinstance(curve, Mapping) else {"": curve}
    for name, one in curves.items():
        if not isinstance(one, RiskCoverage):
            raise KindError(
                "a curve is needed, from risk_coverage, or a mapping of names to curves; got "
                f"{one!r}" + (f" for {name!r}" if name else "")
            )
    if not curves:
        raise KindError("an empty mapping has no curve to draw; give at least one name and curve")
    ax = new_axes(ax)
    for name, one in curves.items():
        # Where many rows are tied the curve bends between two thresholds: a fine grid shows it.
        x = np.union1d(one.coverages, np.linspace(one.coverages[0], 1, 201))
        label = {"label": str(name)} if name else {}
        ax.plot(x, one.risk_at(x), **{"linewidth": 1.6, **label, **style})
    ax.set_xlabel("coverage")
    ax.set_ylabel("selective risk")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25)
    if isinstance(curve, Mapping):
        ax.legend(frameon=False)
    return ax
