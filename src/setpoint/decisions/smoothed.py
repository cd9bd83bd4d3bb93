"""What a goal reads along the threshold if P(positive | score) is a smooth curve.

The best of many thresholds owes some of its merit to chance: at the top of the ranking a rate is
made of few rows, and the highest of them all is too high. A curve through all rows (see smoothing),
drawn from its posterior, does not follow single rows: in place of its label each row counts p as a
positive and 1 − p as a negative, summed up between one threshold and the next.
"""

from __future__ import annotations

import numpy as np

from setpoint.decisions.sensitivity.value_function import Along
from setpoint.expressions import Columns
from setpoint.statistics.score_calibration import drawn_curves

DRAWS = 32
MOST_ROWS = 8000  #: rows that the curve is drawn through
EACH = 16  #: rows that stand for those between two thresholds


def smoothed(land: Along, places: np.ndarray) -> list[np.ndarray] | None:
    """Per constraint its metric at some candidates (the first among them), (draws, candidates).

    None where the goal speaks of groups: the curve is that of all rows.
    """
    if land.goal.columns:
        return None
    thresholds = land.sweep.thresholds[places].astype(np.float64)
    ranked = np.sort(np.asarray(land.columns.scores, np.float64))[::-1]
    ends = np.r_[np.searchsorted(-ranked, -thresholds[1:], side="right"), ranked.size]
    counts = np.diff(np.r_[0, ends])
    within = (np.arange(EACH) + 0.5) / EACH
    ranks = np.minimum(ends - counts + np.floor(np.outer(within, counts)), ranked.size - 1)
    standing = ranked[ranks.astype(np.int64)]  # (EACH, thresholds)
    some = _some(land.columns)
    known = np.asarray(some.scores, np.float64)
    order = np.argsort(known, kind="stable")
    scores = np.r_[thresholds[1:], ranked[-1] - 1.0]  # what lies below the last is below all
    found: list[list[np.ndarray]] = [[] for _ in land.asked]
    for curve in drawn_curves(some, DRAWS):
        share = np.interp(standing, known[order], curve[order]).mean(0)
        drawn = Along(land.goal, _counted(land.columns, scores, counts * share, counts))
        for j, asked in enumerate(land.asked):
            found[j].append(asked.sign * drawn.excess[j][: places.size])
    return [np.array(values) for values in found]


def _some(columns: Columns) -> Columns:
    if columns.size <= MOST_ROWS:
        return columns
    rows = np.random.default_rng(0).choice(columns.size, MOST_ROWS, replace=False)
    part = columns.take(rows)
    return part if 0 < np.count_nonzero(part.actual) < part.size else columns


def _counted(
    columns: Columns, scores: np.ndarray, positive: np.ndarray, counts: np.ndarray
) -> Columns:
    """Two rows for each score: so many positives, and the rest."""
    return Columns(
        columns.task,
        np.repeat([True, False], scores.size),
        scores=np.tile(scores, 2),
        weight=np.maximum(np.r_[positive, counts - positive], 0.0),
    )
