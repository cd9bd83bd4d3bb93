"""Plots of an evaluation. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint.decisions.plots import new_axes
from setpoint.robustness.attack_outcomes import Level


def plot_accuracy(
    curve: Sequence[Level], levels: Sequence[Level], distance: str, ax: Any = None
) -> Any:
    """Draw the share of images that is left over eps, with its interval; gives the figure.

    Parameters
    ----------
    curve : sequence of Level
        The least eps first.
    levels : sequence of Level
        The radii that were asked for, marked.
    distance : str
        Its name.
    ax : matplotlib axes, optional
        A new figure's without it.
    """
    ax = new_axes(ax)
    x = [level.eps for level in curve]
    low, high = zip(*(level.interval for level in curve), strict=True)
    percent = f"{100 * curve[0].confidence:g}%"
    ax.fill_between(x, low, high, step="post", alpha=0.18, linewidth=0, label=f"{percent} interval")
    ax.step(x, [level.accuracy for level in curve], where="post", linewidth=1.6, label="left")
    ax.plot(
        [level.eps for level in levels],
        [level.accuracy for level in levels],
        "o",
        color="black",
        markersize=5,
        label="attacked at",
    )
    ax.set_xlabel(f"eps ({distance})")
    ax.set_ylabel("robust accuracy, at most")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax.figure


def plot_radii(columns: Mapping[str, np.ndarray], distance: str, ax: Any = None) -> Any:
    """Draw the least distances that were found as a histogram; gives the figure.

    Images wrong from the start are not drawn, nor those without a success; the title counts them.
    """
    ax = new_axes(ax)
    radius, right = columns["radius"], columns["correct"]
    shown = radius[right & np.isfinite(radius)]
    if len(shown):
        ax.hist(shown, bins=min(40, max(8, round(len(shown) ** 0.5))), alpha=0.85)
        middle = float(np.median(shown))
        ax.axvline(middle, linestyle="--", linewidth=1, color="0.3", label=f"median {middle:.3g}")
        ax.legend(frameon=False)
    beyond = int((right & np.isinf(radius)).sum())
    wrong = int((~right).sum())
    counts = f"{len(shown):,} beaten, {beyond:,} without a success, {wrong:,} wrong before"
    ax.set_title(counts, fontsize="small")
    ax.set_xlabel(f"least {distance} found")
    ax.set_ylabel("images")
    ax.grid(alpha=0.25)
    return ax.figure
