"""A label with two sides, its positive value declared and never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import Argument, DataError, Spelling
from setpoint._core.words import listing, nearest
from setpoint.datasets.columns.column_roles import column, refuse_missing

if TYPE_CHECKING:
    import pandas as pd


# Only to word an example in a message; what is positive is always stated by the user.
_USUAL = {"1", "1.0", "yes", "y", "true", "t", "positive", "pos"}
_MOST_LABELS = 20  #: more fractions than these are scores
_TRUTH = {"true": True, "false": False}


def plain_positive(values: Sequence[Any], signs: bool = False) -> Any:
    """The positive value where it need not be stated: 1 of 0 and 1, True of False and True.

    One of the two alone will do, as in a small batch. ``signs`` also takes -1 and 1: they are what
    classifiers of scikit-learn are fitted on, but for rows with scores only 0 and 1 are labels
    without a word.

    >>> plain_positive([False, True]), plain_positive([-1, 1]), plain_positive([-1, 1], signs=True)
    (True, None, 1)
    """
    kinds = set(values)
    if not (kinds <= {0, 1} or (signs and kinds == {-1, 1})):
        return None
    return next((value for value in values if value == 1), 1)


def unstated_positive(subject: str, counts: Mapping[Any, int]) -> DataError:
    """The refusal to guess which value is positive, with an example.

    ``subject`` says what makes it necessary; ``counts`` has the rows of each value.
    """
    usual = (value for value in counts if str(value).lower() in _USUAL)
    return DataError(
        "{subject}: say which one is positive, for example {argument}.",
        subject=subject,
        argument=Argument("positive", next(usual, _rarest(counts))),
    )


def too_many_values(target: str, counts: Mapping[Any, int], asking: str) -> DataError:
    """The refusal of more than two values where ``asking``, a goal or a task, needs two."""
    return DataError(
        'column "{target}" has {n:,} values ({values}); {asking} needs two. '
        "Say {argument} to set it against the rest.",
        target=target,
        n=len(counts),
        values=listing(shown(value) for value in counts),
        asking=asking,
        argument=Argument("positive", _rarest(counts)),
    )


def are_measurements(values: Collection[Any]) -> bool:
    """Whether values are too many fractions to be labels."""
    return len(values) > _MOST_LABELS and any(isinstance(v, float) and v % 1 for v in values)


def _undeclared(counts: Mapping[Any, int], target: str) -> DataError:
    """Why the values of a column do not say which of them is positive."""
    if are_measurements(counts):
        return DataError(
            'column "{target}" (label) holds {n:,} different numbers, and a label has few: '
            "are {pair} swapped?",
            target=target,
            n=len(counts),
            pair=Spelling("the label and the score", "--label and --score"),
        )
    if len(counts) == 2:
        values = listing(shown(value) for value in counts)
        return unstated_positive(f'column "{target}" holds {values}', counts)
    return too_many_values(target, counts, "a binary task")


def _rarest(counts: Mapping[Any, int]) -> Any:
    """The value with the fewest rows; of several the last."""
    return min(reversed(list(counts)), key=lambda value: counts[value])


def matched(values: Sequence[Any], positive: Any, target: str) -> Any:
    """Return the value that ``positive`` states, as it stands in the column."""
    for value in values:
        if value == positive:
            return value
    for value in values:
        if spells(positive, value):
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


def spells(stated: Any, value: Any) -> bool:
    """Whether a stated label is a value, or is text that spells a value that is not text.

    >>> spells("1", 1.0), spells("true", True), spells("Yes", "yes"), spells("true", 1)
    (True, True, False, False)
    """
    if stated == value:
        return True
    if not isinstance(stated, str) or isinstance(value, str):
        return False
    if isinstance(value, bool) and stated.strip().lower() in _TRUTH:
        return _TRUTH[stated.strip().lower()] is value
    for read in (int, float):  # whole numbers first: a float does not hold all of them
        try:
            return read(stated) == value
        except ValueError:
            continue
    return stated == str(value)


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
    chosen = plain_positive(values) if positive is None else matched(values, positive, target)
    if chosen is None:
        raise _undeclared(counts, target)
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
