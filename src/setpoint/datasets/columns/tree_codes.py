"""A table as trees take it: numbers as they are, categories as whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.options import whole
from setpoint.datasets.columns.cell_values import floats, is_numeric, levels_of

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "setpoint codes 1"


@dataclass(frozen=True)
class Codes:
    """How the categories of a table become whole numbers. Made by :meth:`fit`; never changes.

    A category of rank k, the most frequent first, is min(k, max_levels − 1): beyond
    ``max_levels − 1`` levels the rare ones share the last code. A missing category, and one unknown
    when fitted, is NaN. Numbers stay as they are, NaN where missing.

    Parameters
    ----------
    columns : tuple of (str, tuple of str or None)
        Name and levels of each column, the most frequent first (equals by name); None for numbers.
    max_levels : int
        Most codes of one column. Trees that bin, in 255 bins, take no more.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20.0, None, 40.0], "plan": ["b", "a", "b"]})
    >>> codes = Codes.fit(table)
    >>> codes.transform(pd.DataFrame({"age": [20.0, None, 40.0], "plan": ["a", "b", "new"]}))
    (array([[20.,  1.],
           [nan,  0.],
           [40., nan]]), (1,))
    """

    columns: tuple[tuple[str, tuple[str, ...] | None], ...]
    max_levels: int = 255

    @classmethod
    def fit(cls, X: Any, max_levels: int = 255) -> Codes:
        """Learn the levels of a table.

        Parameters
        ----------
        X : DataFrame or array of numbers, shape (n, d)
            As :meth:`Schema.apply` returns it: numbers, texts and pandas categories.
        max_levels : int
            At least 2.
        """
        whole("max_levels", max_levels, 2, error=KindError)
        if _is_block(X):
            return cls(tuple((f"x{j}", None) for j in range(X.shape[1])), int(max_levels))
        frame = _frame(X)
        columns = []
        for j, name in enumerate(map(str, frame.columns)):
            series = frame.iloc[:, j].set_axis(range(len(frame)))
            columns.append((name, None if is_numeric(series, name) else _ranked(series, name)))
        return cls(tuple(columns), int(max_levels))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Places of the columns that hold codes."""
        return tuple(j for j, (_, levels) in enumerate(self.columns) if levels is not None)

    def transform(self, X: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        """Write a table as numbers.

        Parameters
        ----------
        X : DataFrame or array of numbers, shape (n, d)
            The columns fitted, in their order.

        Returns
        -------
        numbers : numpy.ndarray, shape (n, d)
            Of 32-bit floats where all numbers of X are, else of 64-bit floats. An array of numbers
            is returned as it is.
        categorical : tuple of int
            Places of the columns that hold codes.
        """
        if _is_block(X):
            if X.shape[1] != len(self.columns) or self.categorical:
                raise DataError(
                    f"X is an array of {X.shape[1]} columns of numbers; the codes were fitted on "
                    f"{len(self.columns)} columns, {len(self.categorical)} of them categories."
                )
            return X, ()
        frame = _frame(X)
        names = tuple(map(str, frame.columns))
        if names != self.names and (len(names) != len(self.names) or self.categorical):
            raise DataError("X has other columns than the codes were fitted on; apply the schema.")
        kinds = [frame.dtypes.iloc[j] for j in range(len(names)) if j not in self.categorical]
        small = bool(kinds) and all(kind == np.float32 for kind in kinds)
        # By columns: each is written, and later binned by the trees, in one run of memory.
        numbers = np.empty(frame.shape, dtype=np.float32 if small else np.float64, order="F")
        for j, (name, levels) in enumerate(self.columns):
            series = frame.iloc[:, j].set_axis(range(len(frame)))
            numbers[:, j] = (
                floats(series, name) if levels is None else self._coded(series, name, levels)
            )
        return numbers, self.categorical

    def _coded(self, series: pd.Series, name: str, levels: tuple[str, ...]) -> np.ndarray:
        cells = levels_of(series, name)
        code = {level: min(k, self.max_levels - 1) for k, level in enumerate(levels)}
        table = [code.get(text, np.nan) for text in cells.texts]
        return np.array([*table, np.nan], dtype=np.float64)[cells.codes]

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        columns = [
            {"name": name, "levels": None if levels is None else list(levels)}
            for name, levels in self.columns
        ]
        return {"format": FORMAT, "max_levels": self.max_levels, "columns": columns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Codes:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        FileError
            If it is something else, or damaged.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            written = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise FileError(f'these are no codes: the format is "{written}", not "{FORMAT}".')
        most, columns = data.get("max_levels"), data.get("columns")
        if type(most) is not int or most < 2:
            raise _damaged(f"max_levels is {most!r}")
        if not isinstance(columns, list) or not columns:
            raise _damaged("there is no list of columns")
        return cls(tuple(_column(column, j) for j, column in enumerate(columns)), most)


def _ranked(series: pd.Series, name: str) -> tuple[str, ...]:
    """The levels that occur, the most frequent first, equals by name."""
    cells = levels_of(series, name)
    counts = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.texts))
    ranked = sorted((-int(counts[k]), cells.texts[k]) for k in np.flatnonzero(counts))
    return tuple(text for _, text in ranked)


def _column(data: Any, j: int) -> tuple[str, tuple[str, ...] | None]:
    if not isinstance(data, Mapping) or set(data) != {"name", "levels"}:
        raise _damaged(f"column {j + 1} is no record of a column")
    name = data["name"]
    levels = data["levels"]
    if not isinstance(name, str):
        raise _damaged(f"the name of column {j + 1} is no text")
    if levels is None:
        return name, None
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise _damaged(f'the levels of column "{name}" are no list of texts')
    if len(set(levels)) < len(levels):
        raise _damaged(f'a level of column "{name}" is repeated')
    return name, tuple(levels)


def _damaged(what: str) -> FileError:
    return FileError(f"these codes are damaged: {what}.")


def _is_block(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"


def _frame(X: Any) -> pd.DataFrame:
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise KindError(
            f"X is a {type(X).__name__}; give what a schema makes: a data frame, or an array of "
            "numbers."
        )
    return X
