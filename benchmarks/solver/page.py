"""The section of docs/results.md: recording -> section."""

from __future__ import annotations

from typing import Any

from benchmarks.results.figures import table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how

TITLE = "`sp.solve` beside PyGRANSO"
ABOUT = (
    "The same functions from the same starts, float64; CPU seconds of the solve alone on one "
    "thread, one process a run, the sides in turns, medians. PyGRANSO at its defaults or as its "
    "own examples set it; its limits of iterations and tolerances are ours as well. Violation: the "
    "greatest of max(c, 0) and |e|. Ratios are medians over the rounds."
)


def solver(recording: Recording) -> Section:
    """Both sides, problem by problem."""
    rows = []
    for x in recording.lines:
        ratio = f"{x['ratio']:.1f} ×" if x.get("ratio") else ""
        size = f"{x['variables']} / {x['constraints']}"
        first = x["side"] == recording.lines[0]["side"]
        name = [f"{x['problem']} ({size})", x["settings"]] if first else ["", ""]
        counts = [x["iterations"], x["evaluations"], _seconds(x["seconds"])]
        rows.append([*name, x["side"], _objective(x), f"{x['violation']:.0e}", *counts, ratio])
    head = ["problem (n / p)", "settings", "", "objective", "violation"]
    head += ["iterations", "evaluations", "CPU s", "faster"]
    return Section(TITLE, how(recording, ABOUT) + "\n" + table(head, rows))


def _objective(x: Any) -> str:
    return f"{x['objective']:.8g}"


def _seconds(x: float) -> str:
    return f"{x:.3f}" if x < 1 else f"{x:.2f}"


SECTIONS = {"solver": (solver, TITLE, "python -m benchmarks.solver --record")}
