"""Noise: kinds and levels by ways and what they were told; words computed from the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.restoration import noise
from benchmarks.restoration.judging import SURE, difference, mean_and_error
from benchmarks.restoration.ways import WAYS
from benchmarks.results.figures import table
from benchmarks.results.recording import Recording

KINDS = {
    "gaussian": "Gaussian, σ = {:g}",
    "impulse": "impulses, {:.0%} of the pixels",
    "shot": "shot, {:g} photons",
    "speckle": "speckle, σ = {:g}",
}
ABOUT = (
    "mnist test images, inpainting with 70 % hidden, the settings of the table, nothing retuned. "
    "“Level unknown”: nothing is stated. “Told k ×”: a Gaussian of k times the true root mean "
    "square of the noise on that image. DPS takes the rule of its paper where it is told nothing, "
    "and the rule that follows a level where it is; plug-and-play estimates what it is not told. "
    "PSNR at the selected iterate, ± over images."
)
Told = tuple[str, float | None]


def text(recording: Recording) -> str:
    """The table and its words."""
    lines = recording.lines
    columns: list[Told] = list(dict.fromkeys((x["way"], x["stated"]) for x in lines))
    columns.sort(key=lambda c: (not WAYS[c[0]].ours, list(WAYS).index(c[0]), c[1] or 0))
    found = {(x["way"], x["stated"], x["kind"], x["level"]): x["psnr"] for x in lines}
    rows = []
    for kind, level in noise.SETTINGS:
        held = [found.get((*column, kind, level)) for column in columns]
        cells = ["–" if x is None else "{:.2f} ± {:.2f}".format(*mean_and_error(x)) for x in held]
        rows.append([KINDS[kind].format(level), *cells])
    on_cpu = {x["way"] for x in lines if x.get("device") == "CPU"}
    ran = [f"Of these {WAYS[way].title} ran on a processor.\n\n" for way in WAYS if way in on_cpu]
    return table(["", *map(named, columns)], rows) + "\n" + "".join(ran) + words(found, columns)


def named(column: Told) -> str:
    """A way and what it was told."""
    way, stated = column
    mark = " (ours)" if WAYS[way].ours else ""
    told = "level unknown" if stated is None else f"told {stated:g} ×"
    return f"{WAYS[way].title}{mark}, {told}"


def words(found: Mapping[Any, Sequence[float]], columns: Sequence[Told]) -> str:
    """The drop of a wrong level, and ours beside each column of the others."""
    drops, ours = [], [c for c in columns if WAYS[c[0]].ours and c[1] is None]
    others = [c for c in columns if not WAYS[c[0]].ours]
    for way, stated in columns:
        right = (way, 1.0)
        if right in columns and stated != 1.0:
            mean, error = drop(found, (way, stated), right)
            drops.append(f"{named((way, stated))}: {difference(mean, error)} dB")
    rows = []
    for column in ours:
        cells = []
        for other in others:
            wins = sum(_above(found, column, other, s) for s in noise.SETTINGS)
            losses = sum(_above(found, other, column, s) for s in noise.SETTINGS)
            cells.append(f"{wins} / {losses}")
        rows.append([named(column), *cells])
    said = ""
    if drops:
        said = "Against being told the right level, over all kinds and levels: "
        said += "; ".join(drops) + ".\n\n"
    said += f"Settings of {len(noise.SETTINGS)} in which ours, level unknown, is above / below "
    said += "by more than two standard errors:\n\n"
    return said + table(["", *map(named, others)], rows)


def drop(found: Mapping[Any, Sequence[float]], a: Told, b: Told) -> tuple[float, float]:
    """Mean of a − b over settings; its error over images, whose settings are not independent."""
    held = [
        np.array(found[(*a, *s)], float) - np.array(found[(*b, *s)], float)
        for s in noise.SETTINGS
        if (*a, *s) in found and (*b, *s) in found
    ]
    return mean_and_error(np.mean(held, axis=0))


def _above(found: Mapping[Any, Sequence[float]], a: Told, b: Told, setting: Any) -> bool:
    one, two = found.get((*a, *setting)), found.get((*b, *setting))
    if one is None or two is None:
        return False
    mean, error = mean_and_error(np.array(one, float) - np.array(two, float))
    return mean > SURE * error
