"""SP102: rows with the same columns on both sides of a split."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from setpoint._core.words import listing
from setpoint.reports.checks.check_record import Check, CheckName
from setpoint.reports.checks.column_samples import frame_of, positions

SP102 = CheckName("SP102", "The same rows on both sides of a split")
LIMIT = 0.01  #: share of the smaller part from which a person should look


def duplicates(X: Any, parts: Mapping[str, Any]) -> Check:
    """Count rows of one part that stand in another with the same values in every column.

    Parameters
    ----------
    X : pandas.DataFrame or array of shape (n, d)
    parts : mapping of str to rows
        The rows of each part, as positions or as a mask: ``{"train": …, "certify": …}``.
    """
    frame = frame_of(X)
    marks = row_hashes(frame)
    own = {name: marks[positions(rows, len(frame))] for name, rows in parts.items()}
    own = {name: hashes for name, hashes in own.items() if len(hashes)}
    if len(own) < 2:
        return SP102.not_applicable("There is one part only.")
    overlaps = []
    for (a, first), (b, second) in combinations(own.items(), 2):
        fewer, more = ((b, second), (a, first)) if len(second) <= len(first) else (
            (a, first), (b, second))  # fmt: skip
        share = float(np.isin(fewer[1], more[1]).mean())
        overlaps.append((share, fewer[0], more[0]))
    worst = max(overlaps)
    sentence = f"{worst[0]:.2%} of the {worst[1]} rows have the same columns as a row of {worst[2]}"
    if worst[0] < LIMIT:
        return SP102.passed(f"{sentence}.")
    others = [f"{share:.1%} of {a} in {b}" for share, a, b in overlaps if share >= LIMIT]
    within = _twins(own[worst[2]])
    return SP102.look(
        f"{sentence}{f' (all: {listing(others)})' if len(others) > 1 else ''}. Within {worst[2]} "
        f"{within:.1%} of the rows have such a twin: if the columns take few values that is "
        "chance, if it is the same case counted twice the figures flatter. Keep copies in one "
        "part by splitting by group.",
    )


def row_hashes(frame: Any) -> np.ndarray:
    """A 64-bit mark of each row; rows with the same values have the same."""
    from pandas import util

    hashing: Any = util
    marks = np.zeros(len(frame), np.uint64)
    for j in range(frame.shape[1]):  # column by column: one of them in memory at a time
        series = frame.iloc[:, j]
        try:
            own = hashing.hash_pandas_object(series, index=False).to_numpy()
        except TypeError:  # things without a hash
            own = hashing.hash_array(series.astype(str).to_numpy(dtype=object))
        marks = marks * np.uint64(0x9E3779B97F4A7C15) + own
    return marks


def _twins(marks: np.ndarray) -> float:
    _, where, counts = np.unique(marks, return_inverse=True, return_counts=True)
    return float((counts[where] > 1).mean())
