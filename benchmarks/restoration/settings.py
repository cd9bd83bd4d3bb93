"""With which options each way runs: what tuning on training images chose, else its defaults.

``python -m benchmarks.restoration tune`` tries each way's grid on training images that neither the
priors nor the table have seen and records every mean PSNR of the *selected* iterates; the best of a
grid is what the table uses. Where a task was not tuned, the point that is best on average over the
tuned tasks of that set is taken, or for a way that is ``like`` another what that one has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from benchmarks.restoration.ways import WAYS
from benchmarks.results.recording import FOLDER, read

NAME = "restoration-tune"
Line = Mapping[str, Any]


def options(data: str, way: str, task: str, **where: Any) -> dict[str, Any]:
    """The chosen options, of the points that have these; none where nothing is recorded."""
    lines = [x for x in _lines() if all(x["options"].get(k) == v for k, v in where.items())]
    own = any(x["data"] == data and x["way"] == way and x["task"] == task for x in lines)
    return {**chosen(lines, data, way if own else WAYS[way].like or way, task), **where}


def chosen(lines: Iterable[Line], data: str, way: str, task: str) -> dict[str, Any]:
    """The best point by mean PSNR: of this task, else over the tasks of the set."""
    held = [x for x in lines if x["data"] == data and x["way"] == way]
    tasks = {x["task"] for x in held}
    if task in tasks:
        held = [x for x in held if x["task"] == task]
    points: dict[tuple[Any, ...], list[float]] = {}
    for x in held:
        points.setdefault(tuple(sorted(x["options"].items())), []).append(x["psnr"])
    full = max((len(v) for v in points.values()), default=0)
    # a point that was not tried on every task is not compared with those that were
    means = {k: sum(v) / len(v) for k, v in points.items() if len(v) == full}
    return dict(max(means, key=lambda k: means[k])) if means else {}


@lru_cache(maxsize=1)
def _lines() -> tuple[Line, ...]:
    held = read(NAME, FOLDER)
    return () if held is None else held.lines
