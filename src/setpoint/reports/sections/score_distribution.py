"""Distribution of the scores in each class, and the share of positives along the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint._core.json_codec import Record
from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns
from setpoint.reports.sections.key_figures import weighted_share
from setpoint.statistics.confidence_intervals import share_interval

BINS = 48  #: of a histogram
GROUPS = 12  #: of a reliability diagram


@dataclass(frozen=True, eq=False)
class ScoreDistribution(Record):
    """Shares of each class between the edges; the thresholds of the rule; the kind of score."""

    edges: NDArray[np.float64]
    positive: NDArray[np.float64]
    other: NDArray[np.float64]
    cuts: tuple[float, ...]
    kind: str


@dataclass(frozen=True, eq=False)
class Reliability(Record):
    """Share of positives in groups of rows with similar scores.

    Attributes
    ----------
    x : numpy.ndarray
        The mean score of each group.
    y, low, high : numpy.ndarray
        Its share of positives, and the 95% interval.
    rows : tuple of int
    probability : bool
        Whether the scores are declared to be probabilities.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: tuple[int, ...]
    probability: bool


def distribution(columns: Columns, rule: DecisionRule) -> ScoreDistribution:
    """Histograms of the scores of both classes, each as shares of its own class.

    Scores beyond the 0.1% at either end are gathered in the outermost bins.
    """
    actual, scores = np.asarray(columns.actual), np.asarray(columns.scores, np.float64)
    low, high = np.quantile(scores, [0.001, 0.999])
    cuts = [t for t in rule.point.cuts() if np.isfinite(t)]
    if columns.task.score == "probability":
        low, high = 0.0, 1.0
    low, high = min([low, *cuts]), max([high, *cuts])
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    inside = np.clip(scores, low, high)
    weight = np.ones(scores.size) if columns.weight is None else columns.weight
    positive, other = (
        np.histogram(inside[rows], edges, weights=weight[rows])[0] for rows in (actual, ~actual)
    )
    return ScoreDistribution(
        edges=edges,
        positive=positive / positive.sum() if positive.sum() else positive,
        other=other / other.sum() if other.sum() else other,
        cuts=tuple(cuts),
        kind=columns.task.score,
    )


def reliability(columns: Columns) -> Reliability | None:
    """Share of positives by score, in groups that hold about as many of either class."""
    actual, scores = np.asarray(columns.actual), np.asarray(columns.scores, np.float64)
    if not actual.any() or actual.all():
        return None
    order = np.argsort(scores, kind="stable")
    share = np.where(actual, 0.5 / actual.sum(), 0.5 / (~actual).sum())[order]
    # equal scores stand in one group, whatever their order
    level = np.unique(scores[order], return_inverse=True)[1]
    upto = np.maximum.reduceat(np.cumsum(share), np.flatnonzero(np.r_[True, np.diff(level) > 0]))
    group = np.minimum((upto[level] * GROUPS - 1e-9).astype(np.int64), GROUPS - 1)
    weight = None if columns.weight is None else columns.weight[order]
    means, shares, lows, highs, sizes = [], [], [], [], []
    for g in np.unique(group):
        rows = group == g
        value, size = weighted_share(actual[order], rows, weight)
        if value is None:
            continue
        low, high = share_interval(value * size, size)
        own = None if weight is None else weight[rows]
        means.append(np.average(scores[order][rows], weights=own))
        shares.append(value)
        lows.append(low)
        highs.append(high)
        sizes.append(int(rows.sum()))
    return Reliability(
        x=np.array(means),
        y=np.array(shares),
        low=np.array(lows, np.float64),
        high=np.array(highs, np.float64),
        rows=tuple(sizes),
        probability=columns.task.score == "probability",
    )
