"""The cells of one column: read as real numbers or as levels, or refused with a sentence.

The index of a column holds the places of its rows in the table given, for the sentences.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, KindError

if TYPE_CHECKING:
    import pandas as pd


# What pandas.api.types.infer_dtype says of cells of one kind, missing ones aside.
_NUMERIC = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}
_TIMES = {"datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"}


@dataclass(frozen=True, eq=False)
class Levels:
    """A column of levels: row i holds ``texts[codes[i]]``, or nothing where the code is −1."""

    codes: np.ndarray
    texts: tuple[str, ...]


def is_numeric(series: pd.Series, name: str) -> bool:
    """Whether a column is one of numbers (or truth values), else it is one of levels.

    A column declared as categories is one of levels, whatever the categories are; a column without
    a single value is one of numbers.

    Raises
    ------
    DataError, KindError
        If it is neither: dates, durations, complex numbers, lists, bytes.
    """
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype | pd.IntervalDtype):
        return False
    if isinstance(dtype, pd.SparseDtype):
        raise KindError(
            f'column "{name}" is sparse; give dense values, for example '
            f'X["{name}"].sparse.to_dense().'
        )
    if types.is_datetime64_any_dtype(dtype) or dtype.kind in "mM":
        raise time_error(name, None)
    if isinstance(dtype, pd.PeriodDtype):
        raise time_error(name, None)
    if types.is_complex_dtype(dtype):
        raise complex_error(f'column "{name}"')
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        return True
    cells = _objects(series)
    inferred = types.infer_dtype(cells, skipna=True)
    if inferred in _NUMERIC or inferred == "string":
        return inferred != "string"
    return _are_numbers(series, inferred, name)


def _are_numbers(series: pd.Series, inferred: str, name: str) -> bool:
    """Look at the cells one by one: all numbers, or numbers and texts; nothing else will do."""
    import pandas as pd

    cells = _objects(series)
    present = np.flatnonzero(~pd.isna(cells))
    if inferred in _TIMES:
        raise time_error(name, _row(series, present[0]) if len(present) else None)
    kinds = {type(cells[i]) for i in present}
    named = {kind for kind in kinds if issubclass(kind, str | pd.Interval) or _is_number(kind)}
    for i in present if kinds - named else ():
        if type(cells[i]) not in named:
            raise _strange(cells[i], _row(series, i), name)
    return all(map(_is_number, kinds))


def floats(series: pd.Series, name: str) -> np.ndarray:
    """Cells of a column of numbers as 64-bit floats, NaN where one is missing."""
    import pandas as pd
    from pandas.api import types

    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if not is_numeric(series, name):
        cells = _objects(series)
        i = next(i for i in np.flatnonzero(~pd.isna(cells)) if not _is_number(type(cells[i])))
        raise DataError(
            f'column "{name}" held numbers when the features were fitted, and now holds '
            f'"{cells[i]}" in data row {_row(series, i)}; give a number, or leave the cell missing.'
        )
    if not types.is_object_dtype(series.dtype) and series.dtype.kind in "biuf":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    cells = _objects(series)
    present = ~pd.isna(cells)
    values = np.full(len(cells), np.nan)
    try:
        values[present] = cells[present].astype(np.float64)
    except OverflowError:  # a Python int may have any number of digits
        i = next(i for i in np.flatnonzero(present) if abs(cells[i]) > sys.float_info.max)
        raise DataError(
            f'column "{name}" holds a number too large for a 64-bit float in data row '
            f"{_row(series, i)}; give smaller numbers, for example their logarithm."
        ) from None
    return values


def levels(series: pd.Series, name: str) -> Levels:
    """Cells of a column as levels, each called by its text."""
    import pandas as pd
    from pandas.api import types

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = series.cat.codes.to_numpy(), list(series.cat.categories)
    elif isinstance(series.dtype, pd.StringDtype):
        codes, uniques = pd.factorize(series.array)
        values = list(uniques)
    else:
        is_numeric(series, name)  # only to refuse what has no text
        cells = _objects(series)
        if types.infer_dtype(cells, skipna=True) != "string":
            # Not factorized as they are: to a hash table 1 and True are one key.
            cells = np.array([None if pd.isna(v) else text(v) for v in cells], dtype=object)
        codes, uniques = pd.factorize(cells)
        values = list(uniques)
    # Two values may have one text (1 and "1"): they are one level.
    merged, texts = pd.factorize(np.array([*map(text, values), ""], dtype=object)[:-1])
    return Levels(np.append(merged, -1)[codes], tuple(map(str, texts)))


def text(value: Any) -> str:
    """The text of a level; a whole number has the same as integer and as float.

    >>> text("a"), text(2.0), text(2), text(0.5), text(True)
    ('a', '2', '2', '0.5', 'True')
    """
    if not isinstance(value, bool | np.bool_) and _is_number(type(value)):
        if abs(value) < 2**53 and value == int(value):
            return str(int(value))
    return str(value)


def complex_error(what: str) -> DataError:
    """The error for complex numbers."""
    return DataError(
        f"Complex data not supported: {what} holds complex numbers; give real ones, for example "
        "the real and the imaginary part as two columns."
    )


def _objects(series: pd.Series) -> np.ndarray:
    return series.to_numpy(dtype=object)


def _is_number(kind: type) -> bool:
    return issubclass(kind, numbers.Real | Decimal | np.bool_)


def _row(series: pd.Series, i: Any) -> int:
    """The data row of cell i, counted from 1."""
    return int(series.index[i]) + 1


def time_error(name: str, row: int | None) -> DataError:
    """The error for dates and durations, which have no place among numbers."""
    where = "" if row is None else f", the first in data row {row}"
    return DataError(
        f'column "{name}" holds dates or durations{where}; turn them into numbers, for example '
        f'days: (X["{name}"] - start) / pandas.Timedelta(days=1), or leave the column out.'
    )


def _strange(cell: Any, row: int, name: str) -> Exception:
    import datetime

    if isinstance(cell, complex | np.complexfloating):
        return complex_error(f'column "{name}"')
    if isinstance(cell, datetime.date | datetime.time | datetime.timedelta):
        return time_error(name, row)
    shown = repr(cell)
    return KindError(
        f'column "{name}" holds {shown if len(shown) <= 40 else shown[:40] + "…"} '
        f"({type(cell).__name__}) in data row {row}; each argument must be a string or a real "
        "number, or missing (None)."
    )


# Levels of a column, the quick way where every cell is a text.


def levels_of(series: pd.Series, name: str) -> Levels:
    """Cells of a column as levels: what :func:`levels` gives, which looks at each level by itself.

    >>> import pandas as pd
    >>> levels_of(pd.Series(["b", None, "a", "b"]), "x")
    Levels(codes=array([ 0, -1,  1,  0]), texts=('b', 'a'))
    """
    import pandas as pd
    from pandas.api import types

    is_text = isinstance(series.dtype, pd.StringDtype) or (
        types.is_object_dtype(series.dtype) and types.infer_dtype(series, skipna=True) == "string"
    )
    if not is_text:
        return levels(series, name)
    codes, values = pd.factorize(series.array)
    return Levels(codes, tuple(np.asarray(values, dtype=object)))


# Numbers written as texts: ``12.5``, ``-3``, ``1e-4``, ``1,234`` and ``1,234,567.8``.
#
# A comma parts thousands and nothing else: ``12,5`` is no number here, and neither is ``1,23``. A
# text with a leading zero, ``007``, is a code: as a number it would lose what tells it from ``7``.


_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_CODE = re.compile(r"[+-]?0[0-9]+")


def numbers_of(texts: Iterable[str]) -> np.ndarray:
    """Texts as 64-bit floats, NaN where one is no number.

    >>> numbers_of(["1,234", " 12.5 ", "-3e2", "12,5", "?"])
    array([1234. ,   12.5, -300. ,    nan,    nan])
    """
    return np.array([_number(text.strip()) for text in texts], dtype=np.float64)


def is_code(text: str) -> bool:
    """Whether a text is of digits with a leading zero.

    >>> is_code("007"), is_code("0.5"), is_code("0")
    (True, False, False)
    """
    return _CODE.fullmatch(text.strip()) is not None


def _number(text: str) -> float:
    if _PLAIN.fullmatch(text):
        return float(text)
    return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else math.nan
