"""SP101: a single column that knows the label almost perfectly, or is different on every row.

numbers      AUROC of the column against the label, either way round
levels       AUROC of the share of positives of a row's level, learnt on the other half of rows
classes      of several: the share of rows guessed right from the column, in the same way,
             averaged over the classes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core.words import listing
from setpoint.reports.checks.check_record import LOOK, Check, CheckName
from setpoint.reports.checks.column_samples import (
    LEVELS,
    NUMBER,
    SampledColumn,
    chance,
    columns_of,
    frame_of,
    some_rows,
)

SP101 = CheckName("SP101", "Columns that know the label")
LIMIT = 0.99  #: from here a column is suspect
ROWS, OF_EACH, BINS = 8_000, 5, 64
LABELS = 5  #: columns of a matrix of labels that are looked at
CODES = 20  #: distinct numbers that may be codes
_LEAST = 30  #: rows below which anything can look perfect


def leakage(X: Any, y: Any) -> Check:
    """Look for a column that ranks or determines the label by itself, and for ids.

    Parameters
    ----------
    X : pandas.DataFrame or array of shape (n, d)
        The columns as they were given, before any preparation.
    y : array-like of shape (n,)
        Labels of any kind; a matrix of several labels is looked at label by label.
    """
    labels = np.asarray(y)
    if labels.ndim == 2:
        return _worst([leakage(X, labels[:, j]) for j in _halves(labels)])
    classes, codes = np.unique(labels, return_inverse=True)
    rows = _balanced(codes)
    codes = codes[rows]
    if len(rows) < _LEAST or len(classes) < 2 or np.bincount(codes).min() < OF_EACH:
        why = f"Fewer than {_LEAST} rows, or {OF_EACH} of a class: anything could look perfect."
        return SP101.not_applicable(why)
    frame = frame_of(X)
    suspects, ids, best = [], [], ("", 0.0)
    several = len(classes) > 2
    for place, column in enumerate(columns_of(frame, rows)):
        if is_id(column, frame.iloc[:, place]):
            ids.append(f'"{column.name}"')
            continue
        figure = _of_classes(column, codes) if several else _auroc(column, codes == 1)
        best = max(best, (column.name, figure), key=lambda pair: pair[1])
        if figure >= LIMIT:
            suspects.append(f'"{column.name}" ({figure:.4f})')
    what = "balanced share guessed right" if several else "AUROC"
    sentences = []
    if suspects:
        sentences.append(
            f"By themselves these tell the label almost perfectly ({what}): {listing(suspects)}. "
            "Ask whether they are known before the label is."
        )
    if ids:
        sentences.append(
            f"Different on every row, like an id or free text: {listing(ids)}. What is learnt from "
            "them does not carry over to new rows."
        )
    if sentences:
        return SP101.look(" ".join(sentences))
    most = f'; the most telling is "{best[0]}" with {best[1]:.3f}' if best[0] else ""
    return SP101.passed(f"No column reaches {what} {LIMIT} by itself{most}.")


def _halves(labels: np.ndarray) -> list[int]:
    """The labels of a matrix that are nearest to half of the rows."""
    return np.argsort(abs(labels.mean(0) - 0.5), kind="stable")[:LABELS].tolist()


def _worst(checks: list[Check]) -> Check:
    """The first of several findings that asks for a look, else the first."""
    return next((c for c in checks if c.status == LOOK), checks[0])


def _balanced(codes: np.ndarray) -> np.ndarray:
    """Some rows, about as many of each class: ranks need no more, and rare classes stay."""
    share = max(ROWS // max(len(np.unique(codes)), 1), OF_EACH)
    parts = [some_rows(np.flatnonzero(codes == k), share) for k in np.unique(codes)]
    return np.sort(np.concatenate(parts)) if parts else np.arange(0)


def is_id(column: SampledColumn, series: Any) -> bool:
    """Whether a column is different on every row: levels, or whole numbers without gaps."""
    size = len(column.values)
    if size < _LEAST or column.distinct < size or column.date or not series.is_unique:
        return False
    if column.kind == LEVELS:
        return True
    whole = bool((column.values == np.round(column.values)).all())
    return whole and float(series.max() - series.min()) < 1.05 * len(series)


def _auroc(column: SampledColumn, positive: np.ndarray) -> float:
    """How well the column ranks the label, either way round; what is missing is a value too."""
    if column.kind == LEVELS:
        return _area(_share_elsewhere(column.values, positive), positive)
    present = ~np.isnan(column.values)
    areas = [_area(present.astype(float), positive)]
    if min(positive[present].sum(), (~positive[present]).sum()) >= OF_EACH and present.mean() > 0.5:
        areas.append(_area(column.values[present], positive[present]))
    if column.distinct <= CODES:  # numbers that may be codes of levels
        codes = np.unique(column.values, return_inverse=True)[1]
        areas.append(_area(_share_elsewhere(codes, positive), positive))
    return max(max(a, 1 - a) for a in areas)


def _area(scores: np.ndarray, positive: np.ndarray) -> float:
    """The area under the ROC, by ranks; ties count half."""
    from scipy.stats import rankdata

    m = int(positive.sum())
    n = len(positive) - m
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - m * (m + 1) / 2) / (m * n)) if m and n else 0.5


def _half(size: int) -> np.ndarray:
    """Two halves by chance, the same each time."""
    return chance(0).integers(0, 2, size)


def _share_elsewhere(levels: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """For each row the share of positives of its level among the other half of the rows."""
    levels = levels - levels.min()
    half = _half(len(levels))
    shares = np.empty(len(levels))
    for side in (0, 1):
        other = half != side
        counts = np.bincount(levels[other], minlength=levels.max() + 1)
        hits = np.bincount(levels[other], positive[other], minlength=levels.max() + 1)
        share = (hits + positive.mean()) / (counts + 1)  # a level not seen has the common share
        shares[half == side] = share[levels[half == side]]
    return shares


def _of_classes(column: SampledColumn, codes: np.ndarray) -> float:
    """The share of rows of each class guessed right from the column alone, averaged."""
    levels = column.values
    if column.kind == NUMBER:
        present = ~np.isnan(levels)
        inner = np.linspace(0, 1, BINS + 1)[1:-1]
        edges = np.unique(np.quantile(levels[present], inner)) if present.any() else np.zeros(0)
        levels = np.where(present, np.searchsorted(edges, levels, side="right"), -1)
    levels = (levels - levels.min()).astype(np.int64)
    half = _half(len(levels))
    guess = np.empty(len(levels), np.int64)
    for side in (0, 1):
        other = half != side
        table = np.zeros((levels.max() + 1, codes.max() + 1))
        np.add.at(table, (levels[other], codes[other]), 1)
        guess[half == side] = table.argmax(1)[levels[half == side]]
    return float(np.mean([(guess[codes == k] == k).mean() for k in np.unique(codes)]))
