"""Figures of the scores: trade-off, precision–recall, ROC, distribution, calibration.

Each takes a section of the report and gives an ``<svg>`` element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.reports.render.palette import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    QUIET,
    SHADE,
    SKY,
    VERMILION,
)
from setpoint.reports.render.svg import beside, drawn, shares, short
from setpoint.reports.sections.score_distribution import Reliability, ScoreDistribution
from setpoint.reports.sections.threshold_curves import RocBand, ThresholdCurves
from setpoint.reports.sections.tradeoff import ContenderPoint, RulePoint, TradeoffPanel
from setpoint.reports.wording import percent, signed

_LINES = {"certify": (BLUE, "-"), "out-of-fold": (QUIET, "--")}
_MARKS = ("s", "^", "D", "v", "P", "X", "*")
_TONES = (ORANGE, PURPLE, GREEN, SKY, VERMILION, QUIET, INK)
WIDE = (4.9, 3.3)  # inches, for a figure that stands alone in its row
SMALL_ALLOWANCE = 0.25  # a bound below it gets an axis that ends near it: what lies beyond is dull
LABELLED_CUTS = 4  # thresholds named in the words of a figure
DRAWN_CUTS = 8  # thresholds drawn as lines


def tradeoff_figure(name: str, panel: TradeoffPanel, objective: str, main: str) -> str:
    """The objective against a limited metric, with the rule, its intervals and the baselines."""
    point = panel.point
    words = [f"{objective} against {panel.x}."]
    if panel.limit is not None:
        words.append(f"The limit is {signed(panel.limit)}.")
    if point is not None:
        words.append(
            f"The rule stands at {panel.x} {point.x:.3f} and {objective} {point.y:.3f} on the "
            f"{main} rows."
        )
    words += [
        f"{other.name}: {panel.x} {other.x:.3f}, {objective} {other.y:.3f}."
        for other in panel.others
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        _bound(axes, panel)
        for curve in panel.curves:
            color, style = _LINES.get(curve.name, (PURPLE, ":"))
            label = f"{curve.name} rows, all thresholds"
            axes.plot(curve.x, curve.y, style, color=color, lw=1.8, label=label)
        _others(axes, panel.others)
        if point is not None:
            _rule(axes, point, main)
        axes.set_xlabel(short(panel.x, 60))
        axes.set_ylabel(short(objective, 40))
        _span(axes, panel)
        beside(axes, ncols=2)

    title = f"Trade-off of {objective} and {panel.x}"
    entries = len(panel.curves) + len(panel.others) + 2
    size = (WIDE[0], WIDE[1] + 0.09 * entries)  # room for the legend
    return drawn(name, title, " ".join(words), draw, size)


def _bound(axes: Any, panel: TradeoffPanel) -> None:
    if panel.bound is None or panel.limit is None:
        return
    label = short(signed(panel.limit), 36)
    axes.axvline(panel.bound, color=INK, lw=1.2, ls=(0, (4, 3)), label=label)


def _shade(axes: Any, panel: TradeoffPanel) -> None:
    """Grey where the limit is broken; drawn last, when the span of the axes is known."""
    if panel.bound is None or panel.op == "==":
        return
    low, high = axes.get_xlim()
    ends = (low, panel.bound) if panel.op == ">=" else (panel.bound, high)
    axes.axvspan(*ends, color=SHADE, alpha=0.13, lw=0, zorder=0)
    axes.set_xlim(low, high)


def _span(axes: Any, panel: TradeoffPanel) -> None:
    """Limits of the axes: shares from 0 to 1, narrowed to the bound where it is near an end."""
    curves = [values for curve in panel.curves for values in (curve.x, curve.y)]
    dots = [value for other in panel.others for value in (other.x, other.y)]
    values = np.concatenate([*curves, np.array(dots, float), np.zeros(1)])
    values = values[np.isfinite(values)]
    if values.min() >= 0 and values.max() <= 1:
        shares(axes)
    if panel.op == "<=" and panel.bound is not None and 0 < panel.bound < SMALL_ALLOWANCE:
        ends = [panel.bound * 4, *(1.15 * other.x for other in panel.others)]
        if panel.point is not None:
            ends.append(1.15 * (panel.point.x_high or panel.point.x))
        axes.set_xlim(-0.02 * max(ends), min(max(ends), 1.02))
    _shade(axes, panel)


def _others(axes: Any, others: Sequence[ContenderPoint]) -> None:
    for i, other in enumerate(others):
        color = BLUE if other.chosen else _TONES[i % len(_TONES)]
        face = "none" if other.chosen else color
        label = short(other.name, 36)
        marker = "o" if other.chosen else _MARKS[i % len(_MARKS)]
        axes.plot(
            [other.x],
            [other.y],
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


def _rule(axes: Any, point: RulePoint, main: str) -> None:
    from matplotlib.patches import Rectangle

    x = point.x
    y = point.y
    ends = ((point.x_low, x), (point.x_high, x), (point.y_low, y), (point.y_high, y))
    left, right, low, high = (
        end if end is not None and np.isfinite(end) else at for end, at in ends
    )
    axes.add_patch(
        Rectangle((left, low), right - left, high - low, fc=BLUE, ec=BLUE, alpha=0.16, lw=0)
    )
    axes.plot([left, right], [y, y], color=BLUE, lw=1.3, zorder=5)
    axes.plot([x, x], [low, high], color=BLUE, lw=1.3, zorder=5)
    label = f"the rule, {main} rows, 95% intervals"
    axes.plot([x], [y], "o", color=BLUE, mec="white", mew=1.2, ms=9, label=label, zorder=6)


def pr_figure(
    name: str, curves: ThresholdCurves, point: tuple[float, float] | None, main: str
) -> str:
    """Precision against recall with its band."""
    pr = curves.pr
    share = curves.prevalence
    words = _curve_words("Precision against recall", main, point, "recall", "precision")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        label = "95% band, pointwise"
        axes.fill_between(pr.x, pr.low, pr.high, color=BLUE, alpha=0.18, lw=0, label=label)
        axes.plot(pr.x, pr.y, color=BLUE, label=f"{main} rows")
        axes.axhline(share, color=QUIET, lw=1, ls=(0, (4, 3)), label=f"flag all: {percent(share)}")
        _dot(axes, point)
        axes.set_xlabel("recall: share of the positives found")
        axes.set_ylabel("precision")
        shares(axes)
        beside(axes)

    return drawn(name, "Precision and recall", words, draw)


def roc_figure(name: str, roc: RocBand, point: tuple[float, float] | None, main: str) -> str:
    """Recall against FPR with its band."""
    words = _curve_words("Recall against the false positive rate", main, point, "fpr", "recall")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        xs = np.r_[roc.high_x, roc.low_x[::-1]]
        ys = np.r_[roc.high_y, roc.low_y[::-1]]
        axes.fill(xs, ys, color=BLUE, alpha=0.18, lw=0, label="95% band, pointwise")
        axes.plot(roc.x, roc.y, color=BLUE, label=f"{main} rows")
        axes.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=(0, (4, 3)), label="by chance")
        _dot(axes, point)
        axes.set_xlabel("FPR: share of the others flagged")
        axes.set_ylabel("recall")
        shares(axes)
        beside(axes)

    return drawn(name, "ROC curve", words, draw)


def _curve_words(what: str, main: str, point: tuple[float, float] | None, x: str, y: str) -> str:
    where = ""
    if point is not None:
        where = f" The rule stands at {x} {point[0]:.3f}, {y} {point[1]:.3f}."
    return f"{what} at every threshold, on the {main} rows, with a 95% band.{where}"


def _dot(axes: Any, point: tuple[float, float] | None) -> None:
    if point is not None:
        x, y = point
        axes.plot([x], [y], "o", color=INK, mec="white", mew=1.2, ms=8, ls="none", label="the rule")


def distribution_figure(name: str, scores: ScoreDistribution, named: str) -> str:
    """Histograms of the scores of either class, with the threshold."""
    cuts = scores.cuts
    labels = ", ".join(f"{t:.4g}" for t in cuts[:LABELLED_CUTS]) or "none that is finite"
    words = f"Histograms of the scores of both classes, each scaled to itself. Threshold: {labels}."

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        sides = (
            (above, scores.positive, VERMILION, named),
            (below, scores.other, BLUE, "all others"),
        )
        for axes, heights, color, label in sides:
            axes.stairs(heights, scores.edges, fill=True, color=color, alpha=0.75)
            axes.set_title(short(label, 44), loc="left", fontsize=8.5, color=INK)
            axes.yaxis.set_major_formatter(_percents())
            axes.locator_params(axis="y", nbins=3)
            axes.grid(visible=False, axis="x")
            for t in cuts[:DRAWN_CUTS]:
                axes.axvline(t, color=INK, lw=1.2, ls=(0, (4, 3)))
            if len(cuts) == 1:
                axes.axvspan(cuts[0], scores.edges[-1], color=INK, alpha=0.06, lw=0, zorder=0)
        below.set_xlabel("score")
        figure.supylabel("share of the class", fontsize=8.5, color=INK)

    return drawn(name, "How the scores are spread", words, draw)


def _percents() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=None)


def calibration_figure(name: str, groups: Reliability) -> str:
    """Share of positives by score, with intervals."""
    x = groups.x
    y = groups.y
    words = "Share of positives in groups of rows with similar scores: " + ", ".join(
        f"score {a:.3g}: {percent(b)}" for a, b in zip(x, y, strict=True)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if groups.probability:
            axes.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=(0, (4, 3)), label="as promised")
        spread = np.clip([y - groups.low, groups.high - y], 0, None)
        axes.errorbar(
            x, y, yerr=spread, fmt="o-", color=BLUE, ms=5, lw=1.2, elinewidth=1.2,
            label="seen, with 95% intervals",
        )  # fmt: skip
        axes.set_xlabel("mean score of the group")
        axes.set_ylabel("share of positives")
        shares(axes, "xy" if groups.probability else "y")
        beside(axes)

    return drawn(name, "Calibration", words, draw)
