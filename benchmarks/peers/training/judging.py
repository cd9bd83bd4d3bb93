"""What became of a run: every side judged here, on the same rows, by the same definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

import setpoint as sp
from benchmarks.peers.training.batch_rates import CAP, FLOOR
from benchmarks.peers.training.our_side import CONSTRAINED
from benchmarks.peers.training.ranges import MAX_FPR, MIN_TPR, ONE_WAY_FPR

TAUS = np.arange(1, 10) / 10
PENALTY = {"floor": 5.0, "cap": 50.0}  #: of a unit of violation
BOUNDED = {"floor": "precision", "cap": "fpr"}


def two_way_auroc(y: np.ndarray, scores: np.ndarray) -> float:
    """The share of pairs in order, of the lowest positives and the highest negatives.

    The area under the ROC polygon within fpr <= :data:`MAX_FPR` and recall >= :data:`MIN_TPR`, over
    that of the whole corner.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), y.size - 1)  # equal scores move alike
    tpr = np.append(0, np.cumsum(y[order] == 1)[last] / (y == 1).sum())
    fpr = np.append(0, np.cumsum(y[order] == 0)[last] / (y == 0).sum())
    stop = int(np.searchsorted(fpr, MAX_FPR, "right"))
    edge = np.interp(MAX_FPR, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])
    f, t = np.append(fpr[:stop], MAX_FPR), np.append(tpr[:stop], edge)
    k = int(np.searchsorted(t, MIN_TPR))
    if 0 < k < t.size:  # the polygon enters the corner between two of its points
        share = (MIN_TPR - t[k - 1]) / (t[k] - t[k - 1])
        f, t = np.insert(f, k, f[k - 1] + share * (f[k] - f[k - 1])), np.insert(t, k, MIN_TPR)
    area = np.trapezoid(np.maximum(t - MIN_TPR, 0), f)
    return float(area / (MAX_FPR * (1 - MIN_TPR)))


RANKED: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "ap": lambda y, s: float(average_precision_score(y, s)),
    "one-way": lambda y, s: float(roc_auc_score(y, s, max_fpr=ONE_WAY_FPR)),
    "two-way": two_way_auroc,
}


def f1s(y: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """F1 of each row of decisions."""
    decided = np.atleast_2d(decided)
    return 2 * (decided & (y == 1)).sum(1) / (decided.sum(1) + (y == 1).sum())


def over_thresholds(y: np.ndarray, logits: np.ndarray) -> float:
    """Mean F1 over the probabilities .1, .2, …, .9: the protocol of torch-btg's authors."""
    return float(f1s(y, logits >= np.log(TAUS / (1 - TAUS))[:, None]).mean())


def judged_f1(rows: Any, logits: dict[str, np.ndarray]) -> dict[str, float]:
    """Mean F1 over thresholds, at a half, and at the threshold of the tune rows; AUROC."""
    y, z = rows.test.y, logits["test"]
    rule = sp.tune("maximize f1", rows.tune.y, logits["tune"])
    return {
        "mean f1": over_thresholds(y, z),
        "half f1": float(f1s(y, z >= 0)[0]),
        "tuned f1": float(f1s(y, rule.decide(z).astype(bool))[0]),
        "auroc": float(roc_auc_score(y, z)),
    }


def standing(aim: str, y: np.ndarray, decided: np.ndarray) -> dict[str, Any]:
    """Recall, what is bounded, whether the bound is kept, and the merit.

    merit = max(−1, recall − 5 · (.8 − precision)₊) or max(−1, recall − 50 · (fpr − .01)₊). Where
    nothing is decided recall is 0 and no bound is broken.
    """
    decided = np.asarray(decided).astype(bool)
    right, n = int((decided & (y == 1)).sum()), int(decided.sum())
    recall = right / int((y == 1).sum())
    if aim == "floor":
        bounded = right / n if n else None
        excess = max(0.0, FLOOR - right / n) if n else 0.0
    else:
        bounded = (n - right) / int((y == 0).sum())
        excess = max(0.0, bounded - CAP)
    merit = max(-1.0, recall - PENALTY[aim] * excess)
    return {"recall": recall, "bounded": bounded, "kept": excess <= 1e-12, "merit": merit}


def thresholds(aim: str, rows: Any, logits: dict[str, np.ndarray]) -> dict[str, Callable]:
    """The loss's own threshold, and that of the tune rows: scores -> decisions."""
    own = float(logits["threshold"])
    rule = sp.tune(CONSTRAINED[aim], rows.tune.y, logits["tune"])
    return {"own": lambda z: z >= own, "tuned": rule.decide}


def judged_constrained(aim: str, rows: Any, logits: dict[str, np.ndarray]) -> dict[str, dict]:
    """At each threshold: the merit on tune rows, and how it stands on training and test rows."""
    found = {}
    for at, decide in thresholds(aim, rows, logits).items():
        tune, train, test = (
            standing(aim, getattr(rows, part).y, decide(logits[part]))
            for part in ("tune", "train", "test")
        )
        found[at] = {"tune": tune["merit"], **test, "kept train": train["kept"]}
    return found


def finite(logits: dict[str, np.ndarray]) -> bool:
    """Whether the run ended in numbers."""
    return all(bool(np.isfinite(values).all()) for values in logits.values())
