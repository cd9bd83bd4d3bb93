"""Dates: found in texts, put in the order of time, taken apart into numbers.

A text is a date in one of three ways: ``2024-05-31`` (ISO 8601), ``2024/05/31`` or ``31.05.2024``,
each with a time of day or without, ``2024-05-31 12:30``. A way is chosen for a whole column and
never where another reading is as good: ``03/04/2024`` is no date here, since it may be in March or
in April, and ``03.04.2024`` is one only if some day of the column is after the twelfth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from setpoint._core.errors import DataError, KindError

if TYPE_CHECKING:
    import pandas as pd

_CLOCK = r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
#: how a date may be written; the three never match one text
WAYS = {
    "iso": r"\d{4}-\d{2}-\d{2}" + _CLOCK,
    "slashes": r"\d{4}/\d{1,2}/\d{1,2}" + _CLOCK,
    "points": r"\d{1,2}\.\d{1,2}\.\d{4}" + _CLOCK,
}
#: what a date becomes: the year, the month 1 … 12, the day of the week 0 (Monday) … 6, the hour
#: 0 … 23, and the days since the earliest date of the rows fitted
PARTS = ("year", "month", "day of week", "hour", "days")
_DAY = np.timedelta64(1, "D")


def read(texts: Any, way: str) -> np.ndarray:
    """Texts as datetime64[us], shape (n,); NaT where a text is no date of this way.

    A time with a zone is moved to UTC, one without is taken as it stands.

    >>> read(["2024-05-31", "2024-06-31", "2024-05-31 12:30+02:00"], "iso").astype("M8[m]")
    array(['2024-05-31T00:00', 'NaT', '2024-05-31T10:30'], dtype='datetime64[m]')
    >>> read(["1.6.2024"], "points").astype("M8[D]")
    array(['2024-06-01'], dtype='datetime64[D]')
    """
    import pandas as pd

    series = pd.Series(texts, dtype=object).astype(str).str.strip()
    series = series.where(series.str.fullmatch(WAYS[way]))
    if way != "iso":
        parts = series.str.extract(r"^(\d+)[/.](\d+)[/.](\d+)(.*)$")
        first, month, last = (parts[k].str.zfill(2) for k in range(3))
        year, day = (first, last) if way == "slashes" else (last, first)
        series = year + "-" + month + "-" + day + parts[3]
    moments_read = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
    return _microseconds(cast("pd.Series", moments_read))


def way_of(texts: Any, weights: np.ndarray | None = None, share: float = 1.0) -> str | None:
    """The way in which at least ``share`` of the texts are dates that exist; None without one.

    Parameters
    ----------
    texts : sequence of str
        Not empty.
    weights : numpy.ndarray, optional
        How often each occurs.
    share : float

    Examples
    --------
    >>> way_of(["2024-05-31", "2024-06-01 12:30"]), way_of(["2024-05-31", "2024-06-31"])
    ('iso', None)
    >>> way_of(["03.04.2024"]), way_of(["03.04.2024", "13.04.2024"])
    (None, 'points')
    """
    way = likely(texts)
    if way is None:
        return None
    dates = read(texts, way)
    weights = np.ones(len(dates)) if weights is None else weights
    if weights[~np.isnat(dates)].sum() < share * weights.sum():
        return None
    return None if way == "points" and not _has_late_day(dates) else way


def likely(texts: Any) -> str | None:
    """The way in which most of the first texts are written; None where it is none."""
    import pandas as pd

    first = pd.Series(texts[:40], dtype=object).astype(str).str.strip()
    for way, pattern in WAYS.items():
        if first.str.fullmatch(pattern).mean() > 0.5:
            return way
    return None


def instants(series: pd.Series) -> np.ndarray | None:
    """A column of dates as datetime64[us] in UTC, NaT where missing; None if it holds no dates.

    Texts are not looked into.
    """
    import pandas as pd
    from pandas.api import types

    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if types.is_object_dtype(series.dtype):
        if types.infer_dtype(series, skipna=True) not in ("date", "datetime", "datetime64"):
            return None
        series = cast("pd.Series", pd.to_datetime(series, utc=True))
    if not types.is_datetime64_any_dtype(series.dtype):
        return None
    return _microseconds(series)


def expand(dates: np.ndarray, origin: np.datetime64, parts: tuple[str, ...]) -> list[np.ndarray]:
    """The parts of dates as 64-bit floats, NaN where a date is missing.

    >>> when = np.array(["2024-05-31T12:30", "NaT"], dtype="M8[us]")
    >>> for part in expand(when, np.datetime64("2024-05-30"), PARTS):
    ...     print(part.round(3))
    [2024.   nan]
    [ 5. nan]
    [ 4. nan]
    [12. nan]
    [1.521   nan]
    """
    missing = np.isnat(dates)
    present = np.where(missing, np.datetime64(0, "us"), dates)
    days = present.astype("M8[D]")
    numbers = {
        "year": lambda: present.astype("M8[Y]").astype(int) + 1970,
        "month": lambda: present.astype("M8[M]").astype(int) % 12 + 1,
        "day of week": lambda: (days.astype(int) + 3) % 7,  # 1970 began on a Thursday
        "hour": lambda: (present - days) // np.timedelta64(1, "h"),
        "days": lambda: (present - origin.astype("M8[us]")) / _DAY,
    }
    return [np.where(missing, np.nan, numbers[part]()) for part in parts]


def has_clock(dates: np.ndarray) -> bool:
    """Whether any date has a time of day."""
    present = dates[~np.isnat(dates)]
    return bool((present != present.astype("M8[D]")).any())


def moments(values: Any, what: str) -> np.ndarray:
    """Numbers in the order of time, of numbers, dates or texts that are dates.

    Parameters
    ----------
    values : array-like, shape (n,)
    what : str
        What they are, for the sentences.

    Raises
    ------
    DataError
        If one is missing, infinite, or neither a number nor a date.
    KindError
        If they are truth values, durations or complex numbers.

    Examples
    --------
    >>> moments(["2024-01-02", "2024-01-01"], "time").argsort()
    array([1, 0])
    """
    import pandas as pd
    from pandas.api import types

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    series = series.reset_index(drop=True)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    missing = series.isna().to_numpy(dtype=bool)
    if missing.any():
        row = int(missing.argmax()) + 1
        raise DataError(f"{what} is missing in data row {row}; give each row a time, or drop it.")
    if types.is_object_dtype(series.dtype):
        series = series.infer_objects()
    dates = instants(series)
    if dates is not None:
        return dates.astype("int64")
    if types.is_object_dtype(series.dtype) or types.is_string_dtype(series.dtype):
        return _of_texts(series, what)
    if types.is_bool_dtype(series.dtype) or series.dtype.kind not in "iuf":
        raise KindError(f"{what} holds {series.dtype} values; give numbers or dates.")
    numbers = series.to_numpy()
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax()) + 1
        raise DataError(f"{what} is infinite in data row {row}; give finite numbers.")
    return numbers


def _of_texts(series: pd.Series, what: str) -> np.ndarray:
    way = likely(series)
    dates = read(series, way or "iso")
    wrong = np.isnat(dates)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f'{what} is "{series.iloc[row]}" in data row {row + 1}, which is no date; write all '
            'dates as "2024-05-31" or "2024-05-31 12:30", or give numbers.'
        )
    if way == "points" and not _has_late_day(dates):
        raise DataError(
            f'{what} is "{series.iloc[0]}" in data row 1, where the day may be the month; write '
            'dates as "2024-05-31".'
        )
    return dates.astype("int64")


def _has_late_day(dates: np.ndarray) -> bool:
    """Whether a day is after the twelfth, so that it cannot be a month."""
    present = dates[~np.isnat(dates)]
    day = (present.astype("M8[D]") - present.astype("M8[M]")).astype(int)
    return bool((day >= 12).any())


def _microseconds(dates: pd.Series) -> np.ndarray:
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    return dates.to_numpy().astype("M8[us]")
