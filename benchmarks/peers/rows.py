"""The rows of the comparisons with peers: tables, splits and the scores of common models.

60/20/20 for each seed, stratified by class: to train, to choose a threshold, to test. Tables larger
than :data:`MOST` rows are drawn down to it, anew for each seed. Numbers are standardised and
categories become 0/1 columns by what the training rows show, so that every side gets one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

from benchmarks.bridging_data import folder
from setpoint.datasets.columns.features import Features

TABLES = ("wilt", "mammography", "phoneme", "satimage", "adult")
SEEDS = range(5)
MOST = 10_000
FLOOR = 0.8
CONSTRAINED = f"maximize recall subject to precision >= {FLOOR}"
GOALS = {CONSTRAINED: "merit", "maximize f1": "f1"}  #: goal -> the figure it is judged by
PENALTY = 5.0
DROPPED = ("target", "split", "group", "qid", "fnlwgt", "decile_score", "target_reg")


@dataclass(frozen=True)
class Part:
    """Features (n, d), labels 0/1 (n,), and the group of each row where there is one."""

    x: np.ndarray
    y: np.ndarray
    group: np.ndarray | None = None

    def __add__(self, other: Part) -> Part:
        return Part(np.concatenate([self.x, other.x]), np.concatenate([self.y, other.y]))


@dataclass(frozen=True)
class Split:
    """The rows of one table and seed."""

    train: Part
    tune: Part
    test: Part


def split(name: str, seed: int, groups: tuple[str, ...] | None = None) -> Split:
    """The same for everybody; only rows of these groups, where some are named."""
    import pandas

    rows: Any = pandas.read_parquet(folder() / f"{name}.parquet")
    if groups is not None:
        rows = rows[rows["group"].isin(groups)].reset_index(drop=True)
    y = rows["target"].to_numpy().astype(np.int64)
    index = np.arange(y.size)
    if y.size > MOST:
        index, _ = train_test_split(index, train_size=MOST, random_state=seed, stratify=y)
    rest, test = train_test_split(index, test_size=0.2, random_state=seed, stratify=y[index])
    train, tune = train_test_split(rest, test_size=0.25, random_state=seed, stratify=y[rest])
    x = rows.drop(columns=[c for c in DROPPED if c in rows])
    features = Features.fit(x.iloc[train], tails="plain")
    group = rows["group"].astype(str).to_numpy().astype("U") if groups is not None else None
    return Split(
        *(
            Part(features.transform(x.iloc[i]), y[i], None if group is None else group[i])
            for i in (train, tune, test)
        )
    )


def models(seed: int) -> dict[str, Any]:
    """Untuned, at their defaults, on one thread."""
    from lightgbm import LGBMClassifier

    return {
        "logistic regression": LogisticRegression(max_iter=1000),
        "LightGBM": LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed),
    }


def trained(model: Any, rows: Part) -> Any:
    """A fresh copy of the model, fitted."""
    fresh: Any = clone(model)
    return fresh.fit(rows.x, rows.y)


def scores(model: Any, x: np.ndarray) -> np.ndarray:
    """The probability of the positive class, in double precision (fairlearn takes no other)."""
    return model.predict_proba(x)[:, 1].astype(float)


def out_of_fold(model: Any, rows: Part) -> np.ndarray:
    """Scores of each row by a model that has not seen it, 5 folds."""
    found = cross_val_predict(clone(model), rows.x, rows.y, cv=5, method="predict_proba")
    return np.asarray(found)[:, 1]


def judged(y: np.ndarray, decided: np.ndarray) -> dict[str, Any]:
    """Recall, precision, F1 and merit = max(−1, recall − 5 · (floor − precision)₊) on test rows.

    With nothing decided, recall and F1 are 0 and the floor is not broken.
    """
    decided = np.asarray(decided).astype(bool)
    right, n, positives = int((decided & (y == 1)).sum()), int(decided.sum()), int(y.sum())
    recall, precision = right / positives, right / n if n else 1.0
    below = max(0.0, FLOOR - precision)
    return {
        "recall": recall,
        "precision": precision if n else None,
        "f1": 2 * right / (n + positives),
        "broken": below > 0,
        "merit": max(-1.0, recall - PENALTY * below),
    }


def export(rows: Split, path: Path, **more: np.ndarray) -> None:
    """The split as one file that another environment can read with numpy alone."""
    arrays = {
        f"{key}_{part}": getattr(getattr(rows, part), key)
        for part in ("train", "tune", "test")
        for key in ("x", "y")
    }
    np.savez(path, **arrays, **more)  # pyright: ignore[reportArgumentType]
