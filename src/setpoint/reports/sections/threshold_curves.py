"""Everything along the threshold: precision–recall and ROC with bands, thinned to a few points.

At each threshold TP of the flagged (precision), TP of the positives (recall) and FP of the others
(FPR) are shares, and each has its 95% interval: the band is pointwise, not for the curve as a
whole. Around the ROC it joins the corners of the two intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._core.json_codec import Record
from setpoint.expressions import Columns
from setpoint.rules.tradeoff_curve import spread_over
from setpoint.statistics.confidence_intervals import EFFECTIVE, EXACT, share_interval

MOST = 200  #: points of a curve: more cannot be told apart on a figure of 4.6 inches


@dataclass(frozen=True, eq=False)
class PrecisionRecall(Record):
    """Recall, and precision there with its band."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocBand(Record):
    """FPR and recall, and the two corners of the box of their intervals."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    high_x: NDArray[np.float64]
    high_y: NDArray[np.float64]
    low_x: NDArray[np.float64]
    low_y: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ThresholdCurves(Record):
    """Both curves; ``how`` says in words of which kind the band is."""

    how: str
    prevalence: float
    pr: PrecisionRecall
    roc: RocBand


def curves(columns: Columns) -> ThresholdCurves | None:
    """The two curves of binary rows; None where a class is missing."""
    actual, scores = np.asarray(columns.actual), np.asarray(columns.scores, np.float64)
    weight = columns.weight
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.r_[np.diff(scores[order]) != 0, True])
    tp, fp, own = _sums(actual[order], None if weight is None else weight[order])
    if tp[-1] <= 0 or fp[-1] <= 0:
        return None
    at = last[thinned(tp[last], fp[last])]
    at = at[tp[at] + fp[at] > 0]  # precision is empty where nothing is flagged
    flagged = tp[at] + fp[at]
    precision = tp[at] / flagged
    recall = tp[at] / tp[-1]
    fpr = fp[at] / fp[-1]
    whole = len(actual) - 1
    low, high = share_interval(*_counts(precision, flagged, own(at, None)))
    recall_low, recall_high = share_interval(*_counts(recall, tp[-1], own(whole, True)))
    fpr_low, fpr_high = share_interval(*_counts(fpr, fp[-1], own(whole, False)))
    return ThresholdCurves(
        how=EXACT if weight is None else EFFECTIVE,
        prevalence=float(tp[-1] / (tp[-1] + fp[-1])),
        pr=PrecisionRecall(x=recall, y=precision, low=low, high=high),
        roc=RocBand(
            x=np.r_[0.0, fpr],
            y=np.r_[0.0, recall],
            high_x=np.r_[0.0, fpr_low],
            high_y=np.r_[recall_high[0], recall_high],
            low_x=np.r_[fpr_high[0], fpr_high],
            low_y=np.r_[0.0, recall_low],
        ),
    )


def _sums(actual: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, Any]:
    """Weight of the positives and of the others so far; and Σw² of either or both."""
    w = np.ones(actual.size) if weight is None else weight.astype(np.float64)
    tp, fp = np.cumsum(w * actual), np.cumsum(w * ~actual)
    squares = np.cumsum(w**2 * actual), np.cumsum(w**2 * ~actual)

    def own(at: Any, positive: bool | None) -> Any:
        if positive is None:
            return squares[0][at] + squares[1][at]
        return squares[0 if positive else 1][at]

    return tp, fp, own


def _counts(share: np.ndarray, total: Any, squares: Any) -> tuple[np.ndarray, np.ndarray]:
    """A share as k of n, with n the effective number of rows; without weights, rows."""
    n = np.broadcast_to(np.asarray(total) ** 2 / squares, share.shape)
    return share * n, n


def thinned(tp: np.ndarray, fp: np.ndarray, most: int = MOST) -> np.ndarray:
    """Places that keep the shape of both curves: even in recall, even in FPR, dense at the top."""
    size = tp.size
    if size <= most:
        return np.arange(size)
    share = most // 4
    recall = np.searchsorted(tp, np.linspace(0, tp[-1], share))
    fpr = np.searchsorted(fp, np.linspace(0, fp[-1], share))
    places = np.r_[recall, fpr, spread_over(size, most - 2 * share - 4), 0, size - 1]
    return np.unique(np.clip(places, 0, size - 1))
