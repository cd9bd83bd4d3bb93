"""What became of a run: written from the definitions, with numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.stress.draws import Aim
from benchmarks.stress.tables import Table

LEAST = 10  #: rows decided by which a threshold counts
NEAR, TIMES = 0.02, 1.5  #: a floor is kept within .02, a cap within 1.5 times
BEHIND = 0.05  #: of auroc, behind cross-entropy's: collapsed


@dataclass(frozen=True)
class Scored:
    """Scores of the three parts of a table; decided positive where they are >= 0."""

    train: np.ndarray
    tune: np.ndarray
    test: np.ndarray

    def less(self, threshold: float) -> Scored:
        """The same, decided at another threshold."""
        return Scored(*(np.asarray(s) - threshold for s in (self.train, self.tune, self.test)))


def rates(y: np.ndarray, decided: np.ndarray) -> dict[str, float]:
    """Of decisions; an empty rate is not-a-number."""
    tp = float(np.sum(decided & (y == 1)))
    fp = float(np.sum(decided & (y == 0)))
    positives, negatives = float(np.sum(y == 1)), float(np.sum(y == 0))
    return {
        "recall": tp / positives,
        "precision": tp / (tp + fp) if tp + fp else np.nan,
        "fpr": fp / negatives,
        "f1": 2 * tp / (positives + tp + fp),
        "decided": (tp + fp) / len(y),
    }


def merit(aim: Aim, y: np.ndarray, decided: np.ndarray) -> float:
    """What is gained, less what breaking the bound costs; -1 at the least."""
    at = rates(y, decided)
    gain = at[aim.gain]
    if np.isnan(gain):
        return -1.0
    if aim.bounded is None:
        return gain
    value = at[aim.bounded]
    if np.isnan(value):
        return -1.0
    excess = value - aim.bound if aim.is_cap else aim.bound - value
    return max(-1.0, gain - aim.penalty * max(0.0, excess))


def curve(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds from the highest score down, with true and false positives at each."""
    order = np.argsort(-scores, kind="stable")
    falling, hits = scores[order], y[order]
    last = np.append(np.flatnonzero(np.diff(falling)), len(y) - 1)
    return falling[last], np.cumsum(hits)[last], np.cumsum(1 - hits)[last]


def best_threshold(aim: Aim, y: np.ndarray, scores: np.ndarray) -> tuple[float, bool]:
    """The threshold of greatest merit, and whether one keeps the bound with some rows decided."""
    cut, tp, fp = curve(y, scores)
    positives, negatives = np.sum(y == 1), np.sum(y == 0)
    precision, recall, fpr = tp / (tp + fp), tp / positives, fp / negatives
    f1 = 2 * tp / (positives + tp + fp)
    value = {"precision": precision, "recall": recall, "fpr": fpr, "f1": f1}
    merits, kept = value[aim.gain].astype(float), np.ones(len(cut), bool)
    if aim.bounded is not None:
        bounded = value[aim.bounded]
        excess = bounded - aim.bound if aim.is_cap else aim.bound - bounded
        merits = np.maximum(-1.0, merits - aim.penalty * np.maximum(0.0, excess))
        kept = excess <= 1e-12
    return float(cut[np.argmax(merits)]), bool(np.any(kept & (tp + fp >= LEAST)))


def auroc(y: np.ndarray, scores: np.ndarray) -> float:
    """By ranks, ties halved."""
    _, tp, fp = curve(y, scores)
    tpr, fpr = np.append(0, tp) / tp[-1], np.append(0, fp) / fp[-1]
    return float(np.trapezoid(tpr, fpr))


def judged(aim: Aim, table: Table, own: Scored, plain: Scored) -> dict[str, object]:
    """The figures of one run beside cross-entropy's with the same budget."""
    train, tune, test = table.train.y, table.tune.y, table.test.y
    finite = all(np.isfinite(s).all() for s in (own.train, own.tune, own.test))
    if not finite:
        return {"finite": False, "collapsed": True, "feasible": True, "kept": False}
    at = rates(train, own.train >= 0)
    feasible = best_threshold(aim, train, plain.train)[1]
    ranking, level = auroc(train, own.train), auroc(train, plain.train)
    nobody = at["decided"] == 0
    kept = None
    if aim.bounded is not None:
        value = at[aim.bounded]
        if aim.is_cap:
            kept = bool(value <= TIMES * aim.bound)
        else:
            kept = bool(value >= aim.bound - NEAR)  # an empty rate keeps nothing
    return {
        "finite": True,
        "auroc": ranking,
        "auroc_plain": level,
        "decided": at["decided"],
        "bounded": at[aim.bounded] if aim.bounded else None,
        "feasible": feasible,
        "kept": kept,
        "collapsed": bool(ranking < level - BEHIND or (nobody and feasible)),
        "own": merit(aim, test, own.test >= 0),
        "own_train": merit(aim, train, own.train >= 0),
        "tuned": merit(aim, test, own.test >= best_threshold(aim, tune, own.tune)[0]),
    }
