"""SP103: columns that are spread otherwise on one side of a split than on the other.

    numbers     Kolmogorov & Smirnov's distance, two samples
    levels      χ² over the levels (rare ones together); the distance is half the sum of |p − q|

Every column is tested, and its missing values; the level is shared among all tests (Bonferroni).
A difference below ``SMALL`` is not told, however sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from setpoint._core.words import listing
from setpoint.reports.checks.check_record import LOOK, NOT_APPLICABLE, PASSED, Check
from setpoint.reports.checks.column_samples import (
    LEVELS,
    NUMBER,
    SampledColumn,
    columns_of,
    positions,
    some_rows,
)

CODE, TITLE = "SP103", "Drift between train and certify"
LEVEL = 0.01  #: the chance of a false alarm, all columns together
SMALL = 0.05  #: a distance that is worth a look
ROWS, LEAST, MOST_LEVELS = 8_000, 25, 40


def drift(X: Any, train_rows: Any, certify_rows: Any) -> Check:
    """Test every column for a difference between two parts.

    Parameters
    ----------
    X : pandas.DataFrame or array of shape (n, d)
    train_rows, certify_rows : array-like
        Rows of either part, as positions or as a mask.
    """
    sides = [positions(rows, len(X)) for rows in (train_rows, certify_rows)]
    if min(map(len, sides)) < LEAST:
        why = f"A part has fewer than {LEAST} rows."
        return Check(CODE, TITLE, NOT_APPLICABLE, why)
    first, second = (some_rows(rows, ROWS, seed) for seed, rows in enumerate(sides))
    rows, size = np.concatenate([first, second]), len(first)
    tests = [test for column in columns_of(X, rows) for test in _tests(column, size)]
    if not tests:
        return Check(CODE, TITLE, NOT_APPLICABLE, "No column can be tested.")
    moved = [(d, name, p) for name, d, p in tests if p <= LEVEL / len(tests) and d >= SMALL]
    if not moved:
        return Check(
            CODE,
            TITLE,
            PASSED,
            f"No column differs by {SMALL} or more beyond chance ({len(tests)} tests, level {LEVEL}"
            " in all).",
        )
    names = (f'"{name}" ({d:.2f})' for d, name, _ in sorted(moved, reverse=True))
    return Check(
        CODE,
        TITLE,
        LOOK,
        f"Spread otherwise in certify than in train (distance from 0 to 1): {listing(names)}. A "
        "proof is about rows like the certify rows: which of the two are the rows to come like?",
    )


def _tests(column: SampledColumn, size: int) -> Iterator[tuple[str, float, float]]:
    """Name, distance and p-value of each test of a column; the first ``size`` rows are train."""
    values = column.values
    missing = np.isnan(values) if column.kind == NUMBER else values < 0
    if missing.any() and not missing.all():
        yield (f"{column.name} missing", *_levels(missing.astype(np.int64), size))
    first, second = (part[~gone] for part, gone in (
        (values[:size], missing[:size]), (values[size:], missing[size:])))  # fmt: skip
    if min(len(first), len(second)) < LEAST or column.distinct < 2:
        return
    if column.kind == NUMBER:
        yield (column.name, *_numbers(first, second))
    elif column.kind == LEVELS and column.distinct < 0.5 * len(values):
        yield (column.name, *_levels(np.concatenate([first, second]), len(first)))


def _numbers(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Kolmogorov–Smirnov by its limit law, which ties only make more cautious."""
    from scipy.stats import kstwo

    first, second = np.sort(first), np.sort(second)
    both = np.concatenate([first, second])
    a = np.searchsorted(first, both, side="right") / len(first)
    b = np.searchsorted(second, both, side="right") / len(second)
    distance = float(abs(a - b).max())
    effective = len(first) * len(second) / (len(first) + len(second))
    return distance, float(kstwo.sf(distance, max(round(effective), 1)))


def _levels(codes: np.ndarray, size: int) -> tuple[float, float]:
    """χ² of two rows of counts; levels that are too rare for it stand together."""
    from scipy.stats import chi2

    codes = codes - codes.min()
    count = int(codes.max()) + 1
    table = np.array([np.bincount(part, minlength=count) for part in (codes[:size], codes[size:])])
    order = np.argsort(-table.sum(0))
    table = table[:, order]
    expected = table.sum(0) * min(size, len(codes) - size) / len(codes)
    kept = min(int((expected >= 5).sum()), MOST_LEVELS)
    pooled = np.c_[table[:, :kept], table[:, kept:].sum(1)]
    rest = pooled[:, -1].sum() * min(size, len(codes) - size) / len(codes)
    if rest < 5:  # too few even together: left to the commonest level
        pooled = np.c_[pooled[:, :1] + pooled[:, -1:], pooled[:, 1:-1]] if kept else pooled[:, :0]
    if pooled.shape[1] < 2:
        return 0.0, 1.0
    sizes = pooled.sum(1, keepdims=True)
    mean = sizes * pooled.sum(0) / pooled.sum()
    statistic = ((pooled - mean) ** 2 / mean).sum()
    shares = pooled / sizes
    distance = float(abs(shares[0] - shares[1]).sum() / 2)
    return distance, float(chi2.sf(statistic, pooled.shape[1] - 1))
