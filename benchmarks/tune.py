"""``setpoint.tune`` on a million scores: time over ``numpy.argsort``, memory over the scores.

Goals
    Five goals on continuous float64 scores. An exact search has to sort, so the base is
    ``numpy.argsort`` of the same scores in the same rounds; the targets are ``TIME`` times that,
    and a peak of ``SPACE`` times the scores' bytes on top of the data.

Peers
    One task that three libraries can do, the highest recall with precision >= 0.5, on four kinds
    of data, each with its own ``numpy.argsort``. The answers must agree with scikit-learn's: the
    same threshold, or at least one that decides every row the same, and the same recall to 1e-6
    (torchmetrics counts in float32); a row that disagrees is MISSED. torchmetrics takes no sample
    weights and is left out there. These rows have no target of time or memory.

The data and the calls are in :mod:`benchmarks.searches`; how time is taken, in
:mod:`benchmarks.harness`; memory, in :mod:`benchmarks.memory`.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import memory
from benchmarks.harness import (
    Check,
    Timing,
    interleave,
    new_table,
    one_thread,
    seconds_of,
    verdict,
    verdict_cell,
)
from benchmarks.searches import GOALS, SEARCHES, SHARED_GOAL, Answer, Rows, make_rows

BASE = "numpy.argsort"
REFERENCE = "scikit-learn"
TIME = 3.0
SPACE = 14.0


@dataclass(frozen=True)
class Row:
    """One line of a table. Memory is in multiples of the scores' bytes."""

    data: str
    search: str
    goal: str
    timing: Timing
    time: Check
    traced: Check
    resident: Check | None = None
    threshold: float | None = None
    recall: float | None = None
    agrees: str | None = None
    feasible: bool = True

    @property
    def verdict(self) -> str | None:
        """``ok``, ``MISSED``, or ``None`` where nothing is judged."""
        wrong = not self.feasible or self.agrees == "NO"
        if self.agrees is not None and not wrong:
            return "ok"
        return verdict((self.time, self.traced), wrong=wrong)

    def figures(self) -> dict[str, object]:
        """Everything, in plain values, for the file."""
        return {
            "data": self.data,
            "search": self.search,
            "goal": self.goal,
            **self.timing.figures(),
            "ratio_to_argsort": self.time.value,
            "ratio_target": self.time.limit,
            "traced_per_scores_byte": self.traced.value,
            "traced_target": self.traced.limit,
            "resident_per_scores_byte": self.resident and self.resident.value,
            # JSON has no infinity: a threshold that decides nothing is written as a string.
            "threshold": str(self.threshold) if math.isinf(self.threshold or 0) else self.threshold,
            "recall": self.recall,
            "agrees": self.agrees,
            "feasible": self.feasible,
            "verdict": self.verdict,
        }


def run(console: Console, repeats: int, count: int) -> list[dict[str, object]]:
    """Measure, print two tables, and return the figures of every row."""
    variants = make_rows(count)
    with tempfile.TemporaryDirectory() as name:
        folders = {variant: Path(name) / variant.replace(" ", "-") for variant in variants}
        for variant, rows in variants.items():
            rows.save(folders[variant])
        with console.status("tune: five goals"):
            goals = measure_goals("float64", variants["float64"], folders["float64"], repeats)
        console.print(goals_table(goals, count, repeats), "")
        peers = []
        for variant, rows in variants.items():
            with console.status(f"tune: three libraries, {variant}"):
                peers += measure_peers(variant, rows, folders[variant], repeats)
        console.print(peers_table(peers, count, repeats))
    for row in goals + peers:
        if not row.feasible:
            console.print(f"[red]{row.search} finds no threshold for {row.goal!r}.[/red]")
        elif row.agrees == "NO":
            console.print(f"[red]{row.search} and {REFERENCE} disagree on {row.data}.[/red]")
    return [row.figures() for row in goals + peers]


def measure_goals(data: str, rows: Rows, folder: Path, repeats: int) -> list[Row]:
    """Time and traced memory of argsort and of each goal, all in the same rounds."""
    cases = [(BASE, "")] + [("setpoint", goal) for goal in GOALS]
    calls = {case: SEARCHES[case[0]](case[1], rows) for case in cases}
    one_thread()
    timings = interleave({case: seconds_of(call) for case, call in calls.items()}, repeats)
    table = []
    for case, timing in timings.items():
        search, goal = case
        judged = search != BASE
        answer = calls[case]() or Answer(float("nan"))
        table.append(
            Row(
                data,
                search,
                goal,
                timing,
                Check(timing.ratio_to(timings[cases[0]]), TIME if judged else None),
                Check(_multiple("traced", search, goal, rows, folder), SPACE if judged else None),
                threshold=answer.threshold if judged else None,
                recall=rows.recall(answer.threshold) if judged else None,
                feasible=answer.feasible,
            )
        )
    return table


