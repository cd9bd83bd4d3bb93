"""Do tuned class offsets pay on fresh rows? Macro-F1 of argmax, plain offsets and shrunk offsets.

Multiclass tables of ``$SETPOINT_DATA`` (default: ``../shared/data``), 50/25/25 train/tune/test,
stratified, paired splits; logistic regression (standardised) and LightGBM. Reported are the mean
test macro-F1 and the paired difference from the plain argmax with its standard error over splits
(which overlap, so the error is a lower bound). Tables that are not there are left out and named.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

TABLES = ("yeast", "page-blocks", "winequality-white", "thyroid-ann", "satimage")
SPLITS = 5
HOWS = ("argmax", "plain", "shrunk")


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Run all tables and models; there is no target, the figures decide a default."""
    del repeats, rows
    folder = Path(os.environ.get("SETPOINT_DATA", "../shared/data"))
    table = Table("data", "model", *HOWS, "plain − argmax", "shrunk − argmax", box=box.SIMPLE_HEAD)
    records = []
    gains: dict[str, list[float]] = {how: [] for how in HOWS[1:]}
    for name in TABLES:
        path = folder / f"{name}_multiclass.parquet"
        if not path.exists():
            console.print(f"{path.name} is not there: left out")
            continue
        for model in ("logistic", "lightgbm"):
            scores = np.array([_one(path, model, seed) for seed in range(SPLITS)])  # (splits, hows)
            change = scores[:, 1:] - scores[:, :1]
            error = change.std(0, ddof=1) / np.sqrt(SPLITS)
            cells = [f"{m:+.3f}±{e:.3f}" for m, e in zip(change.mean(0), error, strict=True)]
            table.add_row(name, model, *(f"{m:.3f}" for m in scores.mean(0)), *cells)
            for how, column in zip(HOWS[1:], change.T, strict=True):
                gains[how].extend(column)
            means = dict(zip(HOWS, scores.mean(0).tolist(), strict=True))
            records.append({"data": name, "model": model, **means, "verdict": ""})
    console.print("Class offsets: macro-F1 on fresh rows")
    console.print(table)
    for how, values in gains.items():
        if values:
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            console.print(
                f"{how} − argmax, {len(values)} pairs: {np.mean(values):+.4f} ± {error:.4f}"
            )
    return records


def _one(path: Path, model: str, seed: int) -> list[float]:
    """Test macro-F1 of the three rules on one split."""
    import pandas as pd
    from sklearn.model_selection import train_test_split

    import setpoint as sp
    from setpoint.expressions import take_in
    from setpoint.rules.class_offsets import climb
    from setpoint.rules.goal_on_rows import GoalOnRows

    data = pd.read_parquet(path).drop(columns="split", errors="ignore")
    y = data.pop("target").to_numpy()
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 8))  # a class must reach every part
    x, y = data.to_numpy(float)[kept], y[kept]
    classes = np.unique(y)
    train, rest = train_test_split(np.arange(y.size), train_size=0.5, stratify=y, random_state=seed)
    tune, test = train_test_split(rest, train_size=0.5, stratify=y[rest], random_state=seed)
    scores = np.log(np.clip(_fit(model, seed, x[train], y[train]).predict_proba(x), 1e-12, 1))
    task = sp.Task.multiclass(classes.tolist())
    goal = sp.Goal.parse("maximize macro(f1)")
    problem = GoalOnRows.meet(goal, take_in(task, y[tune], scores=scores[tune]))
    shrunk = sp.tune(goal, y[tune], scores[tune], task=task)
    offsets = [np.zeros(classes.size), climb(problem), np.array(shrunk.offsets)]
    return [
        sp.macro(sp.f1)(y[test], classes[(scores[test] + b).argmax(1)], task=task) for b in offsets
    ]


def _fit(model: str, seed: int, x: np.ndarray, y: np.ndarray):
    from lightgbm import LGBMClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if model == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LGBMClassifier(n_estimators=100, random_state=seed, verbose=-1, n_jobs=1).fit(x, y)
