"""Proof in figures: how often, how tight, how fast. More of them: docs/results/proof.md."""

from __future__ import annotations

import numpy as np

from benchmarks.results.figures import number, table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how


def _with_error(p: float, n: int) -> str:
    return f"{number(p)} ± {number(float(np.sqrt(p * (1 - p) / n)))}"


def power(recording: Recording) -> Section:
    """Choosing a threshold with proof on a simulated task."""
    rows = [
        [x["how"], x["range"], f"{x['n']}"]
        + [f"{number(x[k])} ± {number(x[f'{k} se'])}" for k in ("returned", "broken", "recall")]
        for x in recording.lines
    ]
    text = how(
        recording,
        "Logistic regression on 1,000 simulated rows, 10 % positive; recall subject to precision "
        ">= 0.8 to be proven at 90 % on 1,000 certify rows; the truth from 7,000 fresh rows. Draws "
        "in which no threshold reaches the floor are left out; ± s.e. over the draws.",
    )
    head = [
        "how the threshold is chosen",
        "seeds",
        "draws",
        "returned",
        "broken",
        "recall, none as 0",
    ]
    return Section("How often can it be proven?", text + "\n" + table(head, rows))


def bounds(recording: Recording) -> Section:
    """Lower bounds of F1."""
    rows = [
        [
            f"{x['rows']:,}",
            x["bound"],
            f"{x['draws']:,}",
            number(x["mean"], 4),
            _with_error(x["false"], x["draws"]),
        ]
        for x in recording.lines
    ]
    text = how(recording, "90 % lower bounds of F1 where it is .70, at 10 % positives.")
    head = ["rows", "bound", "samples", "mean bound", "share above the truth (10 % allowed)"]
    return Section("How tight are the bounds?", text + "\n" + table(head, rows))


def speed(recording: Recording) -> Section:
    """CPU seconds of certify and of the monitor."""
    rows = [[x["what"], number(x["cpu_seconds"]), f"{x['at_most']:g}"] for x in recording.lines]
    text = how(recording, "Median CPU seconds of the rounds.")
    return Section("What does it cost?", text + "\n" + table(["", "CPU s", "at most"], rows))
