"""A label with two sides, its positive value declared and never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import Argument, DataError, Spelling
from setpoint._core.words import listing, nearest
from setpoint.datasets.columns.column_roles import column, refuse_missing

if TYPE_CHECKING:
    import pandas as pd


# Which value of a label is positive: stated by the user, or plain from 0 and 1.


# Only to word an example in a message; what is positive is always stated by the user.
_USUAL = {"1", "1.0", "yes", "y", "true", "t", "positive", "pos"}
_MOST_LABELS = 20  #: more fractions than these are scores
_TRUTH = {"true": True, "false": False}


def declared(counts: Mapping[Any, int], target: str) -> Any:
    """Return the positive value where the values say it: 0 and 1, False and True.

    ``counts`` has the rows of each value, the values in their order.
    """
    values = list(counts)
    if values == [0, 1]:
        return values[1]
    if len(values) > _MOST_LABELS and any(isinstance(v, float) and v % 1 for v in values):
        raise DataError(
            'column "{target}" (label) holds {n:,} different numbers, and a label has few: '
            "are {pair} swapped?",
            target=target,
            n=len(values),
            pair=Spelling("the label and the score", "--label and --score"),
        )
    quoted = listing(shown(v) for v in values)
    if len(values) == 2:
        example = next((v for v in values if str(v).lower() in _USUAL), _rarest(counts))
        raise DataError(
            'column "{target}" holds {values}: say which one is positive, for example {way}.',
            target=target,
            values=quoted,
            way=Argument("positive", example),
        )
    raise DataError(
        'column "{target}" has {n} values ({values}); a goal on precision needs two. '
        "Say {way} to set it against the rest.",
        target=target,
        n=len(values),
        values=quoted,
        way=Argument("positive", _rarest(counts)),
    )


def _rarest(counts: Mapping[Any, int]) -> Any:
    """The value with the fewest rows; of several the last."""
    return min(reversed(list(counts)), key=lambda value: counts[value])


def matched(values: Sequence[Any], positive: Any, target: str) -> Any:
    """Return the value that ``positive`` states, as it stands in the column."""
    for value in values:
        if value == positive:
            return value
    for value in values:
        if isinstance(positive, str) and _spells(positive, value):
            return value
    near = nearest(positive, values)
    label = next((v for v in values if str(v) == near), None)
    error = DataError(
        '{argument} does not occur in column "{target}", which holds {values}.',
        argument=Argument("positive", positive),
        target=target,
        values=listing(shown(v) for v in values),
    )
    if near is None:
        raise error
    raise error.followed_by("Did you mean {way}?", way=Argument("positive", label))


def _spells(text: str, value: Any) -> bool:
    """Whether a text spells a value that is not text."""
    if isinstance(value, str):
        return False
    if isinstance(value, bool):
        return _TRUTH.get(text.strip().lower()) is value or text == str(int(value))
    for read in (int, float):
        try:
            return read(text) == value
        except ValueError:
            continue
    return text == str(value)


def shown(value: Any) -> str:
    """Write a value as it would be typed: text in quotes."""
    return f'"{value}"' if isinstance(value, str) else str(value)


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
