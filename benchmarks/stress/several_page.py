"""The figures of the runs over groups, several classes and labels, by method and goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console

from benchmarks.harness import new_table
from benchmarks.results.figures import error
from benchmarks.results.figures import table as page_table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how
from benchmarks.stress.page import share, shown

KINDS = {
    "groups": ("parity", "equal recall", "worst group"),
    "classes": ("macro f1", "worst class", "class recall", "class precision"),
    "labels": ("labels f1", "labels recall"),
}
HEAD = ("method", "goals over", "collapsed", "constraints kept", "as decided", "tuned")


def rows(lines: Sequence[Mapping]) -> list[list[str]]:
    """A row for each method and kind of goal, and one for all; a setting stands beside CE."""
    plain = {x["number"]: x for x in lines if x["method"] == "cross-entropy"}
    found = []
    for method in dict.fromkeys(x["method"] for x in lines):
        for kind in (*KINDS, "all"):
            some = [
                x
                for x in lines
                if x["method"] == method
                and "refused" not in x
                and (kind == "all" or plain[x["number"]]["aim"] in KINDS[kind])
            ]
            if not some:
                continue
            lost = share(x["collapsed"] for x in some)
            kept = share(x["kept"] for x in some if x["kept"] is not None and x["feasible"])
            own = np.array([x["own"] - plain[x["number"]]["tuned"] for x in some])
            tuned = np.array([x["tuned"] - plain[x["number"]]["tuned"] for x in some])
            found.append(
                [
                    shown(method),
                    kind,
                    f"{lost[0]} of {lost[1]}",
                    f"{kept[0]} of {kept[1]}" if kept[1] else "–",
                    f"{own.mean():+.3f} ± {error(own):.3f}",
                    f"{tuned.mean():+.3f} ± {error(tuned):.3f}",
                ]
            )
    return found


def report(console: Console, records: list[dict]) -> int:
    """Print them."""
    words = "merit on test rows less that of cross-entropy with its thresholds or offsets tuned"
    table = new_table(f"{len(records):,} runs", words, HEAD[:2], HEAD[2:])
    for row in rows(records):
        table.add_row(*row)
    console.print(table)
    return 0


def section(recording: Recording) -> Section:
    """The part of the results page."""
    lines = list(recording.lines)
    count = len(recording.where(method="cross-entropy"))
    intro = (
        f"{count} settings: three tables with a group column, four of several classes, and one of "
        "four made-up labels, with nine kinds of goal; batches of 32 or 256, learning rates of "
        "1e-3 or 1e-2, a linear model or a network of 64 and 32 units; 1,500 steps of a plain loop "
        "with defaults, and of the methods as published (`guard=False`).\n"
    )
    notes = (
        "\nCollapsed: on the training rows the mean auroc of groups, classes or labels is more "
        "than .05 below cross-entropy's, or a group, class or label is lost (nobody decided, or "
        "everybody) that tuned cross-entropy keeps. Kept: at the loss's own decisions, on the "
        "training rows, every bound within .02, where decisions on cross-entropy's scores keep "
        "it. As decided and tuned: merit on test rows (objective less five times the violations, "
        "-1 at the least) less that of cross-entropy with threshold or offsets tuned, mean ± s.e. "
        "Under parity the ranking that is fair is not the one that is accurate.\n"
    )
    text = intro + "\n" + how(recording) + "\n" + page_table(HEAD, rows(lines)) + notes
    return Section("Plain loops over groups, classes and labels", text)
