"""How the benchmarks measure time and judge it.

Time
    The cases run in turn, A, B, C, A, B, C, …, after one round that is not counted, so that a
    machine that slows down or speeds up does so for all of them. Reported are the median, the
    least and the greatest of the rounds. A ratio to a base is the median over the rounds of
    *case / base of the same round*: seconds of another machine or another hour never enter it.

Targets
    A figure with a target carries a :class:`Check`; a row is ``ok`` when all of its checks hold
    and ``MISSED`` when one does not. Rows without a target have no verdict.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich import box
from rich.table import Table

PACKAGES = ("numpy", "scikit-learn", "torch", "torchmetrics")


@dataclass(frozen=True)
class Timing:
    """Seconds of one case, one entry for each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds)

    def ratio_to(self, base: Timing) -> float:
        """Median over the rounds of this case's seconds over the base's in the same round."""
        return statistics.median(a / b for a, b in zip(self.seconds, base.seconds, strict=True))

    def cells(self) -> tuple[str, str]:
        """Print median, and least – greatest, in milliseconds, for a table."""
        digits = 1 if self.median < 0.02 else 0
        low, median, high = (
            f"{1e3 * value:.{digits}f}"
            for value in (min(self.seconds), self.median, max(self.seconds))
        )
        return median, f"{low}–{high}"

    def figures(self) -> dict[str, float]:
        """Give the same, in seconds, for the file."""
        return {
            "seconds_median": self.median,
            "seconds_min": min(self.seconds),
            "seconds_max": max(self.seconds),
        }


@dataclass(frozen=True)
class Check:
    """A figure and the greatest value it may have (``None``: reported, not judged)."""

    value: float
    limit: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit; NaN is not."""
        return self.limit is None or self.value <= self.limit

    def cell(self) -> str:
        """Print the figure for a table, red where it is over its limit."""
        text = f"{self.value:.2f}"
        return text if self.holds else f"[red]{text}[/red]"


def verdict(checks: Iterable[Check], *, wrong: bool = False) -> str | None:
    """``ok`` or ``MISSED``; ``None`` where nothing is judged. A wrong answer is always MISSED."""
    judged = [check for check in checks if check.limit is not None]
    if wrong or not all(check.holds for check in judged):
        return "MISSED"
    return "ok" if judged else None


def verdict_cell(word: str | None) -> str:
    """Colour a verdict for a table."""
    return {"ok": "[green]ok[/green]", "MISSED": "[red]MISSED[/red]", None: "–"}[word]


def seconds_of(call: Callable[[], object]) -> Callable[[], float]:
    """Turn a call into a measurement of it: garbage collected first, then wall clock."""

    def measure() -> float:
        gc.collect()
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return measure


def interleave(cases: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Timing]:
    """Run the measurements in turn, one uncounted round and then ``repeats`` counted ones."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(repeats + 1):
        for name, measure in cases.items():
            value = measure()
            if turn:
                seconds[name].append(value)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def new_table(title: str, caption: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    """Start a table: columns of words, then of numbers; the caption says what is measured."""
    table = Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        pad_edge=False,
    )
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def one_thread() -> None:
    """Hold torch to one thread too, where it is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def machine() -> dict[str, object]:
    """Name what the figures depend on: versions, and the SIMD extensions numpy's sort can use."""
    import numpy

    simd = numpy.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "threads": 1,
        "simd": simd.get("found") or simd.get("baseline") or [],
        **{name: metadata.version(name) for name in PACKAGES},
    }


def write_json(path: Path, figures: object) -> None:
    """Write under a temporary name beside ``path``, then rename: never a half-written file."""
    text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
