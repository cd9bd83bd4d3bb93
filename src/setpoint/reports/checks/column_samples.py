"""A table's columns as a check looks at them: numbers, or codes of levels. Few rows are enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

NUMBER, LEVELS = "number", "levels"


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """One column of some rows.

    Attributes
    ----------
    name : str
    kind : {"number", "levels"}
    values : numpy.ndarray
        Numbers as float64, not-a-number where missing; levels as codes, −1 where missing.
    distinct : int
        Of the rows that are looked at.
    date : bool
        Whether the numbers are moments.
    """

    name: str
    kind: str
    values: np.ndarray
    distinct: int
    date: bool = False


def frame_of(X: Any) -> Any:
    """A data frame: the one given, or one of the columns of a matrix."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    matrix = np.asarray(X)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    return pd.DataFrame(matrix, columns=[f"column {j}" for j in range(matrix.shape[1])])


def columns_of(X: Any, rows: np.ndarray) -> Iterator[SampledColumn]:
    """The columns of some rows, one after the other."""
    frame = frame_of(X)
    for j, name in enumerate(frame.columns):
        yield column_of(str(name), frame.iloc[:, j].iloc[rows])


def column_of(name: str, series: Any) -> SampledColumn:
    """A series as numbers or codes, by its type."""
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        moments = series.to_numpy(dtype=f"{'M' if dtype.kind == 'M' else 'm'}8[ns]")
        values = moments.astype(np.int64).astype(np.float64)
        values[np.isnat(moments)] = np.nan
        return SampledColumn(name, NUMBER, values, _distinct(values), date=True)
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return SampledColumn(name, NUMBER, values, _distinct(values))
    if not isinstance(dtype, pd.CategoricalDtype):
        series = series.where(series.isna(), series.astype(str))  # mixed and unhashable things too
    codes, levels = pd.factorize(series)
    return SampledColumn(name, LEVELS, codes.astype(np.int64), len(levels))


def _distinct(values: np.ndarray) -> int:
    return len(np.unique(values[~np.isnan(values)]))


def chance(seed: int) -> np.random.Generator:
    """Random numbers that no user's seed 0 gives: a half must not follow a label made by it."""
    return np.random.default_rng([0x5E7901, seed])


def some_rows(rows: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """At most so many of the rows, drawn without replacement, in their order."""
    if len(rows) <= most:
        return rows
    drawn = chance(seed).choice(len(rows), most, replace=False)
    return rows[np.sort(drawn)]


def positions(rows: Any, size: int) -> np.ndarray:
    """Rows given as a mask or as positions, as positions."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (size,):
        return np.flatnonzero(rows)
    return rows.astype(np.int64)
