"""SP103: drift, columns distributed differently on the two sides of a split.

    numbers     Kolmogorov & Smirnov's distance, two samples
    levels      χ² over the levels (rare ones together); the distance is half the sum of |p − q|

Every column is tested, and its missing values; the level is shared among all tests (Bonferroni).
A difference below ``SMALL`` is not reported, however sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from setpoint._core.words import listing
from setpoint.reports.checks.check_record import Check, CheckName
from setpoint.reports.checks.column_samples import (
    LEVELS,
    NUMBER,
    SampledColumn,
    columns_of,
    positions,
    some_rows,
)

SP103 = CheckName("SP103", "Drift between train and certify")
LEVEL = 0.01  #: the chance of a false alarm, all columns together
SMALL = 0.05  #: a distance that is worth a look
ROWS = 8_000  #: of each part that are tested: enough to see a distance of SMALL at that level
LEAST = 25  #: rows of a part below which nothing is tested
MOST_LEVELS = 40  #: levels tested one by one; the rarer ones stand together
EXPECTED = 5  #: rows of a level expected on the smaller side, for χ² to follow its law (Cochran)


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
        return SP103.not_applicable(f"A part has fewer than {LEAST} rows.")
    first, second = (some_rows(rows, ROWS, seed) for seed, rows in enumerate(sides))
    rows, size = np.concatenate([first, second]), len(first)
    tests = [test for column in columns_of(X, rows) for test in _tests(column, size)]
    if not tests:
        return SP103.not_applicable("No column can be tested.")
    moved = [(d, name, p) for name, d, p in tests if p <= LEVEL / len(tests) and d >= SMALL]
    if not moved:
        return SP103.passed(
            f"No column differs by {SMALL} or more beyond chance ({len(tests)} tests, level {LEVEL}"
            " in all).",
        )
    names = (f'"{name}" ({d:.2f})' for d, name, _ in sorted(moved, reverse=True))
    return SP103.look(
        f"Spread otherwise in certify than in train (distance from 0 to 1): {listing(names)}. A "
        "proof is about rows like the certify rows: which of the two are the rows to come like?",
    )


def _tests(column: SampledColumn, size: int) -> Iterator[tuple[str, float, float]]:
    """Name, distance and p-value of each test of a column; the first ``size`` rows are train."""
    values = column.values
    missing = np.isnan(values) if column.kind == NUMBER else values < 0
    if missing.any() and not missing.all():
        yield (f"{column.name} missing", *_levels(missing.astype(np.int64), size))
    first = values[:size][~missing[:size]]
    second = values[size:][~missing[size:]]
    if min(len(first), len(second)) < LEAST or column.distinct < 2:
        return
    if column.kind == NUMBER:
        yield (column.name, *_numbers(first, second))
    elif column.kind == LEVELS and column.distinct < 0.5 * len(values):
        yield (column.name, *_levels(np.concatenate([first, second]), len(first)))


def _numbers(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Kolmogorov–Smirnov by its limit law, which ties only make more cautious."""
    from scipy.stats import ks_2samp

    test: Any = ks_2samp(first, second, method="asymp")
    return float(test.statistic), float(test.pvalue)


def _levels(codes: np.ndarray, size: int) -> tuple[float, float]:
    """χ² of two rows of counts; levels that are too rare for it stand together."""
    from scipy.stats import chi2_contingency

    codes = codes - codes.min()
    count = int(codes.max()) + 1
    table = np.array([np.bincount(part, minlength=count) for part in (codes[:size], codes[size:])])
    table = table[:, np.argsort(-table.sum(0))]
    smaller = min(size, len(codes) - size) / len(codes)
    common = min(int((table.sum(0) * smaller >= EXPECTED).sum()), MOST_LEVELS)
    pooled = np.c_[table[:, :common], table[:, common:].sum(1)]
    if pooled[:, -1].sum() * smaller < EXPECTED:  # too few even together: left to the commonest
        pooled = np.c_[pooled[:, :1] + pooled[:, -1:], pooled[:, 1:-1]] if common else pooled[:, :0]
    if pooled.shape[1] < 2:
        return 0.0, 1.0
    test: Any = chi2_contingency(pooled, correction=False)
    shares = pooled / pooled.sum(1, keepdims=True)
    return float(abs(shares[0] - shares[1]).sum() / 2), float(test.pvalue)
