"""Which value of a label is positive: stated by the user, or plain from 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from setpoint._core.errors import DataError
from setpoint._core.words import listing, nearest

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
            f'column "{target}" (label) holds {len(values):,} different numbers, and a label has '
            "few: are the label and the score swapped?"
        )
    held = listing(shown(v) for v in values)
    if len(values) == 2:
        example = next((v for v in values if str(v).lower() in _USUAL), _rarest(counts))
        raise DataError(
            f'column "{target}" holds {held}: say which one is positive, '
            f"for example positive={shown(example)}."
        )
    raise DataError(
        f'column "{target}" has {len(values)} values ({held}); a goal on precision needs two. '
        f"Say positive={shown(_rarest(counts))} to set it against the rest."
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
    found = next((v for v in values if str(v) == near), None)
    hint = "" if near is None else f" Did you mean positive={shown(found)}?"
    raise DataError(
        f'positive={shown(positive)} does not occur in column "{target}", which holds '
        f"{listing(shown(v) for v in values)}.{hint}"
    )


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
