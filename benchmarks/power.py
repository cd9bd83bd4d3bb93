"""Choosing a threshold with proof: how often one is returned, how often it is broken, what recall.

A synthetic task, 10 % positives: ``make_classification(9000, 10, n_informative=5, weights=[.9, .1],
class_sep=1.5, flip_y=.02, random_state=r)``; logistic regression on rows 0–999, certify rows
1000–1999, the truth on the other 7000. Goal: recall subject to precision >= 0.8, confidence 90 %.
Draws in which no threshold reaches a recall of .1 at the floor are left out. Seeds 0–299 and
1000–1599.

Beside ``tune(prove=0.9)``: the threshold tuned on the certify rows (no proof), MAPIE's
BinaryClassificationController at its defaults (where it is installed), fixed-sequence testing on a
grid of quantiles of the training scores from the 30 highest down, and the fixed sequence that
starts at the training score of greatest power by training counts.
"""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import setpoint as sp
from setpoint.statistics.binomial import p_above, power

FLOOR, DELTA = 0.8, 0.1
RANGES = {"0–299": range(300), "1000–1599": range(1000, 1600)}
GOAL = f"maximize recall subject to precision >= {FLOOR}"
OURS, BASE = "tune(prove=0.9)", "fixed sequence, start by training power"
HOWS = (
    "tuned on the certify rows",
    "MAPIE at its defaults",
    "fixed sequence, quantile grid",
    BASE,
    OURS,
)


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Both ranges; held where the averages over the ranges reach the stated figures."""
    del repeats, rows
    found = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, seeds in RANGES.items():
            draws = [d for d in pool.map(_draw, seeds, chunksize=5) if d is not None]
            found[name] = np.array(draws, float)  # (draws, hows, returned/broken/recall)
    table = Table("how", *RANGES, "average", box=box.SIMPLE_HEAD)
    records = []
    for j, how in enumerate(HOWS):
        means = {name: d[:, j].mean(0) for name, d in found.items()}
        if not np.isfinite(np.concatenate(list(means.values()))).all():
            console.print(f"{how}: not installed, left out")
            continue
        average = np.mean(list(means.values()), axis=0)
        table.add_row(how, *map(_cell, means.values()), _cell(average))
        record = dict(zip(("returned", "broken", "recall"), average.tolist(), strict=True))
        verdict = ""
        if how == OURS:
            held = average[0] >= 0.8 and average[1] <= 0.1 and average[2] >= 0.53
            verdict = "ok" if held else "MISSED"
        records.append({"how": how, **record, "verdict": verdict})
    console.print("Returned / broken / mean recall with refusals as zero")
    console.print(table)
    for name, d in found.items():
        console.print(f"seeds {name}: {len(d)} draws that can be met")
    pooled = np.concatenate(list(found.values()))
    gain = pooled[:, HOWS.index(OURS)] - pooled[:, HOWS.index(BASE)]
    error = gain.std(0, ddof=1) / np.sqrt(len(gain))
    for what, i in (("returned", 0), ("recall", 2)):
        console.print(f"{OURS} − {BASE}: {what} {gain[:, i].mean():+.4f} ± {error[i]:.4f} (paired)")
        held = gain[:, i].mean() > error[i]
        records.append(
            {"how": f"gain in {what}", "mean": float(gain[:, i].mean())}
            | {"error": float(error[i]), "verdict": "ok" if held else "MISSED"}
        )
    return records


def _cell(figures: np.ndarray) -> str:
    return " / ".join(f"{x:.3f}" for x in figures)


def _draw(seed: int) -> list[list[float]] | None:
    """Returned, broken and recall of each way, for one draw; None where it cannot be met."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(
        9000, 10, n_informative=5, weights=[0.9, 0.1], class_sep=1.5, flip_y=0.02, random_state=seed
    )
    model = LogisticRegression(max_iter=300).fit(X[:1000], y[:1000])
    p = model.predict_proba(X)[:, 1]
    parts = [(y[a:b], p[a:b]) for a, b in ((0, 1000), (1000, 2000), (2000, 9000))]
    train, certify, truth = parts
    task = sp.Task.binary(score="probability")
    best = sp.tune(GOAL, *truth)
    if not best.feasible or (best.value or 0.0) < 0.1:
        return None
    proven = sp.tune(GOAL, *certify, task=task, prove=1 - DELTA, reference=train)
    thresholds = (
        sp.tune(GOAL, *certify).threshold,
        _mapie(model, X[1000:2000], y[1000:2000]),
        _in_order(certify, np.quantile(train[1], np.linspace(0.97, 0.01, 97))),
        _in_order(certify, _by_training_power(*train)),
        proven.threshold if proven.proven else None,
    )
    return [_judged(t, *truth) for t in thresholds]


def _judged(threshold: Any, y: np.ndarray, p: np.ndarray) -> list[float]:
    if threshold is None:
        return [0.0, 0.0, 0.0]
    if np.isnan(threshold):
        return [np.nan] * 3
    decided = p >= threshold
    right = int((decided & (y == 1)).sum())
    broken = right < FLOOR * decided.sum()
    return [1.0, float(broken), right / int(y.sum())]


def _in_order(rows: tuple[np.ndarray, np.ndarray], thresholds: np.ndarray) -> float | None:
    """The last threshold proven before the first that is not."""
    y, p = rows
    passed = None
    for t in thresholds:
        decided = p >= t
        if p_above(int(y[decided].sum()), int(decided.sum()), FLOOR) > DELTA:
            break
        passed = float(t)
    return passed


def _by_training_power(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Training scores from the one of greatest estimated power downwards."""
    order = np.argsort(-p)
    right, n = np.cumsum(y[order]), np.arange(1, y.size + 1)
    rate = (right + 1) / (n + 2)  # Laplace's, so that three of three is not sure
    best = int(np.argmax(power(n, rate, FLOOR, DELTA)))
    return np.unique(p[order][best:])[::-1]


def _mapie(model: Any, X: np.ndarray, y: np.ndarray) -> float | None:
    try:
        from mapie.risk_control import BinaryClassificationController
    except ImportError:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            predict_function=model.predict_proba,
            risk="precision",
            target_level=FLOOR,
            confidence_level=1 - DELTA,
        )
        controller.calibrate(X, y)
    best = controller.best_predict_param
    return None if best is None else float(best)
