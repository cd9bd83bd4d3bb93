"""Figures that compare: contenders, groups, classes, and what more labels would buy."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.reports.render.palette import BLUE, INK, QUIET, VERMILION
from setpoint.reports.render.svg import beside, drawn, shares, short
from setpoint.reports.sections.confusion import (
    CLASSES,
    MulticlassConfusion,
    MultilabelConfusion,
    ShareOfRows,
)
from setpoint.reports.sections.groups import FEW, GroupShares, GroupTable
from setpoint.reports.sections.summaries import ComparisonSummary, NeedSummary, PlanSummary
from setpoint.reports.wording import percent

GROUPS = 14  #: groups that are drawn, the largest; the table has more


def comparison_figure(name: str, comparison: ComparisonSummary, objective: str) -> str:
    """The chosen one minus each other, dot and whisker."""
    gaps = comparison.differences
    listed = "; ".join(
        f"minus {d.name}: {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}]" for d in gaps
    )
    words = f"Difference in {objective} of {comparison.chosen}, paired 95% intervals: {listed}."

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places = np.arange(len(gaps))[::-1]
        for place, gap in zip(places, gaps, strict=True):
            axes.plot([gap.low, gap.high], [place, place], color=BLUE, lw=2)
            axes.plot([gap.value], [place], "o", color=BLUE, mec="white", mew=1, ms=8)
            # the name stands above its whisker, so that a long one takes no room from it
            axes.text(
                0,
                place + 0.24,
                f"minus {short(gap.name, 48)}",
                transform=axes.get_yaxis_transform(),
                va="bottom",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                zorder=3,
            )
        axes.axvline(0, color=INK, lw=1.1)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-0.5, len(gaps) - 0.25)
        axes.set_xlabel(f"difference in {short(objective, 40)}")
        axes.margins(x=0.12)
        axes.locator_params(axis="x", nbins=6)

    height = 0.75 + 0.5 * max(len(gaps), 1)
    return drawn(name, "What was bought over the others", words, draw, (4.6, height))


def groups_figure(name: str, table: GroupTable, most: int = GROUPS) -> str:
    """Two shares in each group, dot and whisker."""
    metrics = [n for n in ("precision", "recall") if n in table.shares] or table.shares[:1]
    groups = table.groups[:most]
    listed = "; ".join(
        f"{g.value}: " + ", ".join(f"{n} {_share(g.shares[n])}" for n in metrics) for g in groups
    )
    words = f"{' and '.join(metrics)} by {table.column}: {listed}."

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places = np.arange(len(groups))[::-1].astype(float)
        styles = (("o", BLUE, 0.14), ("s", VERMILION, -0.14))
        for metric, (marker, color, shift) in zip(metrics, styles, strict=False):
            shift = shift if len(metrics) > 1 else 0.0
            label = metric
            for place, group in zip(places, groups, strict=True):
                share = group.shares[metric]
                if share.value is None:
                    continue
                at = place + shift
                axes.plot([share.low, share.high], [at, at], color=color, lw=1.6)
                axes.plot([share.value], [at], marker, color=color, mec="white", mew=0.8, ms=7,
                          ls="none", label=label)  # fmt: skip
                label = "_nolegend_"
        names = [short(g.value, 24) + (" *" if g.small else "") for g in groups]
        axes.set_yticks(places, names)
        axes.set_ylim(-0.6, len(groups) - 0.4)
        axes.grid(visible=False, axis="y")
        shares(axes, "x")
        beside(axes)

    return drawn(name, f"By {table.column}", words, draw, (4.6, 1.1 + 0.34 * len(groups)))


def classes_figure(name: str, confusion: MulticlassConfusion | MultilabelConfusion) -> str:
    """Recall and precision of each class, dot and whisker."""
    groups = tuple(
        GroupShares(
            value=one.name,
            rows=one.rows,
            positives=None,
            shares={"precision": one.precision, "recall": one.recall},
            small=False,
        )
        for one in confusion.classes
    )
    word = "label" if isinstance(confusion, MultilabelConfusion) else "class"
    table = GroupTable(word, ("precision", "recall"), groups, left_out=0, few=FEW)
    return groups_figure(name, table, CLASSES)


def _share(share: ShareOfRows) -> str:
    return "empty" if share.value is None else percent(share.value)


def options_figure(name: str, plan: PlanSummary) -> str:
    """The objective that so many fresh labels would prove."""
    rows = [option.rows for option in plan.options]
    values = [np.nan if option.value is None else option.value for option in plan.options]
    objective = plan.objective
    words = f"{objective} that fresh labelled rows would prove: " + "; ".join(
        f"{n:,} rows: {v:.3f}" for n, v in zip(rows, values, strict=True)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.step(rows, values, where="post", color=BLUE, lw=1.4)
        axes.plot(rows, values, "o", color=BLUE, mec="white", mew=0.8, ms=6)
        axes.set_xscale("log")
        _thousands(axes)
        axes.set_xlabel("fresh labelled rows")
        axes.set_ylabel(f"{short(objective, 30)} within reach")
        axes.margins(x=0.08, y=0.15)

    return drawn(name, "What more labels would buy", words, draw)


def bounds_figure(name: str, need: NeedSummary) -> str:
    """The provable bound of one limit against the number of fresh labels."""
    rows = [rows for rows, _ in need.bounds]
    values = [bound for _, bound in need.bounds]
    words = f"{need.sentence}. Provable: " + "; ".join(
        f"{n:,} rows: {v:.3f}" for n, v in zip(rows, values, strict=True)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(rows, values, "o-", color=BLUE, ms=4, lw=1.6, label="provable")
        if need.value is not None:
            axes.axhline(need.value, color=QUIET, lw=1, label="on the rows at hand")
        if need.asked is not None:
            axes.axhline(need.asked, color=INK, lw=1.2, ls=(0, (4, 3)), label="what was asked")
        if need.rows is not None:
            label = f"{need.rows:,} rows"
            axes.axvline(need.rows, color=VERMILION, lw=1.2, ls=(0, (1, 2)), label=label)
        axes.set_xscale("log")
        _thousands(axes)
        axes.set_xlabel("fresh labelled rows")
        axes.set_ylabel(f"provable {short(need.metric, 32)}")
        beside(axes)

    return drawn(name, f"Labels and the proof of {need.metric}", words, draw)


def _thousands(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _rounded(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _rounded(x: float) -> str:
    if x >= 1e6:
        return f"{x / 1e6:g}M"
    return f"{x / 1e3:g}k" if x >= 1e3 else f"{x:g}"
