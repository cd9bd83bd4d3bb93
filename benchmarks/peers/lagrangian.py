"""``python -m benchmarks.peers lagrangian``: a Lagrangian by hand in Cooper beside ``GoalLoss``.

Goal: maximize recall subject to precision >= 0.8. The same network, batches, steps and schedule for
all (``peers/networks.py``), the last step kept, nothing tuned. Judged on test rows twice: at the
threshold that the loss trains for (½), and at the one that ``setpoint.tune`` finds on the tune
rows; cross-entropy beside them.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import setpoint as sp
from benchmarks.peers import ask
from benchmarks.peers.networks import by_adam, everybody, shuffled
from benchmarks.peers.ranking import cross_entropy, goal, prepare
from benchmarks.peers.rows import CONSTRAINED, SEEDS, Split, judged
from benchmarks.results.recording import record

NAME = "peers-lagrangian"
SETUP = "sh benchmarks/peers/setup_cooper.sh"
SETUPS = {
    "cross-entropy": by_adam(lambda: cross_entropy),
    "GoalLoss, costs": goal(CONSTRAINED, "costs"),
    "GoalLoss, soft-set": goal(CONSTRAINED, "soft-set"),
}


def outcomes(rows: Split, tune: np.ndarray, test: np.ndarray) -> dict[str, dict[str, Any]]:
    """Figures at ½ and at the tuned threshold."""
    rule = sp.tune(CONSTRAINED, rows.tune.y, tune)
    return {"½": judged(rows.test.y, test >= 0), "tuned": judged(rows.test.y, rule.decide(test))}


def collected(folder: Path, cases: dict) -> list[dict[str, Any]]:
    """Lines of everything that lies beside the cases; judged here, whoever trained it."""
    lines = []
    for key, (about, rows) in cases.items():
        with np.load(folder / f"{key}.out.npz") as made:
            for name in dict.fromkeys(k.split("|")[0] for k in made.files):
                found = outcomes(rows, made[f"{name}|tune"], made[f"{name}|test"])
                lines += [{**about, "way": name, "at": at, **x} for at, x in found.items()]
    return lines


def run(console: Console) -> None:
    """Train everything; recorded."""
    logging.getLogger("setpoint").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text)
        cases = prepare(folder)
        everybody(folder, {name: (setup, shuffled) for name, setup in SETUPS.items()})
        lines = collected(folder, cases)
        console.print(f"{NAME}: ours")
        for path in folder.glob("*.out.npz"):
            path.unlink()
        peer = ask("cooper", "cooper_networks", str(folder))
        lines += collected(folder, cases) if peer else []
    console.print(f"{NAME}: {'done' if peer else f'Cooper is not installed: {SETUP}'}")
    record(
        NAME,
        "python -m benchmarks.peers lagrangian",
        lines,
        packages=("torch", "scikit-learn", "numpy"),
        seeds=len(SEEDS),
        setup=SETUP,
        peer=f"Cooper {peer['version']}" if peer else None,
    )


if __name__ == "__main__":
    run(Console())
