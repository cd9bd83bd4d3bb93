"""The schema of a table: which columns are used and as what, held to at every later table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.json_codec import Record
from setpoint._core.words import listing
from setpoint.datasets.columns.cell_values import floats, is_numeric, levels_of, numbers_of
from setpoint.datasets.columns.column_kinds import KINDS, Column, column_of, plain, refuse_infinite
from setpoint.datasets.columns.column_names import absent_column, absent_features, quoted
from setpoint.datasets.columns.dates import WAYS, expand, instants, likely, read
from setpoint.datasets.columns.matrix_input import refuse_empty, refuse_repeated_names, take

if TYPE_CHECKING:
    import pandas as pd


# The cells of one column of a later table, as the kind that the schema found.


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
    levels = levels_of(series, column.name)
    numbers = numbers_of(levels.texts)
    readable = ~np.isnan(numbers) | np.isin(levels.texts, column.marks)
    _refuse(series, levels.codes, readable, column, "a number")
    return np.append(numbers, np.nan)[levels.codes]


def _truths(series: pd.Series, column: Column) -> np.ndarray:
    from pandas.api import types

    if isinstance(series.dtype, np.dtype) and types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64)
    levels = levels_of(series.astype(object), column.name)
    numbers = np.array([_TRUTH.get(text.strip().lower(), np.nan) for text in levels.texts])
    _refuse(series, levels.codes, ~np.isnan(numbers), column, "true or false")
    return np.append(numbers, np.nan)[levels.codes]


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
    levels = levels_of(series, column.name)
    read_ = read(levels.texts, column.way or likely(levels.texts) or "iso")
    if column.way != "iso" and np.isnat(read_).any():
        read_ = np.where(np.isnat(read_), read(levels.texts, "iso"), read_)
    readable = ~np.isnat(read_) | np.isin(levels.texts, column.marks)
    _refuse(series, levels.codes, readable, column, "a date")
    return np.append(read_, np.datetime64("NaT"))[levels.codes]


def _refuse(
    series: pd.Series, codes: np.ndarray, readable: np.ndarray, column: Column, content: str
) -> None:
    """Raise if a cell that is there is not what the column holds."""
    wrong = ~np.append(readable, True)[codes]
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(
            f'column "{column.name}" is "{series.iloc[i]}" in data row {series.index[i] + 1}, '
            f"where the rows fitted held {content}; give {content}, or leave the cell missing."
        )


FORMAT = "setpoint schema 1"
FORMS = ("names", "places", "numbers")
_ROWS = 1 << 16  #: looked through at once for infinite numbers


@dataclass(frozen=True)
class Schema(Record):
    """How the columns of a table are used. Made by :meth:`fit`; never changes.

    ==========  ====================================================================================
    number      numbers, also those written as texts: ``"1,234"``, ``"12.5 "``
    truth       truth values, as 0 and 1
    category    texts and pandas categories, left as they are; numbers among texts are texts
    date        dates, also texts such as ``2024-05-31``, ``2024-05-31 12:30``, ``2024/05/31`` and
                ``31.05.2024``; they become the year, month, day of the week, hour (if there was a
                time of day) and days since the earliest date fitted: ``name (year)``, …
    ignored     all missing; of one value; like an id: nearly all texts distinct, whole numbers that
                count the rows or are named like an id (a float never is one); free text
    ==========  ====================================================================================

    Attributes
    ----------
    columns : tuple of Column
        One for each column of the table fitted: ``name``, ``kind``, and ``why`` it is ignored.
    form : {"names", "places", "numbers"}
        How the columns of a later table are found: by name, if the table fitted was a data frame;
        by place, if it was rows of cells; and an array of numbers is used as it is.
    notes : tuple of str
        What was ignored, or read as something else than it seems, in sentences.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "sum": ["1,200", "80", None], "when": ["2024-05-31", "2024-06-01", "2024-06-03"],
    ...     "plan": ["a", "b", "b"], "country": ["DE", "DE", "DE"]})
    >>> schema = Schema.fit(table)
    >>> schema.counts()
    {'numeric': 1, 'category': 1, 'date': 1, 'ignored': 1}
    >>> schema.apply(table)
          sum  when (year)  when (month)  when (day of week)  when (days) plan
    0  1200.0       2024.0           5.0                 4.0          0.0    a
    1    80.0       2024.0           6.0                 5.0          1.0    b
    2     NaN       2024.0           6.0                 0.0          3.0    b
    >>> schema.notes[-1]
    'column "country" is ignored: it holds one value only (DE).'
    """

    columns: tuple[Column, ...]
    form: str = "names"
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def fit(
        cls, X: Any, y: Any = None, *, keep: Sequence[str] = (), drop: Sequence[str] = ()
    ) -> Schema:
        """Find out what the columns of a table are.

        Parameters
        ----------
        X : DataFrame, array, tensor or list of rows, shape (n, k)
            An array of numbers is used as it is: all its columns are numbers, none is ignored.
        y : array-like, shape (n,) or (n, L), optional
            Only its length is looked at.
        keep, drop : sequence of str
            Columns to use although they look of no use; columns not to use.

        Raises
        ------
        DataError
            If X is empty or repeats a column name, a number is infinite, a column of ``keep`` or
            ``drop`` is not there, no column is of use, or the length of y is another.
        KindError
            If X is sparse, or a cell is neither a number nor a text nor a date.
        """
        frame, form = _frame(X)
        rows = len(frame)
        if y is not None and len(y) != rows:
            raise DataError(f"X has {rows:,} rows and y {len(y):,}; give one label a row.")
        if form == "numbers":
            if len(keep) or len(drop):
                raise KindError("keep and drop name columns, and X has no names; drop them from X.")
            _refuse_infinite(frame, 0)
            names = (f"x{j}" for j in range(frame.shape[1]))
            return cls(tuple(Column(name, "number") for name in names), form)
        names = list(map(str, frame.columns))
        _check_names(names, keep, drop)
        columns: list[Column] = []
        notes: list[str] = []
        for j, name in enumerate(names):
            column, sentences = Column(name, "ignored", why="dropped on request"), []
            if name not in drop:
                series = frame.iloc[:, j].set_axis(range(rows))
                column, sentences = column_of(series, name, name in keep)
            columns.append(column)
            notes.extend(sentences)
        schema = cls(tuple(columns), form, tuple(notes))
        if not schema.names:
            raise DataError(f"no column is of use. {' '.join(notes)}".strip())
        refuse_repeated_names(schema.names)
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns :meth:`apply` returns, in their order."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that a table must have: those not ignored."""
        return tuple(column.name for column in self.columns if column.kind != "ignored")

    def counts(self) -> dict[str, int]:
        """How many columns are of each kind; truth values count as numeric."""
        kinds = [column.kind for column in self.columns]
        return {
            "numeric": kinds.count("number") + kinds.count("truth"),
            **{kind: kinds.count(kind) for kind in ("category", "date", "ignored")},
        }

    def strangers(self, X: Any) -> tuple[str, ...]:
        """Columns of a data frame that the schema does not know; :meth:`apply` passes them over."""
        import pandas as pd

        if self.form != "names" or not isinstance(X, pd.DataFrame):
            return ()
        names = {column.name for column in self.columns}
        return tuple(name for name in map(str, X.columns) if name not in names)

    def apply(self, X: Any, first: int = 0) -> Any:
        """The usable columns of a table.

        Parameters
        ----------
        X : DataFrame, array, tensor or list of rows
            Columns of a data frame are found by name, in any order; others are passed over.
        first : int
            Rows before those of X in their file, so that errors name the row of the file.

        Returns
        -------
        DataFrame or numpy.ndarray
            Numbers as 64-bit floats (32-bit ones stay), truth values as 0.0 and 1.0, categories as
            they are, dates taken apart. Where the schema was fitted on an array of numbers, such an
            array, and the same one if X is one.

        Raises
        ------
        DataError
            If a column is missing, repeated, or a cell is not of the kind of its column.
        """
        import pandas as pd

        frame, form = _frame(X)
        if "numbers" == form == self.form:
            self._check_width(frame.shape[1])
            _refuse_infinite(frame, first)
            return frame
        if form == "numbers":
            frame = pd.DataFrame(frame)
        rows = range(first, first + len(frame))
        columns: dict[str, Any] = {}
        for column, j in self._places(frame, form):
            values = usable(frame.iloc[:, j].set_axis(rows), column)
            columns |= zip(column.outputs, values, strict=True)
        if self.form == "numbers":
            return np.column_stack(list(columns.values()))
        return pd.DataFrame(columns, index=frame.index, copy=False)

    def _places(self, frame: pd.DataFrame, form: str) -> list[tuple[Column, int]]:
        """The columns used, each with its place in a table: by name where both have names."""
        if not self.form == form == "names":
            self._check_width(frame.shape[1])
            return [(c, j) for j, c in enumerate(self.columns) if c.kind != "ignored"]
        names = list(map(str, frame.columns))
        place = {name: j for j, name in enumerate(names)}
        for name in self.inputs:
            if name not in place:
                raise absent_features([name], names)
        return [(c, place[c.name]) for c in self.columns if c.kind != "ignored"]

    def _check_width(self, width: int) -> None:
        if width != len(self.columns):
            raise DataError(
                f"X has {width} column{'s' * (width != 1)}; the model was fitted on "
                f"{len(self.columns)}: {quoted(c.name for c in self.columns)}."
            )

    def __post_init__(self) -> None:
        """Refuse what :meth:`fit` cannot have made: the file it was read from is damaged."""
        if self.form not in FORMS:
            raise _damaged(f"form is {self.form!r}, not one of {listing(FORMS)}")
        if not self.columns:
            raise _damaged("there is no list of columns")
        if len({column.name for column in self.columns}) < len(self.columns):
            raise _damaged("two columns have one name")
        for column in self.columns:
            if column.kind not in KINDS or column.way not in ("", *WAYS):
                raise _damaged(f'column "{column.name}" is of no known kind or way')
            if column.kind == "date" and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", column.origin):
                raise _damaged(f'the origin of "{column.name}" is {column.origin!r}, no date')

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {"format": FORMAT, **super().to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        FileError
            If it is something else, or damaged.

        Examples
        --------
        >>> schema = Schema.fit([["a", 1.5], ["b", 2.5]])
        >>> Schema.from_json(schema.to_json()) == schema
        True
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            written = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise FileError(f'this is no schema: the format is "{written}", not "{FORMAT}".')
        return super().from_json(data)


def _frame(X: Any) -> tuple[Any, str]:
    """The table as a data frame or an array of numbers, and how its columns are found."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        refuse_repeated_names(tuple(map(str, X.columns)))
        refuse_empty(X.shape)
        return X, "names"
    table = take(X)
    if table.block is not None:
        return table.block, "numbers"
    return pd.DataFrame(table.data, columns=list(table.names)), "places"


def _refuse_infinite(block: np.ndarray, first: int) -> None:
    if block.dtype.kind != "f":
        return
    for start in range(0, len(block), _ROWS):
        infinite = np.isinf(block[start : start + _ROWS])
        if infinite.any():
            row, j = np.argwhere(infinite)[0]
            refuse_infinite(block[start + row : start + row + 1, j], f"x{j}", [first + start + row])


def _check_names(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> None:
    for what, listed in (("keep", keep), ("drop", drop)):
        if isinstance(listed, str):
            raise KindError(f'{what} is the text "{listed}"; give a list: {what}=["{listed}"].')
        for name in listed:
            if name not in names:
                raise absent_column(name, what, names)
    both = [name for name in keep if name in drop]
    if both:
        raise DataError(f'column "{both[0]}" is both in keep and in drop; name it in one.')


def _damaged(what: str) -> FileError:
    return FileError(f"this schema is damaged: {what}.")
