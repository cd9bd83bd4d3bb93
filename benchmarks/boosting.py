"""Trees boosted on the goal against log loss with a tuned threshold.

``python -m benchmarks.boosting``. Tables of ``$SETPOINT_DATA`` (default: ``../shared/data``), at
most 6,000 rows each, 60/20/20 train/tune/test, stratified, five paired splits. LightGBM with its
defaults (100 rounds, rate 0.1) by log loss (its own), costs and soft-set; the threshold of each is
tuned exactly on the tune rows, or left at ½. Merit on test is max(−1, objective − 5 × violation).
Reported are means over splits and the paired difference from log loss with its standard error: over
splits for a table (they overlap, so it is a lower bound), over the means of the tables for all.
Then tables of several classes, macro-F1 by argmax, and what a round costs on 100,000 rows.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

import setpoint as sp
from setpoint.boosting import GoalLGBMClassifier

TABLES = ("wilt", "mammography", "satimage", "phoneme", "abalone_7")
SEVERAL = ("satimage", "page-blocks", "yeast", "thyroid-ann")
GOALS = {
    "recall, precision >= .8": "maximize recall subject to precision >= 0.8",
    "f1": "maximize f1",
    "cost of 1 and 10": "minimize cost(fp=1, fn=10)",
}
WAYS = ("log loss", "costs", "soft-set")
SPLITS = 5
ROWS = 6_000
PENALTY = 5.0


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Run everything; there is no target, the figures say when to use what."""
    del repeats, rows
    folder = Path(os.environ.get("SETPOINT_DATA", "../shared/data"))
    records = []
    for label, goal in GOALS.items():
        table = Table("data", *WAYS, *(f"{w} − log loss" for w in WAYS[1:]), box=box.SIMPLE_HEAD)
        tuned, half = [], []
        for name in TABLES:
            path = folder / f"{name}.parquet"
            if not path.exists():
                console.print(f"{path.name} is not there: left out")
                continue
            found = np.array(
                [_one(path, goal, seed) for seed in range(SPLITS)]
            )  # (splits, 2, ways)
            tuned.append(found[:, 0].mean(0))
            half.append(found[:, 1].mean(0))
            table.add_row(name, *_cells(found[:, 0]))
            figures = dict(zip(WAYS, tuned[-1].tolist(), strict=True))
            records.append({"goal": goal, "data": name, **figures, "verdict": ""})
        if tuned:
            table.add_row("mean, tuned", *_cells(np.array(tuned)))
            table.add_row("mean, at ½", *_cells(np.array(half)))
        console.print(f"Boosted trees, {label}: merit on fresh rows")
        console.print(table)
    table = Table("data", *WAYS, *(f"{w} − log loss" for w in WAYS[1:]), box=box.SIMPLE_HEAD)
    for name in SEVERAL:
        path = folder / f"{name}_multiclass.parquet"
        if not path.exists():
            console.print(f"{path.name} is not there: left out")
            continue
        found = np.array([_several(path, seed) for seed in range(SPLITS)])
        table.add_row(name, *_cells(found))
        figures = dict(zip(WAYS, found.mean(0).tolist(), strict=True))
        records.append({"goal": "maximize macro(f1)", "data": name, **figures, "verdict": ""})
    console.print("Boosted trees of several classes: macro-F1 by argmax on fresh rows")
    console.print(table)
    seconds = _seconds()
    told = ", ".join(f"{way} {1e3 * s:.0f} ms" for way, s in zip(WAYS, seconds, strict=True))
    console.print(f"One round on 100,000 rows of 20 columns, one thread: {told}")
    return records


def _cells(found: np.ndarray) -> list[str]:
    """Means, and paired differences from the first column with their standard errors."""
    change = found[:, 1:] - found[:, :1]
    error = change.std(0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan * change[0]
    cells = [f"{m:.3f}" for m in found.mean(0)]
    return cells + [f"{m:+.3f} ± {e:.3f}" for m, e in zip(change.mean(0), error, strict=True)]


def _model(way: str, goal: str):
    if way == "log loss":
        return LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbosity=-1)
    return GoalLGBMClassifier(goal, way, n_estimators=100, n_jobs=1)


def _table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = pd.read_parquet(path).drop(columns=["split", "group"], errors="ignore")
    y = data.pop("target").to_numpy().astype(int)
    for column in data.columns[data.dtypes == "category"]:
        data[column] = data[column].cat.codes
    x = data.to_numpy(float)
    kept = np.sort(np.random.default_rng(0).permutation(y.size)[:ROWS])
    return x[kept], y[kept]


def _parts(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.arange(y.size)
    train, rest = train_test_split(rows, train_size=0.6, stratify=y, random_state=seed)
    tune, test = train_test_split(rest, train_size=0.5, stratify=y[rest], random_state=seed)
    return train, tune, test


def _one(path: Path, goal: str, seed: int) -> list[list[float]]:
    """Merit on test of each way: with the tuned threshold, and at ½."""
    x, y = _table(path)
    train, tune, test = _parts(y, seed)
    merits: list[list[float]] = [[], []]
    for way in WAYS:
        scores = _model(way, goal).fit(x[train], y[train]).predict_proba(x)[:, 1]
        rule = sp.tune(goal, y[tune], scores[tune])
        for place, cut in enumerate((rule.threshold, 0.5)):
            merits[place].append(_merit(goal, y[test], scores[test] >= cut))
    return merits


def _merit(goal: str, y: np.ndarray, decided: np.ndarray) -> float:
    hit = float((decided & (y == 1)).sum())
    if goal == GOALS["f1"]:
        return 2 * hit / (decided.sum() + y.sum())
    if goal == GOALS["cost of 1 and 10"]:
        return -float((decided.sum() - hit + 10 * (y.sum() - hit)) / y.size)
    precision = hit / decided.sum() if decided.any() else 0.8
    return max(-1.0, hit / y.sum() - PENALTY * max(0.0, 0.8 - precision))


def _several(path: Path, seed: int) -> list[float]:
    x, y = _table(path)
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 10))  # a class must reach every part
    x, y = x[kept], y[kept]
    train, _, test = _parts(y, seed)
    fitted = [_model(way, "maximize macro(f1)").fit(x[train], y[train]) for way in WAYS]
    return [f1_score(y[test], one.predict(x[test]), average="macro") for one in fitted]


def _seconds() -> list[float]:
    """Seconds per round beyond the first of each way, from a long run less a short one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100_000, 20))
    y = (rng.random(100_000) < 1 / (1 + np.exp(2.5 - x[:, 0] - x[:, 1] * x[:, 2]))).astype(int)
    found = []
    for way in WAYS:
        took = []
        for rounds in (2, 22):
            start = time.perf_counter()
            _model(way, "maximize f1").set_params(n_estimators=rounds).fit(x, y)
            took.append(time.perf_counter() - start)
        found.append((took[1] - took[0]) / 20)
    return found


if __name__ == "__main__":
    run(Console(width=110), 1, ROWS)
