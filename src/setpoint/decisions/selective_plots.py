"""The plot of risk against coverage. Matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint.decisions.plots import new_axes
from setpoint.decisions.risk_coverage import RiskCoverage


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
