"""Columns of a table, each for the role the caller states."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from setpoint._core.errors import DataError
from setpoint.datasets.columns.column_names import absent_column

if TYPE_CHECKING:
    import pandas as pd


def column(table: pd.DataFrame, name: str, role: str) -> pd.Series:
    """Return a column of a table.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows.
    name : str
        The column.
    role : str
        What it is wanted for ("label", "score", "weight"); used in messages.

    Raises
    ------
    DataError
        If there is no such column, or more than one.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"amount": [120, 950], "fraud": [0, 1]})
    >>> column(table, "fraud", "label").tolist()
    [0, 1]
    >>> column(table, "frad", "label")
    Traceback (most recent call last):
        ...
    setpoint.DataError: there is no column "frad" (label). Did you mean "fraud"? The
    columns are "amount", "fraud".
    """
    times = int(np.sum(table.columns == name))
    if times == 1:
        return cast("pd.Series", table[name])
    if times > 1:
        raise DataError(f'{times} columns are named "{name}" ({role}); rename all but one.')
    raise absent_column(name, role, table.columns)


def numbers(table: pd.DataFrame, name: str, role: str) -> np.ndarray:
    """Return a column as 64-bit floats, all of them finite.

    Truth values are not taken for numbers; a number written as text is read.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows.
    name : str
        The column.
    role : str
        What it is wanted for ("score", "weight"); used in messages.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        A copy.

    Raises
    ------
    DataError
        If the column is not there, or a value is missing, infinite or not a number.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers(pd.DataFrame({"p": [0.2, 0.9]}), "p", "score")
    array([0.2, 0.9])
    >>> numbers(pd.DataFrame({"p": [0.2, "high"]}), "p", "score")
    Traceback (most recent call last):
        ...
    setpoint.DataError: column "p" (score) has 1 value that is not a number, the first
    is "high" in data row 2.
    """
    series = column(table, name, role)
    where = f'column "{name}" ({role})'
    missing = series.isna().to_numpy(dtype=bool)
    values = _floats(series)
    strange = np.isnan(values) & ~missing
    if strange.any():
        first = int(strange.argmax())
        what = "value that is not a number" if strange.sum() == 1 else "values that are not numbers"
        raise DataError(
            f'{where} has {strange.sum()} {what}, the first is "{series.iloc[first]}" in data row '
            f"{first + 1}."
        )
    refuse_missing(missing, where)
    infinite = np.isinf(values)
    if infinite.any():
        raise DataError(f"{where} has {counted(infinite, 'infinite')}; give finite numbers.")
    return values


def refuse_missing(missing: np.ndarray, where: str) -> None:
    """Raise if any value is missing; say how many and where the first stands."""
    if missing.any():
        raise DataError(
            f"{where} has {counted(missing, 'missing')}; give each row a value or drop it."
        )


def counted(flags: np.ndarray, kind: str) -> str:
    """Say how many rows are flagged, and which is the first.

    >>> counted(np.array([False, True, True]), "missing")
    '2 missing values, the first in data row 2'
    """
    many = int(flags.sum())
    return f"{many} {kind} value{'s' * (many > 1)}, the first in data row {int(flags.argmax()) + 1}"


def _floats(series: pd.Series) -> np.ndarray:
    """Values as floats, NaN where a value is missing or is not a number."""
    import pandas as pd
    from pandas.api import types

    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    is_truth = types.is_bool_dtype(series) or types.is_complex_dtype(series)
    if types.is_numeric_dtype(series) and not is_truth:
        return series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    if not (types.is_object_dtype(series) or types.is_string_dtype(series)):
        return np.full(len(series), np.nan)  # truth values, dates, durations
    numeric = cast("pd.Series", pd.to_numeric(series.astype(object), errors="coerce"))
    truth = series.map(lambda value: isinstance(value, bool | np.bool_)).to_numpy(dtype=bool)
    return np.where(truth, np.nan, numeric.to_numpy(dtype=np.float64, na_value=np.nan))
