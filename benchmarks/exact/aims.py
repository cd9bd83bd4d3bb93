"""The three goals of the paper, thresholds for them, and the counts that everything is read from.

FPOR    fix precision, optimise recall
FROP    fix recall, optimise precision
OFBS    optimise an Fβ score, here F1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import setpoint as sp
from benchmarks.portfolio.tables import Aim

ALPHA = 0.8
AIMS = {
    "FPOR": Aim("FPOR", f"maximize recall subject to precision >= {ALPHA}", "recall", "precision",
                ALPHA, 5),
    "FROP": Aim("FROP", f"maximize precision subject to recall >= {ALPHA}", "precision", "recall",
                ALPHA, 5),
    "OFBS": Aim("OFBS", "maximize f1", "f1"),
}  # fmt: skip
PARTS = ("train", "tune", "test")
Count = tuple[int, int]  #: true positives and false positives


def threshold(aim: Aim, y: np.ndarray, scores: np.ndarray) -> float:
    """The best on these rows; decided where score >= threshold."""
    rule = sp.tune(aim.text, y, scores)
    assert rule.threshold is not None
    return float(rule.threshold)


def counted(y: np.ndarray, scores: np.ndarray, at: float) -> Count:
    """What is decided positive at a threshold, rightly and wrongly."""
    decided = scores >= at
    return int((decided & (y == 1)).sum()), int((decided & (y == 0)).sum())


def outcome(
    aim: Aim, y: Mapping[str, np.ndarray], scores: Mapping[str, np.ndarray], own: float
) -> dict[str, Any]:
    """Counts by threshold and part.

    ``own`` is the threshold the way comes with; ``train`` and ``tune`` are tuned on those rows;
    ``best`` on the test rows themselves, which shows how well they are ranked and nothing else.
    """
    at = {key: threshold(aim, y[key], scores[key]) for key in PARTS}
    return {
        "own train": counted(y["train"], scores["train"], own),
        "train train": counted(y["train"], scores["train"], at["train"]),
        "own test": counted(y["test"], scores["test"], own),
        "train test": counted(y["test"], scores["test"], at["train"]),
        "tune test": counted(y["test"], scores["test"], at["tune"]),
        "best test": counted(y["test"], scores["test"], at["test"]),
        "positives train": int(y["train"].sum()),
        "positives test": int(y["test"].sum()),
    }


def rates(count: Count, positives: int) -> dict[str, float]:
    """Precision (of nothing decided: 0), recall and F1 of a count."""
    tp, fp = count
    return {
        "precision": tp / (tp + fp) if tp + fp else 0.0,
        "recall": tp / positives,
        "f1": 2 * tp / (tp + fp + positives),
    }


def feasible(aim: Aim, count: Count, positives: int) -> bool:
    """Whether the goal's constraint holds, in whole numbers; without one, whatever is decided."""
    if aim.bounded is None:
        return True
    tp, fp = count
    whole = tp + fp if aim.bounded == "precision" else positives
    return whole > 0 and 10 * tp >= round(10 * aim.bound) * whole


def merit(aim: Aim, count: Count, positives: int) -> float:
    """max(−1, gain − 5 · violation)."""
    found = rates(count, positives)
    short = max(0.0, aim.bound - found[aim.bounded]) if aim.bounded else 0.0
    return max(-1.0, found[aim.gain] - aim.penalty * short)
