"""The figures of a report that compare: differences, groups, and what more labels would buy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.json_codec import number, numbers
from setpoint.reports.render.svg import BLUE, INK, QUIET, VERMILION, beside, drawn, shares, short
from setpoint.reports.wording import percent

Record = Mapping[str, Any]
GROUPS = 14  #: groups that are drawn


def comparison_figure(name: str, record: Record, objective: str) -> str:
    """The chosen one minus each other, dot and whisker."""
    gaps = record["differences"]
    told = "; ".join(
        f"minus {d['name']}: {number(d['value']):+.3f} "
        f"[{number(d['low']):+.3f}, {number(d['high']):+.3f}]"
        for d in gaps
    )
    words = f"Difference in {objective} of {record['chosen']}, paired 95% intervals: {told}."

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places = np.arange(len(gaps))[::-1]
        for place, gap in zip(places, gaps, strict=True):
            value, low, high = (number(gap[k]) for k in ("value", "low", "high"))
            axes.plot([low, high], [place, place], color=BLUE, lw=2)
            axes.plot([value], [place], "o", color=BLUE, mec="white", mew=1, ms=8)
            # the name stands above its whisker, so that a long one takes no room from it
            told = f"minus {short(gap['name'], 48)}"
            axes.text(
                0,
                place + 0.24,
                told,
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


def groups_figure(name: str, record: Record, most: int = GROUPS) -> str:
    """Two shares in each group, dot and whisker."""
    wanted = [n for n in ("precision", "recall") if n in record["shares"]] or record["shares"][:1]
    groups = record["groups"][:most]
    told = "; ".join(
        f"{g['value']}: " + ", ".join(f"{n} {_told(g['shares'][n]['value'])}" for n in wanted)
        for g in groups
    )
    words = f"{' and '.join(wanted)} by {record['column']}: {told}."

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places = np.arange(len(groups))[::-1].astype(float)
        styles = (("o", BLUE, 0.14), ("s", VERMILION, -0.14))
        for metric, (marker, color, shift) in zip(wanted, styles, strict=False):
            shift = shift if len(wanted) > 1 else 0.0
            label = metric
            for place, group in zip(places, groups, strict=True):
                share = group["shares"][metric]
                value, low, high = (number(share[k]) for k in ("value", "low", "high"))
                if not np.isfinite(value):
                    continue
                at = place + shift
                axes.plot([low, high], [at, at], color=color, lw=1.6)
                axes.plot([value], [at], marker, color=color, mec="white", mew=0.8, ms=7,
                          ls="none", label=label)  # fmt: skip
                label = "_nolegend_"
        names = [short(g["value"], 24) + (" *" if g["small"] else "") for g in groups]
        axes.set_yticks(places, names)
        axes.set_ylim(-0.6, len(groups) - 0.4)
        axes.grid(visible=False, axis="y")
        shares(axes, "x")
        beside(axes)

    return drawn(name, f"By {record['column']}", words, draw, (4.6, 1.1 + 0.34 * len(groups)))


def classes_figure(name: str, record: Record) -> str:
    """Recall and precision of each class, dot and whisker."""
    shares = ("precision", "recall")
    groups = [
        {"value": k["name"], "small": False, "shares": {n: k[n] for n in shares}}
        for k in record["classes"]
    ]
    word = "label" if record["kind"] == "multilabel" else "class"
    return groups_figure(name, {"column": word, "shares": list(shares), "groups": groups}, 30)


def _told(value: Any) -> str:
    return "empty" if value is None else percent(number(value))


def options_figure(name: str, record: Record) -> str:
    """The objective that so many fresh labels would prove."""
    options = record["options"]
    rows, values = numbers([o["rows"] for o in options]), numbers([o["value"] for o in options])
    objective = record["objective"]
    words = f"{objective} that fresh labelled rows would prove: " + "; ".join(
        f"{int(n):,} rows: {v:.3f}" for n, v in zip(rows, values, strict=True)
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


def bounds_figure(name: str, need: Record, plan: Record) -> str:
    """How the provable bound of one limit moves with the number of fresh labels."""
    pairs = need["bounds"]
    rows, values = numbers([p[0] for p in pairs]), numbers([p[1] for p in pairs])
    words = f"{need['sentence']}. Provable: " + "; ".join(
        f"{int(n):,} rows: {v:.3f}" for n, v in zip(rows, values, strict=True)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(rows, values, "o-", color=BLUE, ms=4, lw=1.6, label="provable")
        if need["value"] is not None:
            axes.axhline(number(need["value"]), color=QUIET, lw=1, label="on the rows at hand")
        if need["asked"] is not None:
            axes.axhline(
                number(need["asked"]), color=INK, lw=1.2, ls=(0, (4, 3)), label="what was asked"
            )
        if need["rows"] is not None:
            axes.axvline(number(need["rows"]), color=VERMILION, lw=1.2, ls=(0, (1, 2)),
                         label=f"{need['rows']:,} rows")  # fmt: skip
        axes.set_xscale("log")
        _thousands(axes)
        axes.set_xlabel("fresh labelled rows")
        axes.set_ylabel(f"provable {short(need['metric'], 32)}")
        beside(axes)

    return drawn(name, f"Labels and the proof of {need['metric']}", words, draw)


def _thousands(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _rounded(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _rounded(x: float) -> str:
    if x >= 1e6:
        return f"{x / 1e6:g}M"
    return f"{x / 1e3:g}k" if x >= 1e3 else f"{x:g}"
