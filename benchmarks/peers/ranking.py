"""``python -m benchmarks.peers ranking``: LibAUC's losses beside ours and cross-entropy.

The same network, batches, number of steps and schedule for all (``peers/networks.py``), the last
step kept, nothing tuned for anybody: LibAUC with its default step sizes and samplers, ours and
cross-entropy with Adam at 1e-3 on shuffled rows. Judged on test rows: AUROC, average precision, and
F1 at the threshold that ``setpoint.tune("maximize f1")`` finds on the tune rows.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.nn import functional

import setpoint as sp
from benchmarks.peers import ask
from benchmarks.peers.networks import by_adam, everybody, shuffled
from benchmarks.peers.rows import SEEDS, TABLES, Split, export, judged, split
from benchmarks.results.recording import record
from setpoint.losses import GoalLoss

NAME = "peers-ranking"
SETUP = "sh benchmarks/peers/setup_libauc.sh"


def cross_entropy(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Mean log loss."""
    return functional.binary_cross_entropy_with_logits(z, y.to(z.dtype))


def goal(text: str, method: str):
    """A goal as a loss, at its defaults."""
    return by_adam(lambda: GoalLoss(text, method))


SETUPS = {
    "cross-entropy": by_adam(lambda: cross_entropy),
    "GoalLoss f1, soft-set": goal("maximize f1", "soft-set"),
    "GoalLoss auroc, pairwise": goal("maximize auroc", "pairwise"),
    "GoalLoss average_precision, pairwise": goal("maximize average_precision", "pairwise"),
}


def prepare(folder: Path) -> dict[str, tuple[dict[str, Any], Split]]:
    """The rows of every case, as files."""
    cases = {}
    for table in TABLES:
        for seed in SEEDS:
            rows = split(table, seed)
            key = f"case{len(cases):03d}"
            export(rows, folder / f"{key}.npz", seed=np.array(seed))
            cases[key] = ({"table": table, "seed": seed, "n test": rows.test.y.size}, rows)
    return cases


def outcome(rows: Split, tune: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Ranking and the tuned F1 on the test rows; F1 at ½ beside it."""
    rule = sp.tune("maximize f1", rows.tune.y, tune)
    return {
        "auroc": roc_auc_score(rows.test.y, test),
        "ap": average_precision_score(rows.test.y, test),
        "f1": judged(rows.test.y, rule.decide(test))["f1"],
        "f1 half": judged(rows.test.y, test >= 0)["f1"],
    }


def collected(folder: Path, cases: dict) -> list[dict[str, Any]]:
    """Lines of everything that lies beside the cases; judged here, whoever trained it."""
    lines = []
    for key, (about, rows) in cases.items():
        with np.load(folder / f"{key}.out.npz") as made:
            for name in dict.fromkeys(k.split("|")[0] for k in made.files):
                found = outcome(rows, made[f"{name}|tune"], made[f"{name}|test"])
                lines.append({**about, "way": name, **found})
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
        peer = ask("libauc", "libauc_networks", str(folder))
        lines += collected(folder, cases) if peer else []
    console.print(f"{NAME}: {'done' if peer else f'LibAUC is not installed: {SETUP}'}")
    record(
        NAME,
        "python -m benchmarks.peers ranking",
        lines,
        packages=("torch", "scikit-learn", "numpy"),
        seeds=len(SEEDS),
        setup=SETUP,
        peer=f"LibAUC {peer['version']}" if peer else None,
    )


if __name__ == "__main__":
    run(Console())
