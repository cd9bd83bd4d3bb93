"""What a run is worth on the test rows, and whether a broken bound is more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.portfolio.tables import Aim

LEVEL = 0.05


def judged(aim: Aim, y: np.ndarray, decided: np.ndarray) -> dict[str, Any]:
    """Merit = max(−1, gain − penalty · violation) and the counts it comes from.

    The gain of "minimize fnr" is 1 − FNR. A precision with nothing flagged is 0, scikit-learn's
    value. ``beyond``: the bound is broken on test, and an exact one-sided binomial test of the
    counts rejects at 5 % that the true rate is at the bound. (With nothing flagged a precision has
    no counts to test, and is not counted there.)
    """
    y, decided = np.asarray(y) == 1, np.asarray(decided) == 1
    tp, fp = int((decided & y).sum()), int((decided & ~y).sum())
    positives, negatives = int(y.sum()), int((~y).sum())
    rates = {
        "precision": tp / (tp + fp) if tp + fp else 0.0,
        "recall": tp / positives,
        "fpr": fp / negatives,
        "f1": 2 * tp / (tp + fp + positives),
    }
    violation = 0.0
    if aim.bounded:
        violation = max(0.0, (rates[aim.bounded] - aim.bound) * (1 if aim.is_cap else -1))
    trials = {"precision": tp + fp, "recall": positives, "fpr": negatives}
    return {
        "merit": max(-1.0, rates[aim.gain] - aim.penalty * violation),
        "broken": violation > 1e-12,
        "beyond": violation > 1e-12 and _beyond(aim, tp, fp, trials[aim.bounded or "recall"]),
        **rates,
        "tp": tp,
        "fp": fp,
        "positives": positives,
        "negatives": negatives,
    }


def _beyond(aim: Aim, tp: int, fp: int, trials: int) -> bool:
    if not trials:
        return False
    if aim.is_cap:
        return bool(stats.binom.sf(fp - 1, trials, aim.bound) < LEVEL)
    return bool(stats.binom.cdf(tp, trials, aim.bound) < LEVEL)


def corrected(differences: np.ndarray, test_to_train: float) -> tuple[float, float]:
    """Mean difference over J splits and half its 95 % interval, corrected for overlapping splits.

    t₀.₉₇₅(J − 1) · √((1/J + n_test/n_train) · s²): Nadeau and Bengio, Inference for the
    generalization error, Machine Learning 52, 2003, section 3.
    """
    d = np.asarray(differences, float)
    if d.size < 2:
        return float(d.mean()), float("nan")
    t = float(stats.t.ppf(0.975, d.size - 1))
    return float(d.mean()), t * float(np.sqrt((1 / d.size + test_to_train) * d.var(ddof=1)))
