"""The scores themselves: how they are spread in each class, and what share of rows is positive."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns
from setpoint.reports.sections.key_figures import weighted_share
from setpoint.statistics.confidence_intervals import share_interval

BINS = 48  #: of a histogram
GROUPS = 12  #: of a reliability diagram


def distribution(columns: Columns, rule: DecisionRule) -> dict[str, Any]:
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
    sides = {}
    for name, rows in (("positive", actual), ("other", ~actual)):
        counts = np.histogram(inside[rows], edges, weights=weight[rows])[0]
        sides[name] = counts / counts.sum() if counts.sum() else counts
    return {"edges": edges, **sides, "cuts": cuts, "kind": columns.task.score}


def reliability(columns: Columns) -> dict[str, Any] | None:
    """Share of positives by score, in groups that hold about as many of either class.

    Returns
    -------
    dict or None
        ``x`` the mean score of each group, ``y`` its share of positives with ``low`` and ``high``,
        ``rows``; ``probability`` whether the scores are declared to be probabilities.
    """
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
    found: dict[str, list[float]] = {name: [] for name in ("x", "y", "low", "high", "rows")}
    for g in np.unique(group):
        rows = group == g
        value, size = weighted_share(actual[order], rows, weight)
        if value is None:
            continue
        low, high = share_interval(value * size, size)
        found["x"].append(float(np.average(scores[order][rows], weights=_of(weight, rows))))
        for name, x in (("y", value), ("low", low), ("high", high), ("rows", int(rows.sum()))):
            found[name].append(x)
    return {**found, "probability": columns.task.score == "probability"}


def _of(weight: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weight is None else weight[rows]
