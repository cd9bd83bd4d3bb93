"""Plots of plans and monitors. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

import math
from typing import Any

from setpoint._core.errors import GoalError, KindError
from setpoint.decisions.monitor import Monitor
from setpoint.decisions.plan import Plan
from setpoint.decisions.plots import new_axes


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
    if not asked.right.needs():
        bound = float(asked.right.read({}).value)
        ax.axhline(bound, linestyle="--", linewidth=1, color="0.3", label=str(asked))
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
