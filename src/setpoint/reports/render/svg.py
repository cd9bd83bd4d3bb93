"""A figure as inline SVG: text as text, ids of its own, a name and a description for everybody.

Drawn with matplotlib's objects, without a window and without its global figure list. The same
record gives the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import Any

from setpoint.reports.render.palette import GRID, INK, QUIET

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "setpoint",
    "text.parse_math": False,  # a dollar sign in a column's name is a dollar sign
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.labelsize": 8.5,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(xlink:href="#|url\(#)([^")]*)')


def drawn(
    name: str,
    title: str,
    words: str,
    draw: Callable[[Any], None],
    size: tuple[float, float] = (4.6, 3.4),
) -> str:
    """Draw on a new figure and give it as an ``<svg>`` element.

    Parameters
    ----------
    name : str
        Unique in the page: the prefix of every id.
    title, words : str
        What the figure is called, and what it shows, for those who do not see it.
    draw : callable
        Takes the matplotlib ``Figure``.
    size : pair of float
        Width and height in inches; on a page the figure takes the width it is given.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator")))
    return _inline(buffer.getvalue(), name, title, words, size)


def _inline(text: str, name: str, title: str, words: str, size: tuple[float, float]) -> str:
    """The drawing without the prologue of a file, its ids under the figure's name."""
    body = text[text.index("<svg") :]
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    used = {reference[1] for tag in _TAG.findall(body) for reference in _REFERENCE.findall(tag)}

    def own(tag: re.Match[str]) -> str:
        renamed = _ID.sub(lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", tag[0])
        renamed = _REFERENCE.sub(lambda m: f"{m[1]}{name}-{m[2]}", renamed)
        return renamed.replace("xlink:href", "href")

    width, height = (72 * x for x in size)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-words">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-words">{escape(words)}</desc>'
        f"{_TAG.sub(own, body).strip()}</svg>"
    )


def shares(axes: Any, which: str = "xy") -> None:
    """Axes of shares: 0 to 1 in percent, with a little air."""
    from matplotlib.ticker import PercentFormatter

    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter in which:
            axis.set_major_formatter(PercentFormatter(1.0, decimals=None))
            set_limits = axes.set_xlim if letter == "x" else axes.set_ylim
            set_limits(-0.02, 1.02)


def beside(axes: Any, **options: Any) -> None:
    """A legend below the axes, so that it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = options.pop("ncols", min(len(handles), 2))
    axes.figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.6, **options
    )


def short(text: str, most: int = 28) -> str:
    """Text that fits a figure."""
    return text if len(text) <= most else text[: most - 1] + "…"
