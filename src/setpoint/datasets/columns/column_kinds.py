"""The kind of one column of a user's table: what it can be used for, or why it is not used."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint.datasets.columns.cell_values import (
    Levels,
    floats,
    is_code,
    is_numeric,
    levels_of,
    numbers_of,
)
from setpoint.datasets.columns.column_names import quoted
from setpoint.datasets.columns.dates import PARTS, has_clock, instants, likely, read, way_of

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("number", "truth", "category", "date", "ignored")
SHARE = 0.95  #: of the present cells must be numbers (dates) for texts to be numbers (dates)
DISTINCT = 0.95  #: of the present cells are distinct in a column of ids
MARKS = 20  #: most texts that may stand for a missing number or date
FEWEST = 10  #: rows below which nothing is said of how distinct the cells are

# id, user_id, userId, UserID, uuid, key, Unnamed: 0; not "paid", "keyboard", "heat_index".
_ID = re.compile(
    r"(?:^|.*[\W_])(?:id|ids|uuid|guid|key|identifier|rowid|row_?(?:nr|no|number)|serial)$"
    r"|(?:^|.*[\W_])(?:id|uuid|guid)[\W_].*|index|unnamed: ?\d+",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r".*[a-z](?:Id|ID|Key|Uuid|UUID)$")


@dataclass(frozen=True)
class Column:
    """A column of a table and what is made of it.

    Attributes
    ----------
    name : str
    kind : {"number", "truth", "category", "date", "ignored"}
    why : str
        Why it is ignored.
    way : str
        How a date is written in texts, else empty.
    marks : tuple of str
        Texts that stand for a missing number or date.
    origin : str
        The earliest date of the rows fitted, from which days are counted.
    clock : bool
        Whether a date had a time of day: then the hour is a column.
    """

    name: str
    kind: str
    why: str = ""
    way: str = ""
    marks: tuple[str, ...] = ()
    origin: str = ""
    clock: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a date that become columns."""
        return tuple(part for part in PARTS if part != "hour" or self.clock)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns made of it."""
        if self.kind == "date":
            return tuple(f"{self.name} ({part})" for part in self.parts)
        return () if self.kind == "ignored" else (self.name,)


def column_of(series: pd.Series, name: str, keep: bool) -> tuple[Column, list[str]]:
    """Find the kind of a column; say in sentences what the user may not expect.

    Parameters
    ----------
    series : pandas.Series
        Indexed by the places of its rows in the table given.
    name : str
    keep : bool
        Whether to use the column even if it looks of no use.
    """
    series = plain(series)
    dates = instants(series)
    if dates is not None:
        return _date(Column(name, "date"), dates, keep)
    if is_truth(series):
        values = series.dropna().unique()
        why = _no_news(len(values), bool(series.isna().any()), values)
        return _ignored(Column(name, "truth"), why, keep)
    if is_numeric(series, name):
        return _number(name, series, keep)
    return _texts(name, series, levels_of(series, name), keep)


def plain(series: pd.Series) -> pd.Series:
    """The column, dates among texts turned into texts."""
    import datetime

    from pandas.api import types

    if not types.is_object_dtype(series.dtype):
        return series
    if not types.infer_dtype(series, skipna=True).startswith("mixed"):
        return series
    is_date = series.map(lambda cell: isinstance(cell, datetime.date)).to_numpy(dtype=bool)
    return series.mask(is_date, series.map(str)) if is_date.any() else series


def is_truth(series: pd.Series) -> bool:
    """Whether a column holds truth values."""
    import pandas as pd
    from pandas.api import types

    if isinstance(series.dtype, pd.CategoricalDtype):
        return False
    if types.is_object_dtype(series.dtype):
        return types.infer_dtype(series, skipna=True) == "boolean"
    return types.is_bool_dtype(series.dtype)


def refuse_infinite(x: np.ndarray, name: str, places: Any) -> None:
    """Raise if a number is infinite."""
    infinite = np.isinf(x)
    if infinite.any():
        row = places[int(infinite.argmax())] + 1
        raise DataError(
            f'column "{name}" is infinite in data row {row}; give a finite number, or leave the '
            "cell missing (NaN)."
        )


def is_id_name(name: str) -> bool:
    """Whether a name says that the column identifies rows.

    >>> [is_id_name(n) for n in ("id", "user_id", "userId", "ID number", "paid", "heat_index")]
    [True, True, True, True, False, False]
    """
    return bool(_ID.fullmatch(name.strip()) or _CAMEL_ID.fullmatch(name.strip()))


def _number(name: str, series: pd.Series, keep: bool) -> tuple[Column, list[str]]:
    from pandas.api import types

    x = series.to_numpy() if isinstance(series.dtype, np.dtype) else floats(series, name)
    if x.dtype.kind not in "iuf":
        x = floats(series, name)
    if x.dtype.kind == "f":
        refuse_infinite(x, name, series.index)
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(0, dtype=bool)
    whole = types.is_integer_dtype(series.dtype) or types.infer_dtype(series) == "integer"
    present = x[~missing] if missing.any() else x
    low = present.min() if len(present) else 0
    distinct = 0 if not len(present) else 1 if low == present.max() else 2
    why = _no_news(distinct, bool(missing.any()), [low])
    return _ignored(
        Column(name, "number"), why or (_id_numbers(name, present) if whole else ""), keep
    )


def _id_numbers(name: str, x: np.ndarray) -> str:
    """Why whole numbers are an id, or nothing."""
    import pandas as pd

    if len(x) < FEWEST:
        return ""
    one_way = (x[1:] > x[:-1]).all() or (x[1:] < x[:-1]).all()
    # A table sorted by a quantity has wide gaps; one that was counted up has narrow ones.
    if one_way and abs(float(x[-1]) - float(x[0])) < 10 * len(x):
        return "it counts the rows, like an id"
    if is_id_name(name):
        distinct = len(pd.unique(x))
        if distinct > len(x) / 2:
            return f"it is named like an id, with {distinct:,} values in {len(x):,} rows"
    return ""


def _texts(name: str, series: pd.Series, levels: Levels, keep: bool) -> tuple[Column, list[str]]:
    import pandas as pd
    from pandas.api import types

    counts = np.bincount(levels.codes[levels.codes >= 0], minlength=len(levels.texts))
    levels, counts = _occurring(levels, counts)
    category = Column(name, "category")
    why = _no_news(len(counts), bool((levels.codes < 0).any()), levels.texts)
    if why or isinstance(series.dtype, pd.CategoricalDtype | pd.IntervalDtype):
        why = why or _id_texts(name, levels.texts, counts)
        return _ignored(category, why, keep)
    for read_as in (_written_numbers, _written_dates):
        column_and_notes = read_as(name, levels, counts, keep)
        if column_and_notes is not None:
            return column_and_notes
    notes = []
    if types.infer_dtype(series, skipna=True).startswith("mixed"):
        notes.append(f'column "{name}" mixes numbers and texts; all are taken as texts.')
    if likely(levels.texts) == "points":
        notes.append(
            f'column "{name}" is taken as texts: in "{levels.texts[0]}" the day may be the month; '
            'write dates as "2024-05-31".'
        )
    why = _free_text(levels.texts, counts) or _id_texts(name, levels.texts, counts)
    column, sentences = _ignored(category, why, keep)
    return column, notes + sentences


def _occurring(levels: Levels, counts: np.ndarray) -> tuple[Levels, np.ndarray]:
    """Only the levels that occur: categories may be declared only."""
    if counts.all():
        return levels, counts
    there = np.flatnonzero(counts)
    place = np.full(len(counts) + 1, -1)
    place[there] = np.arange(len(there))
    return Levels(place[levels.codes], tuple(levels.texts[k] for k in there)), counts[there]


def _written_numbers(
    name: str, levels: Levels, counts: np.ndarray, keep: bool
) -> tuple[Column, list[str]] | None:
    """A column of numbers written as texts; None if it is none."""
    if np.isnan(numbers_of(levels.texts[:40])).mean() > 0.5:
        return None
    numbers = numbers_of(levels.texts)
    wrong = np.isnan(numbers)
    if counts[~wrong].sum() < SHARE * counts.sum() or wrong.sum() > MARKS:
        return None
    if any(map(is_code, levels.texts)):
        return None
    refuse_infinite(np.append(numbers, np.nan)[levels.codes], name, range(len(levels.codes)))
    present = numbers[~wrong]
    marks = tuple(levels.texts[k] for k in np.flatnonzero(wrong))
    why = _no_news(len(np.unique(present)), bool(marks or (levels.codes < 0).any()), present)
    if not why and (present == np.floor(present)).all():
        x = np.append(numbers, np.nan)[levels.codes]
        why = _id_numbers(name, x[~np.isnan(x)])
    column, notes = _ignored(Column(name, "number", marks=marks), why, keep)
    sentence = f'column "{name}" is written as text and read as numbers'
    return column, [sentence + _marked(marks, int(counts[wrong].sum())), *notes]


def _written_dates(
    name: str, levels: Levels, counts: np.ndarray, keep: bool
) -> tuple[Column, list[str]] | None:
    """A column of dates written as texts; None if it is none."""
    way = way_of(levels.texts, counts, SHARE)
    if way is None:
        return None
    dates = read(levels.texts, way)
    wrong = np.isnat(dates)
    if wrong.sum() > MARKS:
        return None
    marks = tuple(levels.texts[k] for k in np.flatnonzero(wrong))
    column, notes = _date(Column(name, "date", way=way, marks=marks), dates, keep)
    sentence = f'column "{name}" is written as text and read as dates'
    return column, [sentence + _marked(marks, int(counts[wrong].sum())), *notes]


def _marked(marks: tuple[str, ...], rows: int) -> str:
    if not marks:
        return "."
    return f"; {quoted(marks, most=3)} is taken as missing ({rows:,} row{'s' * (rows != 1)})."


def _date(column: Column, dates: np.ndarray, keep: bool) -> tuple[Column, list[str]]:
    present = dates[~np.isnat(dates)]
    origin = str(present.min().astype("M8[D]")) if len(present) else "1970-01-01"
    distinct = 0 if not len(present) else 1 if present.min() == present.max() else 2
    why = _no_news(distinct, len(present) < len(dates), present)
    return _ignored(replace(column, origin=origin, clock=has_clock(dates)), why, keep)


def _no_news(distinct: int, missing: bool, values: Any) -> str:
    """Why a column of no or one value is of no use; a value or a gap, that is news."""
    if distinct == 0:
        return "all its values are missing"
    return f"it holds one value only ({values[0]})" if distinct == 1 and not missing else ""


def _free_text(texts: tuple[str, ...], counts: np.ndarray) -> str:
    rows = int(counts.sum())
    if rows < FEWEST or len(texts) <= 0.3 * rows:
        return ""
    length = float(np.average([len(text) for text in texts], weights=counts))
    spaces = float(np.average([text.count(" ") for text in texts], weights=counts))
    long = length > 30 and (spaces >= 1 or len(texts) < DISTINCT * rows)
    if not long and spaces < 4:
        return ""
    return f"it holds free text ({length:.0f} letters in the mean); give an embedding of it"


def _id_texts(name: str, texts: tuple[str, ...], counts: np.ndarray) -> str:
    rows = int(counts.sum())
    if rows < FEWEST or len(texts) < (0.5 if is_id_name(name) else DISTINCT) * rows:
        return ""
    return f"nearly every row has a value of its own, like an id ({len(texts):,} in {rows:,} rows)"


def _ignored(column: Column, why: str, keep: bool) -> tuple[Column, list[str]]:
    """The column, ignored if there is a reason and it is not to be kept."""
    if not why or keep:
        return column, []
    ignored = Column(column.name, "ignored", why=why)
    return ignored, [f'column "{column.name}" is ignored: {why}.']
