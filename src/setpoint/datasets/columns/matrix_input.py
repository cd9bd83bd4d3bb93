"""A user's table in one form: a block of numbers, or a column at a time, with names or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from setpoint._core.arrays import is_tensor, to_numpy
from setpoint._core.errors import DataError, KindError
from setpoint.datasets.columns.cell_values import complex_error
from setpoint.datasets.columns.column_names import quoted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Matrix:
    """Rows and columns as they were given.

    Attributes
    ----------
    data : pandas.DataFrame or numpy.ndarray
        Two-dimensional; an array is of numbers, truth values or objects. A data frame of plain
        numbers is held as an array.
    names : tuple of str
        The columns; those of an array are called x0, x1, ….
    named : bool
        Whether the user named them.
    places : numpy.ndarray or range
        Where the rows stand in the table given, counted from 0.
    """

    data: Any
    names: tuple[str, ...]
    named: bool
    places: Any

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.data)

    @property
    def block(self) -> np.ndarray | None:
        """The whole as an array of numbers; None where a column may be something else."""
        is_block = isinstance(self.data, np.ndarray) and self.data.dtype.kind in "biuf"
        return self.data if is_block else None

    def column(self, j: int) -> pd.Series:
        """One column, indexed by the places of its rows."""
        import pandas as pd

        if isinstance(self.data, np.ndarray):
            # dtype is stated: left alone, pandas makes texts of objects that are all text.
            return pd.Series(self.data[:, j], index=self.places, dtype=self.data.dtype)
        return cast("pd.Series", self.data.iloc[:, j].set_axis(self.places))

    def only(self, rows: np.ndarray) -> Matrix:
        """The rows flagged."""
        if rows.all():
            return self
        data = self.data[rows] if isinstance(self.data, np.ndarray) else self.data.loc[rows]
        return Matrix(data, self.names, self.named, np.flatnonzero(rows))

    def like(self, names: Sequence[str], named: bool) -> Matrix:
        """The columns in the order of those fitted: by name where both have names.

        Raises
        ------
        DataError
            If one is missing or too many.
        """
        if not (self.named and named):
            if len(self.names) != len(names):
                raise DataError(
                    f"X has {_columns(len(self.names))}; the features were fitted on "
                    f"{_columns(len(names))}: {quoted(names)}."
                )
            return Matrix(self.data, tuple(names), named, self.places)
        if self.names == tuple(names):
            return self
        absent = [name for name in names if name not in self.names]
        if absent:
            raise DataError(
                f"X lacks {_columns(len(absent), counted=False)} {quoted(absent)}; "
                f"it has {quoted(self.names)}."
            )
        extra = [name for name in self.names if name not in names]
        if extra:
            raise DataError(
                f"X has {_columns(len(extra), counted=False)} {quoted(extra)}, unknown when the "
                "features were fitted; drop what is not a feature."
            )
        place = {name: j for j, name in enumerate(self.names)}
        order = [place[name] for name in names]
        is_array = isinstance(self.data, np.ndarray)
        data = self.data[:, order] if is_array else self.data.iloc[:, order]
        return Matrix(data, tuple(names), True, self.places)


def take(X: Any) -> Matrix:
    """Take a data frame, an array, a tensor or a list of rows.

    Raises
    ------
    DataError
        If it is not two-dimensional, is empty, ragged or complex, or repeats a column name.
    KindError
        If it is sparse, or of a kind that has no rows and columns.
    """
    import pandas as pd
    from scipy import sparse

    if sparse.issparse(X):
        raise KindError("X is sparse; give a dense table, for example X.toarray().")
    if isinstance(X, pd.DataFrame):
        names = tuple(map(str, X.columns))
        refuse_repeated_names(names)
        refuse_empty(X.shape)
        numeric = all(isinstance(d, np.dtype) and d.kind in "biuf" for d in X.dtypes)
        data = X.to_numpy(dtype=np.float64) if numeric else X
        return Matrix(data, names, True, range(len(X)))
    if isinstance(X, str | bytes | dict | set) or X is None:
        raise KindError(f"X is a {type(X).__name__}; give a table: a data frame, or rows of cells.")
    data = _array(X)
    if data.ndim != 2:
        ways = ". Reshape your data: X.reshape(-1, 1) is one column, X.reshape(1, -1) one row"
        raise DataError(
            f"Expected 2D array, but X has {data.ndim} dimension{'s' * (data.ndim != 1)}; give "
            f"rows and columns{ways if data.ndim == 1 else ''}."
        )
    refuse_empty(data.shape)
    return Matrix(data, tuple(f"x{j}" for j in range(data.shape[1])), False, range(len(data)))


def _array(X: Any) -> np.ndarray:
    """An array of numbers, truth values or objects."""
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.float64), np.nan)
    if is_tensor(X):
        data = to_numpy(X)
    elif isinstance(X, list | tuple):
        data = _listed(X)
    else:
        data = np.asarray(X)
    kind = data.dtype.kind
    if kind == "c":
        raise complex_error("X")
    if kind in "mM":
        raise DataError(
            "X holds dates or durations; turn them into numbers, for example days: "
            'X / numpy.timedelta64(1, "D"), dates after the first one is subtracted.'
        )
    if kind in "SV":
        way = "X.astype(str)" if kind == "S" else "a data frame"
        raise KindError(f"X is an array of {data.dtype}; give {way}.")
    return data if kind in "biufO" else data.astype(object)


def _listed(rows: Sequence[Any]) -> np.ndarray:
    """A list of rows; each cell keeps its kind, where numpy would make 1 a text beside "a"."""
    try:
        data = np.asarray(rows)
    except (ValueError, OverflowError):
        data = None
    if data is not None and (data.dtype.kind in "biufcmMO" or data.ndim != 2):
        return data
    if not all(isinstance(row, Iterable) and not isinstance(row, str | dict) for row in rows):
        raise DataError("X has rows that are no lists of cells; each row must be one.")
    cells = [list(row) for row in rows]
    width = len(cells[0])
    for i, row in enumerate(cells):
        if len(row) != width:
            raise DataError(
                f"X is ragged: data row 1 has {width} cells, data row {i + 1} has {len(row)}; "
                "give each row the same columns."
            )
    data = np.empty((len(cells), width), dtype=object)
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):  # one by one: a list in a cell stays a cell
            data[i, j] = cell
    return data


def refuse_repeated_names(names: Sequence[str]) -> None:
    """Raise if two columns bear one name."""
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise DataError(f'{names.count(name)} columns are named "{name}"; rename all but one.')


def refuse_empty(shape: tuple[int, ...]) -> None:
    """Raise if a table has no rows or no columns."""
    rows, columns = shape
    if rows == 0:
        raise DataError(f"X has 0 sample(s) (shape={shape}); at least one row is needed.")
    if columns == 0:
        raise DataError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _columns(many: int, counted: bool = True) -> str:
    word = "column" + "s" * (many != 1)
    return f"{many} {word}" if counted else f"the {word}"
