"""A table of features as a matrix for a linear model or a neural network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, FileError, KindError, Name
from setpoint._core.options import choice, is_real, number, whole
from setpoint._core.words import listing
from setpoint.datasets.columns.cell_values import floats, is_numeric, levels
from setpoint.datasets.columns.column_encoding import (
    LIMIT,
    TAILS,
    Category,
    NumberColumn,
    bend,
    fit_category,
    fit_number,
    ratio,
)
from setpoint.datasets.columns.matrix_input import Matrix, take

# The record of one encoded column: plain data out, checked data in; nothing is run.


_KINDS: dict[str, type[NumberColumn] | type[Category]] = {
    "number": NumberColumn,
    "category": Category,
}


def record(column: NumberColumn | Category) -> dict[str, Any]:
    """Plain data that :func:`restored` reads back."""
    if isinstance(column, NumberColumn):
        return {"kind": "number", **asdict(column)}
    return {"kind": "category", **asdict(column), "levels": list(column.levels)}


def damaged(what: str) -> FileError:
    """The error for data that :func:`record` cannot have written."""
    return FileError(f"these features are damaged: {what}.")


def restored(data: Any, j: int) -> NumberColumn | Category:
    """Read the record of column j, every part of it checked."""
    kind = _KINDS.get(str(data.get("kind"))) if isinstance(data, Mapping) else None
    if kind is None:
        raise damaged(f"column {j + 1} is neither a number nor a category")
    parts = {key: value for key, value in data.items() if key != "kind"}
    if set(parts) != set(kind.__dataclass_fields__):
        raise damaged(f"column {j + 1} has the parts {listing(parts)}")
    name = parts["name"]
    missing = parts["missing"]
    if not isinstance(name, str) or not isinstance(missing, bool):
        raise damaged(f"the name of column {j + 1} is no text, or missing no truth value")
    if kind is Category:
        return _category(name, parts["levels"], parts["other"], missing)
    centre, scale, mean, sd = sizes = [parts[key] for key in ("centre", "scale", "mean", "sd")]
    if not all(is_real(size) and math.isfinite(size) for size in sizes):
        raise damaged(f'a part of column "{name}" is no finite number')
    if scale <= 0 or sd < 0:
        raise damaged(f'the scale of column "{name}" is not positive')
    return NumberColumn(name, float(centre), float(scale), float(mean), float(sd), missing)


def _category(name: str, levels: Any, other: Any, missing: bool) -> Category:
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise damaged(f'the levels of column "{name}" are no list of texts')
    if levels != sorted(set(levels)):
        raise damaged(f'the levels of column "{name}" are not sorted, or one is repeated')
    if not isinstance(other, bool):
        raise damaged(f'other is no truth value for column "{name}"')
    return Category(name, tuple(levels), other, missing)


FORMAT = "setpoint features 1"
_CELLS = 1 << 17  #: encoded at once, so that the work stays in the cache
_HEAVIEST = 1e100  #: heavier weights are scaled down to it, or their sum might overflow


@dataclass(frozen=True)
class Features:
    r"""How the columns of a table become numbers of one scale. Made by :meth:`fit`; never changes.

    A number becomes z = (g(r) − mean) / sd, where

    - ``tails="robust"``: r = 1.349 (x − median) / interquartile range, and g(r) = r for \|r\| ≤ 3,
      ±(3 + log(1 + \|r\| − 3)) beyond: monotone, so that no order is lost, but a value far out
      does not rule the fit. Where the interquartile range is 0, mean and sd take its place.
      On a column without such tails z is the plain standardised value;
    - ``tails="plain"``: z = (x − mean) / sd.

    All of them are weighted, over the values present; z has mean 0 and sd 1 on the rows fitted. It
    is cut at ±10,000, which a value can only reach when it was not among them or is one of very
    many. A missing number is 0 (the mean); a second column, ``name (missing)``, flags it where
    values were missing when fitted. A column of one value is 0 always. Truth values are 0 and 1.

    A category becomes a column of 0 and 1 for each frequent level, ``name=level``, sorted; the rare
    levels, and those unknown when fitted, share ``name (other)``, which is there if levels were
    rare (else an unknown level has 0 everywhere); missing values have ``name (missing)`` if there
    were any when fitted, else count as an unknown level. Two levels and nothing else need one
    column, that of the second: an unknown level then reads as the first. Trees read an unknown
    level as missing (:mod:`setpoint.datasets.columns.tree_codes`).

    Parameters
    ----------
    columns : tuple
        One record for each column of the table.
    tails : {"robust", "plain"}
    named : bool
        Whether the columns had names, by which those of another data frame are found.
    notes : tuple of str
        What the user may want to know, in sentences: columns of one value, of too many levels.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 30, None, 40], "plan": ["a", "b", "b", "a"]})
    >>> features = Features.fit(table)
    >>> features.names
    ('age', 'age (missing)', 'plan=b')
    >>> features.transform(table).round(2)
    array([[-1.22,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  1.  ],
           [ 1.22,  0.  ,  0.  ]], dtype=float32)
    """

    columns: tuple[NumberColumn | Category, ...]
    tails: str = "robust"
    named: bool = True
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def fit(
        cls,
        X: Any,
        sample_weight: Any = None,
        *,
        max_levels: int = 64,
        min_count: float | None = None,
        tails: str = "robust",
    ) -> Features:
        """Learn scales and levels from a table.

        Parameters
        ----------
        X : DataFrame, array, tensor or list of rows, shape (n, k)
            Columns of numbers, truth values, texts or categories; cells may be missing (NaN, None,
            NA). Objects that are all numbers are numbers; numbers among texts are texts.
        sample_weight : array-like, shape (n,), optional
            A row of weight 2 counts as two rows, a row of weight 0 is as if it were not there.
        max_levels : int
            At most this many levels of a category have a column of their own: the most frequent,
            of equally frequent ones the first by name.
        min_count : float, optional
            A level that occurs less often is rare. By default in one row of a hundred, but not
            less than 2 and not more than 10. Occurrences are weights, scaled up to a mean of 1
            where their mean is below.
        tails : {"robust", "plain"}

        Raises
        ------
        DataError
            If X is not two-dimensional, empty, ragged, complex, has infinite numbers, dates or
            durations; or if the weights are no weights.
        KindError
            If X is sparse, or a cell is neither a number nor a text.
        """
        choice("tails", tails, TAILS, error=DataError)
        whole("max_levels", max_levels, 1)
        if min_count is not None:
            number("min_count", min_count, 0, open_low=True)
        table = take(X)
        weights = _weights(sample_weight, table.rows)
        if weights is not None:
            table = table.only(weights > 0)
            weights = weights[weights > 0]
        total = table.rows if weights is None else float(weights.sum())
        least = min(10.0, max(2.0, total / 100)) if min_count is None else float(min_count)
        columns: list[NumberColumn | Category] = []
        notes: list[str] = []
        for j, name in enumerate(table.names):
            x = _numeric(table, j)
            if x is not None:
                _refuse_infinite(x[:, None], (name,), table.places)
                encoding = fit_number(name, x, weights, tails)
                columns.append(encoding)
                if encoding.sd == 0:
                    notes.append(_one_value(encoding, bool(np.isnan(x).all())))
            else:
                column_levels = levels(table.column(j), name)
                category, sentences = fit_category(
                    name, column_levels, weights, int(max_levels), least
                )
                columns.append(category)
                notes.extend(sentences)
        return cls(tuple(columns), tails, table.named, tuple(notes))

    @property
    def n_inputs(self) -> int:
        """How many columns the table has."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns, in their order."""
        return tuple(name for column in self.columns for name in column.outputs)

    def transform(self, X: Any) -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        X : DataFrame, array, tensor or list of rows, shape (n, k)
            The columns of a data frame are found by name, in any order, if both have names.

        Returns
        -------
        numpy.ndarray of float32, shape (n, d)
            All finite; ``names`` says what the d columns are.

        Raises
        ------
        DataError
            As in :meth:`fit`; also if a column is missing or unknown, or a column of numbers holds
            a text.
        KindError
            As in :meth:`fit`.
        """
        table = take(X).like([column.name for column in self.columns], self.named)
        starts = np.cumsum([0, *(len(column.outputs) for column in self.columns)])
        encoded = np.zeros((table.rows, starts[-1]), dtype=np.float32)  # (n, d)
        numbers: list[int] = []
        for j, column in enumerate(self.columns):
            if isinstance(column, NumberColumn):
                numbers.append(j)
                continue
            places = column.places(levels(table.column(j), column.name))
            rows = np.flatnonzero(places >= 0)
            encoded[rows, starts[j] + places[rows]] = 1.0
        if numbers:
            self._numbers(table, numbers, starts[numbers], encoded)
        return encoded

    def _numbers(
        self, table: Matrix, which: list[int], starts: np.ndarray, encoded: np.ndarray
    ) -> None:
        """Write the columns of numbers, a few thousand rows at a time."""
        columns = [c for c in self.columns if isinstance(c, NumberColumn)]
        names = [c.name for c in columns]
        centre, scale, mean, sd = (
            np.array([getattr(c, part) for c in columns])
            for part in ("centre", "scale", "mean", "sd")
        )
        # One value only: x / inf is 0 whatever comes, and no difference can overflow.
        centre, sd = np.where(sd > 0, centre, 0.0), np.where(sd > 0, sd, np.inf)
        flags = np.flatnonzero([c.missing for c in columns])
        if table.block is not None and len(which) == self.n_inputs:
            block = table.block
        else:
            block = np.empty((table.rows, len(which)), order="F")
            for k, j in enumerate(which):
                block[:, k] = floats(table.column(j), names[k])
        together = len(which) == encoded.shape[1]
        step = max(1, _CELLS // len(which))
        for start in range(0, table.rows, step):
            rows = slice(start, start + step)
            x = block[rows].astype(np.float64, copy=False)  # (rows, k)
            z = ratio(x, centre, scale)
            if self.tails == "robust":
                bend(z)
            z -= mean
            with np.errstate(over="ignore"):
                z /= sd
            np.clip(z, -LIMIT, LIMIT, out=z)
            if not np.isfinite(x).all():
                _refuse_infinite(x, names, table.places[rows])
                missing = np.isnan(x)
                z[missing] = 0.0
                encoded[rows, starts[flags] + 1] = missing[:, flags]
            encoded[rows, slice(None) if together else starts] = z

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {
            "format": FORMAT,
            "tails": self.tails,
            "named": self.named,
            "columns": [record(column) for column in self.columns],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Features:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        FileError
            If it is something else, or damaged.

        Examples
        --------
        >>> features = Features.fit([[1.0], [2.0]])
        >>> Features.from_json(features.to_json()) == features
        True
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            written = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise FileError(f'these are no features: the format is "{written}", not "{FORMAT}".')
        tails, named, columns, notes = (data.get(k) for k in ("tails", "named", "columns", "notes"))
        if tails not in TAILS:
            raise damaged(f'tails is "{tails}", not one of {listing(TAILS)}')
        if not isinstance(named, bool):
            raise damaged(f"named is {named!r}, not true or false")
        if not isinstance(columns, list) or not columns:
            raise damaged("there is no list of columns")
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise damaged("notes is no list of sentences")
        read = tuple(restored(column, j) for j, column in enumerate(columns))
        if len({column.name for column in read}) < len(read):
            raise damaged("two columns have one name")
        return cls(read, tails, named, tuple(notes))


WEIGHT = Name("sample_weight")


def _weights(weights: Any, rows: int) -> np.ndarray | None:
    """Weights in units of which the mean is at least 1; None where there are none."""
    if weights is None:
        return None
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise KindError(
            "{argument} holds what is no number; give one number a row.", argument=WEIGHT
        ) from None
    if w.shape != (rows,):
        raise DataError(
            "{argument} has shape {shape}; X has {rows} rows, so give shape ({rows},).",
            argument=WEIGHT,
            shape=w.shape,
            rows=rows,
        )
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            "{argument} is {weight} in data row {place}; a weight is finite and not negative.",
            argument=WEIGHT,
            weight=w[row],
            place=row + 1,
        )
    largest = w.max()
    if largest == 0:
        raise DataError(
            "{argument} is zero in every row; give at least one row a weight.", argument=WEIGHT
        )
    w = w * (min(largest, _HEAVIEST) / largest)
    mean = float(w[w > 0].mean())
    return w / mean if mean < 1 else w


def _numeric(table: Matrix, j: int) -> np.ndarray | None:
    """Column j as floats, NaN where missing; None where it is one of levels."""
    if table.block is not None:
        return table.block[:, j].astype(np.float64)
    column = table.column(j)
    return floats(column, table.names[j]) if is_numeric(column, table.names[j]) else None


def _refuse_infinite(x: np.ndarray, names: Sequence[str], places: Sequence[int]) -> None:
    infinite = np.argwhere(np.isinf(x))
    if len(infinite):
        row, k = infinite[0]
        raise DataError(
            f'column "{names[k]}" is infinite in data row {places[row] + 1}; give a finite number, '
            "or leave the cell missing (NaN)."
        )


def _one_value(number: NumberColumn, is_empty: bool) -> str:
    content = "no value" if is_empty else f"one value only ({number.centre:g})"
    return f'column "{number.name}" holds {content}: it is 0 in every row.'
