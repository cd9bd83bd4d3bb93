"""The figures of a report about its scores: trade-off, precision–recall, ROC, spread, calibration.

Each takes its part of the record and gives an ``<svg>`` element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.json_codec import number, numbers
from setpoint.reports.render.svg import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    QUIET,
    SKY,
    VERMILION,
    beside,
    drawn,
    shares,
    short,
)
from setpoint.reports.wording import percent, signed

Record = Mapping[str, Any]
_LINES = {"certify": (BLUE, "-"), "out-of-fold": (QUIET, "--")}
_MARKS = ("s", "^", "D", "v", "P", "X", "*")
_TONES = (ORANGE, PURPLE, GREEN, SKY, VERMILION, QUIET, INK)
WIDE = (4.9, 3.3)


def tradeoff_figure(name: str, panel: Record, objective: str, sense: str, main: str) -> str:
    """The objective against a limited metric, with the rule, its intervals and the baselines."""
    bound, point = panel["bound"], panel["point"]
    words = [f"{objective} against {panel['x']}."]
    if bound is not None:
        words.append(f"The limit is {signed(panel['limit'])}.")
    if point is not None:
        words.append(
            f"The rule stands at {panel['x']} {number(point['x']):.3f} and {objective} "
            f"{number(point['y']):.3f} on the {main} rows."
        )
    words += [
        f"{other['name']}: {panel['x']} {number(other['x']):.3f}, {objective} "
        f"{number(other['y']):.3f}."
        for other in panel["others"]
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        _bound(axes, panel)
        for curve in panel["curves"]:
            color, style = _LINES.get(curve["name"], (PURPLE, ":"))
            x, y = numbers(curve["x"]), numbers(curve["y"])
            axes.plot(
                x, y, style, color=color, lw=1.8, label=f"{curve['name']} rows, all thresholds"
            )
        _others(axes, panel["others"])
        if point is not None:
            _rule(axes, point, main)
        axes.set_xlabel(short(panel["x"], 60))
        axes.set_ylabel(short(objective, 40))
        _span(axes, panel)
        beside(axes, ncols=2)

    title = f"Trade-off of {objective} and {panel['x']}"
    entries = len(panel["curves"]) + len(panel["others"]) + 2
    size = (WIDE[0], WIDE[1] + 0.09 * entries)  # room for the legend
    return drawn(name, title, " ".join(words), draw, size)


def _bound(axes: Any, panel: Record) -> None:
    if panel["bound"] is None:
        return
    bound = number(panel["bound"])
    axes.axvline(bound, color=INK, lw=1.2, ls=(0, (4, 3)), label=short(signed(panel["limit"]), 36))


def _shade(axes: Any, panel: Record) -> None:
    """Grey where the limit is broken; drawn last, when the span of the axes is known."""
    if panel["bound"] is None or panel["op"] == "==":
        return
    bound, (low, high) = number(panel["bound"]), axes.get_xlim()
    ends = (low, bound) if panel["op"] == ">=" else (bound, high)
    axes.axvspan(*ends, color="#8a97a3", alpha=0.13, lw=0, zorder=0)
    axes.set_xlim(low, high)


def _span(axes: Any, panel: Record) -> None:
    """Limits of the axes: shares from 0 to 1, narrowed to the bound where it is near an end."""
    curves = [numbers(c[k]) for c in panel["curves"] for k in ("x", "y")]
    dots = [number(o[k]) for o in panel["others"] for k in ("x", "y")]
    seen = np.concatenate([*curves, np.array(dots, float), np.zeros(1)])
    seen = seen[np.isfinite(seen)]
    if seen.size and seen.min() >= 0 and seen.max() <= 1:
        shares(axes)
    bound = number(panel["bound"])
    if panel["op"] == "<=" and 0 < bound < 0.25:  # a small allowance: what lies beyond is dull
        ends = [bound * 4, *(1.15 * number(o["x"]) for o in panel["others"])]
        if panel["point"] is not None:
            ends.append(1.15 * number(panel["point"]["x_high"] or panel["point"]["x"]))
        axes.set_xlim(-0.02 * max(ends), min(max(ends), 1.02))
    _shade(axes, panel)


def _others(axes: Any, others: Any) -> None:
    for i, other in enumerate(others):
        color = BLUE if other["chosen"] else _TONES[i % len(_TONES)]
        face = "none" if other["chosen"] else color
        label = short(other["name"], 36)
        marker = "o" if other["chosen"] else _MARKS[i % len(_MARKS)]
        axes.plot(
            [number(other["x"])],
            [number(other["y"])],
            marker,
            color=color,
            mfc=face,
            mec=color,
            mew=1.6,
            ms=7,
            ls="none",
            label=label,
            zorder=4,
        )


def _rule(axes: Any, point: Record, main: str) -> None:
    from matplotlib.patches import Rectangle

    x, y = number(point["x"]), number(point["y"])
    ends = [number(point[k]) for k in ("x_low", "x_high", "y_low", "y_high")]
    left, right, low, high = (
        v if np.isfinite(v) else w for v, w in zip(ends, (x, x, y, y), strict=True)
    )
    axes.add_patch(
        Rectangle((left, low), right - left, high - low, fc=BLUE, ec=BLUE, alpha=0.16, lw=0)
    )
    axes.plot([left, right], [y, y], color=BLUE, lw=1.3, zorder=5)
    axes.plot([x, x], [low, high], color=BLUE, lw=1.3, zorder=5)
    label = f"the rule, {main} rows, 95% intervals"
    axes.plot([x], [y], "o", color=BLUE, mec="white", mew=1.2, ms=9, label=label, zorder=6)


def pr_figure(name: str, record: Record, point: Record | None, main: str) -> str:
    """Precision against recall with its band."""
    pr, share = record["pr"], number(record["prevalence"])
    words = _curve_words("Precision against recall", main, point, "recall", "precision")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        x = numbers(pr["x"])
        low, high = numbers(pr["low"]), numbers(pr["high"])
        axes.fill_between(x, low, high, color=BLUE, alpha=0.18, lw=0, label="95% band, pointwise")
        axes.plot(x, numbers(pr["y"]), color=BLUE, label=f"{main} rows")
        axes.axhline(share, color=QUIET, lw=1, ls=(0, (4, 3)), label=f"flag all: {percent(share)}")
        _dot(axes, point)
        axes.set_xlabel("recall: share of the positives found")
        axes.set_ylabel("precision")
        shares(axes)
        beside(axes)

    return drawn(name, "Precision and recall", words, draw)


def roc_figure(name: str, record: Record, point: Record | None, main: str) -> str:
    """Recall against FPR with its band."""
    roc = record["roc"]
    words = _curve_words("Recall against the false positive rate", main, point, "fpr", "recall")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        xs = np.r_[numbers(roc["high_x"]), numbers(roc["low_x"])[::-1]]
        ys = np.r_[numbers(roc["high_y"]), numbers(roc["low_y"])[::-1]]
        axes.fill(xs, ys, color=BLUE, alpha=0.18, lw=0, label="95% band, pointwise")
        axes.plot(numbers(roc["x"]), numbers(roc["y"]), color=BLUE, label=f"{main} rows")
        axes.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=(0, (4, 3)), label="by chance")
        _dot(axes, point)
        axes.set_xlabel("FPR: share of the others flagged")
        axes.set_ylabel("recall")
        shares(axes)
        beside(axes)

    return drawn(name, "ROC curve", words, draw)


def _curve_words(what: str, main: str, point: Record | None, x: str, y: str) -> str:
    where = ""
    if point is not None:
        where = f" The rule stands at {x} {number(point['x']):.3f}, {y} {number(point['y']):.3f}."
    return f"{what} at every threshold, on the {main} rows, with a 95% band.{where}"


def _dot(axes: Any, point: Record | None) -> None:
    if point is not None:
        x, y = number(point["x"]), number(point["y"])
        axes.plot([x], [y], "o", color=INK, mec="white", mew=1.2, ms=8, ls="none", label="the rule")


def distribution_figure(name: str, record: Record, named: str) -> str:
    """How the scores of either class are spread, with the threshold."""
    edges, cuts = numbers(record["edges"]), [number(t) for t in record["cuts"]]
    told = ", ".join(f"{t:.4g}" for t in cuts[:4]) or "none that is finite"
    words = f"Histograms of the scores of both classes, each scaled to itself. Threshold: {told}."

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        sides = ((above, "positive", VERMILION, named), (below, "other", BLUE, "all others"))
        for axes, key, color, label in sides:
            axes.stairs(numbers(record[key]), edges, fill=True, color=color, alpha=0.75)
            axes.set_title(short(label, 44), loc="left", fontsize=8.5, color=INK)
            axes.yaxis.set_major_formatter(_percents())
            axes.locator_params(axis="y", nbins=3)
            axes.grid(visible=False, axis="x")
            for t in cuts[:8]:
                axes.axvline(t, color=INK, lw=1.2, ls=(0, (4, 3)))
            if len(cuts) == 1:
                axes.axvspan(cuts[0], edges[-1], color=INK, alpha=0.06, lw=0, zorder=0)
        below.set_xlabel("score")
        figure.supylabel("share of the class", fontsize=8.5, color=INK)

    return drawn(name, "How the scores are spread", words, draw)


def _percents() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=None)


def calibration_figure(name: str, record: Record) -> str:
    """Share of positives by score, with intervals."""
    x, y = numbers(record["x"]), numbers(record["y"])
    low, high = numbers(record["low"]), numbers(record["high"])
    words = "Share of positives in groups of rows with similar scores: " + ", ".join(
        f"score {a:.3g}: {percent(b)}" for a, b in zip(x, y, strict=True)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if record["probability"]:
            axes.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=(0, (4, 3)), label="as promised")
        spread = np.clip([y - low, high - y], 0, None)
        axes.errorbar(
            x, y, yerr=spread, fmt="o-", color=BLUE, ms=5, lw=1.2, elinewidth=1.2,
            label="seen, with 95% intervals",
        )  # fmt: skip
        axes.set_xlabel("mean score of the group")
        axes.set_ylabel("share of positives")
        shares(axes, "xy" if record["probability"] else "y")
        beside(axes)

    return drawn(name, "Calibration", words, draw)
