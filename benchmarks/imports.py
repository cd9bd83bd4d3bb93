"""What ``import setpoint`` costs, against the ``import torch, sklearn`` its users pay anyway.

Each import runs in a fresh interpreter, the statements in turn; the seconds are those of the
statement itself, so the start of the interpreter, the same for all, does not soften the ratio. One
uncounted round before fills the disk cache and writes the byte code. Beside the time stands which
of ``WATCHED`` the statement loaded: whoever only evaluates or tunes should not load the training
side.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.harness import Check, interleave, new_table, verdict, verdict_cell

BASE = "import torch, sklearn"
MEASURED = "import setpoint"
STATEMENTS = (
    BASE,
    MEASURED,
    "import setpoint; setpoint.tune",
    "import setpoint.decisions",
    "import setpoint.metrics",
)
WATCHED = ("torch", "setpoint.training", "setpoint.solvers")
TIME = 1.3
LEAST_REPEATS = 7

_CHILD = """
import json, sys, time
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {watched!r} if name in sys.modules]]))
"""


def run(console: Console, repeats: int, count: int) -> list[dict[str, object]]:
    """Measure, print the table, and return the figures of every row."""
    del count
    repeats = max(repeats, LEAST_REPEATS)
    loaded: dict[str, list[str]] = {}
    failed = {s: why for s in STATEMENTS if (why := failure(s))}
    cases = {s: in_fresh_interpreter(s, loaded) for s in STATEMENTS if s not in failed}
    with console.status("imports"):
        timings = interleave(cases, repeats)
    figures = []
    table = _table(repeats)
    for statement in STATEMENTS:
        if statement in failed:
            figures.append({"case": statement, "failed": failed[statement], "verdict": "MISSED"})
            table.add_row(statement, *["–"] * (3 + len(WATCHED)), verdict_cell("MISSED"))
            continue
        timing = timings[statement]
        time = Check(timing.ratio_to(timings[BASE]), TIME if statement == MEASURED else None)
        word = verdict([time])
        marks = ["yes" if name in loaded[statement] else "no" for name in WATCHED]
        table.add_row(statement, *timing.cells(), time.cell(), *marks, verdict_cell(word))
        figures.append(
            {
                "case": statement,
                **timing.figures(),
                "ratio_to_base": time.value,
                "ratio_target": time.limit,
                "loaded": loaded[statement],
                "verdict": word,
            }
        )
    console.print(table)
    for statement, why in failed.items():
        console.print(f"[red]{statement}[/red] failed: {why}", highlight=False)
    return figures


def in_fresh_interpreter(statement: str, loaded: dict[str, list[str]]) -> Callable[[], float]:
    """Return a measurement of the statement; it notes in ``loaded`` what got imported."""

    def measure() -> float:
        done = subprocess.run(_command(statement), capture_output=True, text=True, check=True)
        seconds, loaded[statement] = json.loads(done.stdout.splitlines()[-1])
        return seconds

    return measure


def failure(statement: str) -> str | None:
    """Say why the statement does not run; ``None`` where it does."""
    done = subprocess.run(_command(statement), capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def _command(statement: str) -> list[str]:
    return [sys.executable, "-c", _CHILD.format(statement=statement, watched=WATCHED)]


def _table(repeats: int) -> Table:
    table = new_table(
        "imports",
        (
            f"ms: wall clock of the statement in a fresh interpreter, start of Python not counted, "
            f"{repeats} interleaved rounds. × base: median over the rounds of time / "
            f"time of '{BASE}' in the same round. Right: is the module loaded afterwards?"
        ),
        ["statement"],
        ["median\nms", "min–max\nms", f"× base\n(≤ {TIME:g})"],
    )
    for name in WATCHED:
        table.add_column(name.replace(".", "\n."))
    table.add_column("")
    return table
