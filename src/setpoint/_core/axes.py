"""Axes to draw on. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from typing import Any


def new_axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure  # a figure of its own: no global state

    return Figure(figsize=(5, 4), layout="constrained").subplots()