def measure_peers(data: str, rows: Rows, folder: Path, repeats: int) -> list[Row]:
    """Time, memory and answer of each library that can do the shared task on these rows."""
    searches = [s for s in SEARCHES if rows.weight is None or s != "torchmetrics"]
    calls = {search: SEARCHES[search](SHARED_GOAL, rows) for search in searches}
    one_thread()
    timings = interleave({search: seconds_of(call) for search, call in calls.items()}, repeats)
    answers = {search: call() for search, call in calls.items() if search != BASE}
    return [
        Row(
            data,
            search,
            SHARED_GOAL,
            timings[search],
            Check(timings[search].ratio_to(timings[BASE])),
            Check(_multiple("traced", search, SHARED_GOAL, rows, folder)),
            Check(_multiple("resident", search, SHARED_GOAL, rows, folder)),
            answer.threshold,
            rows.recall(answer.threshold) if answer.recall is None else answer.recall,
            agreement(rows, answer, answers[REFERENCE]),
            answer.feasible,
        )
        for search, answer in answers.items()
    ]


def agreement(rows: Rows, answer: Answer, reference: Answer) -> str:
    """``yes``; ``same rows`` where only the threshold's number differs; ``NO``."""
    said = rows.recall(answer.threshold) if answer.recall is None else answer.recall
    if not abs(said - reference.recall) <= 1e-6:
        return "NO"
    if answer.threshold == reference.threshold:
        return "yes"
    decided, expected = (rows.scores >= a.threshold for a in (answer, reference))
    return "same rows" if np.array_equal(decided, expected) else "NO"


def _multiple(way: str, search: str, goal: str, rows: Rows, folder: Path) -> float:
    case = {"search": search, "goal": goal, "folder": str(folder)}
    return memory.peak(way, "searches", case) / rows.scores.nbytes


def goals_table(rows: list[Row], count: int, repeats: int) -> Table:
    """One line a goal, judged."""
    table = new_table(
        f"tune: {count:,} float64 scores, 5 % positives",
        (
            f"ms: wall clock, one thread, {repeats} interleaved rounds. × argsort: median over "
            f"the rounds of time / numpy.argsort(scores) of the same round. Memory: peak of "
            f"tracemalloc during the call in a fresh process, over the bytes of the scores."
        ),
        ["goal"],
        ["median\nms", "min–max\nms", f"×\nargsort\n(≤ {TIME:g})", f"memory\n(≤ {SPACE:g})"],
    )
    table.add_column("")
    for row in rows:
        table.add_row(
            row.goal or f"[dim]{row.search}, the base[/dim]",
            *row.timing.cells(),
            row.time.cell(),
            row.traced.cell(),
            verdict_cell(row.verdict),
        )
    return table


def peers_table(rows: list[Row], count: int, repeats: int) -> Table:
    """One line a library, kind of data by kind of data."""
    table = new_table(
        f"{SHARED_GOAL}: {count:,} rows",
        (
            f"ms, × argsort and traced as above ({repeats} rounds; argsort of the scores of that "
            f"block; tracemalloc does not see torch). resident: rise of the resident set's "
            f"high-water mark during the call, over the bytes of the scores. recall: as returned; "
            f"setpoint's is that of its threshold. agrees: with {REFERENCE}, in threshold "
            f"and recall. No target of time or memory here. torchmetrics takes no weights."
        ),
        ["data", "library"],
        [
            *("median\nms", "min–max\nms", "×\nargsort", "memory\ntraced", "memory\nresident"),
            *("threshold", "recall"),
        ],
    )
    table.add_column("agrees")
    for before, row in zip([None, *rows], rows, strict=False):
        new = before is None or before.data != row.data
        if new and before is not None:
            table.add_section()
        table.add_row(
            row.data if new else "",
            row.search,
            *row.timing.cells(),
            row.time.cell(),
            row.traced.cell(),
            row.resident.cell() if row.resident else "–",
            f"{row.threshold:.6f}",
            f"{row.recall:.5f}",
            "[red]NO[/red]" if row.agrees == "NO" else row.agrees,
        )
    return table
