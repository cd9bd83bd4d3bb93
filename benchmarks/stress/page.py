"""The figures of the stress runs by method and goal."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.console import Console

from benchmarks.harness import new_table
from benchmarks.results.figures import table as page_table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how


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


def section(recording: Recording) -> Section:
    """The part of the results page: each method bare and guarded."""
    lines = list(recording.lines)
    plain = {x["number"]: x for x in lines if x["method"] == "cross-entropy"}
    rows = []
    for method in dict.fromkeys(x["method"] for x in lines):
        ran = [x for x in lines if x["method"] == method and "refused" not in x]
        collapsed = share(x["collapsed"] for x in ran)
        kept = share(x["kept"] for x in ran if x["kept"] is not None and x["feasible"])
        covered = share(x["covered"] for x in ran if "covered" in x)
        rows.append(
            [
                method,
                f"{collapsed[0]} of {collapsed[1]}",
                f"{kept[0]} of {kept[1]}",
                difference(ran, plain, "own"),
                difference(ran, plain, "tuned"),
                f"{covered[0]} of {covered[1]}" if covered[1] else "–",
            ]
        )
    head = ["method", "collapsed", "constraint kept", "own threshold", "tuned", "interval covers"]
    intro = (
        f"{len(plain)} settings drawn at random from 18 tables of 2 to 46 % positives (at most "
        "6,000 training rows), four goals, batches of 32 or 256, learning rates from 3e-4 to "
        "1e-2, a linear model or a network of 64 and 32 units; 1,500 steps or six epochs of a "
        "plain loop with defaults, bare or with `guard=True`.\n"
    )
    notes = (
        "\nCollapsed: on the training rows the auroc is more than .05 below cross-entropy's, or "
        "nobody is decided although a threshold on its scores keeps the constraint with 10 rows "
        "decided. Kept: at the loss's own threshold, on the training rows, within .02 of a floor "
        "or 1.5 times a cap, where such a threshold exists. Own threshold and tuned: merit on "
        "test rows less cross-entropy's (at ½, and tuned on the same rows), mean ± s.e. over "
        "settings. Interval covers: that of `status()` holds the value on all training rows.\n"
    )
    text = intro + "\n" + how(recording) + "\n" + page_table(head, rows) + notes
    return Section("Plain loops with defaults", text)
