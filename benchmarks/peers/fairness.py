"""``python -m benchmarks.peers fairness``: fairlearn's ThresholdOptimizer beside per-group rules.

Goal: maximize accuracy subject to gap(recall, by="group") <= 0.05, equal opportunity. Two untuned
models trained on 60 % of the rows; thresholds for each group chosen on the other 20 % that are
given. fairlearn: true positive rate parity, accuracy as the objective, exactly equal (its default)
and with ``tol=0.05``; its rules decide some rows by lot, drawn once with seed 0. Judged on test
rows: accuracy, the gap, and how often it is above 0.05.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import setpoint as sp
from benchmarks.peers import ask
from benchmarks.peers.rows import SEEDS, Split, models, scores, split, trained
from benchmarks.results.recording import record

NAME = "peers-fairness"
TABLES = {
    "compas, race": ("compas", ("African-American", "Caucasian")),
    "adult, sex": ("adult", ("Female", "Male")),
    "communities-crime, share of black people": (
        "communities-crime",
        ("high_black_share", "other"),
    ),
}
GAP = 0.05
GOAL = f'maximize accuracy subject to gap(recall, by="group") <= {GAP}'
OURS = 'setpoint.tune(kind="per-group")'
SETUP = "sh benchmarks/peers/setup_fairlearn.sh"


def outcome(rows: Split, decided: np.ndarray, chance: np.ndarray | None = None) -> dict[str, Any]:
    """Accuracy and the gap of recalls on test; ``lot``, the share of rows decided by lot."""
    y, group = rows.test.y, rows.test.group
    assert group is not None
    decided = np.asarray(decided).astype(int)
    recalls = [decided[(y == 1) & (group == g)].mean() for g in np.unique(group)]
    gap = float(max(recalls) - min(recalls))
    by_lot = 0.0 if chance is None else float(((chance > 1e-9) & (chance < 1 - 1e-9)).mean())
    accuracy = float((decided == y).mean())
    return {"accuracy": accuracy, "gap": gap, "broken": gap > GAP, "lot": by_lot}


def ours(rows: Split, tune: np.ndarray, test: np.ndarray) -> dict[str, np.ndarray]:
    """A rule for each group, and one threshold for all that knows no gap."""
    plain = sp.tune("maximize accuracy", rows.tune.y, tune)
    rule = sp.tune(GOAL, rows.tune.y, tune, group=rows.tune.group, kind="per-group")
    return {
        "one threshold, no constraint": plain.decide(test),
        OURS: rule.decide(test, group=rows.test.group),
    }


def prepare(folder: Path) -> dict[str, tuple[dict[str, Any], Split, np.ndarray, np.ndarray]]:
    """Scores of every case, written for the peer too."""
    cases = {}
    for table, (file, groups) in TABLES.items():
        for seed in SEEDS:
            rows = split(file, seed, groups)
            for name, model in models(seed).items():
                fitted = trained(model, rows.train)
                tune, test = scores(fitted, rows.tune.x), scores(fitted, rows.test.x)
                key = f"case{len(cases):03d}"
                cases[key] = ({"table": table, "seed": seed, "model": name}, rows, tune, test)
                given: dict[str, Any] = {"y_tune": rows.tune.y, "s_tune": tune, "s_test": test}
                given |= {"group_tune": rows.tune.group, "group_test": rows.test.group}
                np.savez(folder / f"{key}.npz", **given)
    return cases


def run(console: Console) -> None:
    """Every case by everybody; recorded."""
    lines, version = [], None
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text)
        cases = prepare(folder)
        peer = ask("fairlearn", "fairlearn_runs", str(folder))
        version = peer["version"] if peer else None
        for key, (about, rows, tune, test) in cases.items():
            about |= {"n": rows.tune.y.size, "n test": rows.test.y.size}
            for way, decided in ours(rows, tune, test).items():
                lines.append({**about, "way": way, **outcome(rows, decided)})
            if peer is None:
                continue
            with np.load(folder / f"{key}.out.npz") as made:
                for way in ("tol=None", "tol=0.05"):
                    found = outcome(rows, made[way], made[f"chance {way}"])
                    lines.append({**about, "way": f"fairlearn, {way}", **found})
    console.print(f"{NAME}: {'done' if version else f'fairlearn is not installed: {SETUP}'}")
    record(
        NAME,
        "python -m benchmarks.peers fairness",
        lines,
        packages=("scikit-learn", "lightgbm", "numpy"),
        seeds=len(SEEDS),
        setup=SETUP,
        peer=None if version is None else f"fairlearn {version}",
    )


if __name__ == "__main__":
    run(Console())
