"""The figures of the stress runs by method and goal."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.console import Console

from benchmarks.harness import new_table


def share(values: Iterable[bool]) -> tuple[int, int]:
    """How many hold, of how many."""
    every = [bool(v) for v in values]
    return sum(every), len(every)


def report(console: Console, records: list[dict]) -> int:
    """Print a row for each method and goal."""
    plain = {r["number"]: r for r in records if r["method"] == "cross-entropy"}
    methods = list(dict.fromkeys(r["method"] for r in records))
    table = new_table(
        f"{len(records):,} runs of {len(plain)} settings",
        "collapsed, kept: on the training rows; merit on test rows, paired with cross-entropy's",
        ("method", "goal"),
        (
            "runs",
            "collapsed",
            "kept of feasible",
            "own − CE at ½",
            "tuned − CE tuned",
            "interval covers",
            "ms a step",
        ),
    )
    for method in methods:
        for aim in ("f1", "floor", "cap", "recall", "all"):
            rows = [
                r
                for r in records
                if r["method"] == method and aim in ("all", r["aim"]) and "refused" not in r
            ]
            if not rows:
                continue
            collapsed = share(r["collapsed"] for r in rows)
            kept = share(r["kept"] for r in rows if r["kept"] is not None and r["feasible"])
            covered = share(r["covered"] for r in rows if "covered" in r)
            table.add_row(
                method if aim == "f1" else "",
                aim,
                f"{len(rows)}",
                f"{collapsed[0]} ({collapsed[0] / collapsed[1]:.1%})",
                f"{kept[0]}/{kept[1]}" + (f" {kept[0] / kept[1]:.1%}" if kept[1] else ""),
                difference(rows, plain, "own"),
                difference(rows, plain, "tuned"),
                f"{covered[0] / covered[1]:.1%}" if covered[1] else "–",
                f"{1e3 * np.median([r['seconds'] / 1500 for r in rows]):.2f}",
            )
    console.print(table)
    return 0


def difference(rows: list[dict], plain: dict[int, dict], key: str) -> str:
    """Mean paired difference from cross-entropy, with its standard error."""
    gaps = np.array([r.get(key, -1.0) - plain[r["number"]][key] for r in rows])
    return f"{gaps.mean():+.3f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.3f}"
