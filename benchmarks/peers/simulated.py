"""``python -m benchmarks.peers simulated``: the draws of ``benchmarks.power``, with errors.

MAPIE, fixed sequences and ``setpoint.tune(prove=0.9)`` on many draws of one simulated task, where
the truth is known. Several minutes of one core.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console

from benchmarks.power import HOWS, RANGES
from benchmarks.power import _draw as draw
from benchmarks.results.recording import record

NAME = "simulated"
FIGURES = ("returned", "broken", "recall")


def run(console: Console) -> None:
    """Both ranges of seeds; recorded as means with standard errors, a line a way and range."""
    lines = []
    for name, seeds in RANGES.items():
        found = np.array([d for d in map(draw, seeds) if d is not None], float)
        error = found.std(0, ddof=1) / np.sqrt(len(found))  # (ways, figures)
        for j, way in enumerate(HOWS):
            means = dict(zip(FIGURES, found[:, j].mean(0), strict=True))
            errors = {f"{k} se": e for k, e in zip(FIGURES, error[j], strict=True)}
            if np.isfinite(list(means.values())).all():
                lines.append({"how": way, "range": name, "n": len(found), **means, **errors})
        console.print(f"{NAME}: seeds {name}")
    record(
        NAME,
        "python -m benchmarks.peers simulated",
        lines,
        packages=("mapie", "scikit-learn", "numpy"),
    )


if __name__ == "__main__":
    run(Console())
