"""The cells of one column of a later table, as the kind that the schema found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint.datasets._levels import levels_of
from setpoint.datasets._written import numbers_of
from setpoint.datasets.columns.cell_values import floats, is_numeric
from setpoint.datasets.columns.column_kinds import Column, plain, refuse_infinite
from setpoint.datasets.columns.dates import expand, instants, likely, read

if TYPE_CHECKING:
    import pandas as pd

_TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


def usable(series: pd.Series, column: Column) -> list[Any]:
    """Arrays for the outputs of a column that is not ignored.

    Parameters
    ----------
    series : pandas.Series
        Indexed by the places of its rows in the table or file, for the sentences.
    column : Column

    Raises
    ------
    DataError
        If a cell is not of the kind of the column.
    """
    if column.kind == "number":
        return [_numbers(series, column)]
    if column.kind == "truth":
        return [_truths(series, column)]
    if column.kind == "date":
        return expand(_dates(series, column), np.datetime64(column.origin), column.parts)
    return [_categories(series)]


def _categories(series: pd.Series) -> Any:
    """Texts and categories as they are; dates, which have no level, as their texts."""
    series = plain(series)
    if instants(series) is not None and not series.isna().all():
        series = series.map(str).where(series.notna())
    return series.array


def _numbers(series: pd.Series, column: Column) -> np.ndarray:
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize in (4, 8):
        x = series.to_numpy()
    elif types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        kind = np.float32 if str(dtype) in ("float16", "Float32") else np.float64
        x = series.to_numpy(dtype=kind, na_value=np.nan)
    else:
        x = _written(series, column)
    refuse_infinite(x, column.name, series.index)
    return x


def _written(series: pd.Series, column: Column) -> np.ndarray:
    """Numbers among objects, categories or texts."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if is_numeric(series, column.name):
        return floats(series, column.name)
    held = levels_of(series, column.name)
    numbers = numbers_of(held.texts)
    known = ~np.isnan(numbers) | np.isin(held.texts, column.marks)
    _refuse(series, held.codes, known, column, "a number")
    return np.append(numbers, np.nan)[held.codes]


def _truths(series: pd.Series, column: Column) -> np.ndarray:
    from pandas.api import types

    if isinstance(series.dtype, np.dtype) and types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64)
    held = levels_of(series.astype(object), column.name)
    numbers = np.array([_TRUTH.get(text.strip().lower(), np.nan) for text in held.texts])
    _refuse(series, held.codes, ~np.isnan(numbers), column, "true or false")
    return np.append(numbers, np.nan)[held.codes]


def _dates(series: pd.Series, column: Column) -> np.ndarray:
    import pandas as pd

    series = plain(series)
    dates = instants(series)
    if dates is not None:
        return dates
    if series.isna().all():
        return np.full(len(series), np.datetime64("NaT"), dtype="M8[us]")
    if not isinstance(series.dtype, pd.StringDtype):
        series = series.astype(object)
    held = levels_of(series, column.name)
    read_ = read(held.texts, column.way or likely(held.texts) or "iso")
    if column.way != "iso" and np.isnat(read_).any():
        read_ = np.where(np.isnat(read_), read(held.texts, "iso"), read_)
    known = ~np.isnat(read_) | np.isin(held.texts, column.marks)
    _refuse(series, held.codes, known, column, "a date")
    return np.append(read_, np.datetime64("NaT"))[held.codes]


def _refuse(
    series: pd.Series, codes: np.ndarray, known: np.ndarray, column: Column, wanted: str
) -> None:
    """Raise if a cell that is there is not what the column holds."""
    wrong = ~np.append(known, True)[codes]
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(
            f'column "{column.name}" is "{series.iloc[i]}" in data row {series.index[i] + 1}, '
            f"where the rows fitted held {wanted}; give {wanted}, or leave the cell missing."
        )
