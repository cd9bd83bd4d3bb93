"""A label with two sides, its positive value declared and never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint.datasets._positive import declared, matched, shown
from setpoint.datasets.columns.column_roles import column, refuse_missing

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Labelled:
    """Features and a 0/1 label.

    Parameters
    ----------
    features : pandas.DataFrame
        The table without the label.
    y : numpy.ndarray of int8, shape (n,)
        1 where the label is ``positive``, else 0.
    positive : label
        The positive value, as it stands in the table.
    negatives : tuple of labels
        All other values, sorted.
    """

    features: pd.DataFrame = field(repr=False)
    y: np.ndarray = field(repr=False)
    positive: Any
    negatives: tuple[Any, ...]


def labelled(table: pd.DataFrame, target: str, positive: Any = None) -> Labelled:
    """Split a table into features and a 0/1 label.

    Labels 0 and 1, or False and True, are taken as they are. Any others need ``positive``.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows.
    target : str
        The column of the label.
    positive : label, optional
        The positive value; the rest is negative. Text, as it comes from a command line, also
        matches the number or truth value it spells: ``"1"`` matches 1, ``"true"`` matches True.

    Raises
    ------
    DataError
        If the label is not there, has missing values, is constant, or if what is positive is not
        stated or does not occur.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"amount": [120, 950], "fraud": ["no", "yes"]})
    >>> rows = labelled(table, "fraud", positive="yes")
    >>> rows
    Labelled(positive='yes', negatives=('no',))
    >>> rows.y
    array([0, 1], dtype=int8)
    >>> labelled(table, "fraud")
    Traceback (most recent call last):
        ...
    setpoint.DataError: column "fraud" holds "no", "yes": say which one is positive,
    for example positive="yes".
    """
    series = column(table, target, "label")
    if len(series) == 0:
        raise DataError(f'column "{target}" (label) has no rows.')
    refuse_missing(series.isna().to_numpy(dtype=bool), f'column "{target}" (label)')
    counts = _counts(series, target)
    values = list(counts)
    if len(values) == 1:
        raise DataError(
            f'column "{target}" (label) holds only {shown(values[0])}, in all {len(series)} rows; '
            "give rows of both kinds."
        )
    chosen = declared(counts, target) if positive is None else matched(values, positive, target)
    return Labelled(
        features=table.drop(columns=[target]),
        y=(series == chosen).to_numpy(dtype=bool).astype(np.int8),
        positive=chosen,
        negatives=tuple(v for v in values if v != chosen),
    )


def _counts(series: pd.Series, target: str) -> dict[Any, int]:
    """Rows of each value; values as Python objects, sorted (by their text if not comparable)."""
    first = series.iloc[0]
    if not isinstance(first, Hashable):
        raise DataError(
            f'column "{target}" (label) holds {type(first).__name__} values; '
            "a label is one number, text or truth value a row."
        )
    counts = Counter(series.tolist())
    try:
        return dict(sorted(counts.items(), key=lambda item: item[0]))
    except TypeError:
        return dict(sorted(counts.items(), key=lambda item: str(item[0])))
