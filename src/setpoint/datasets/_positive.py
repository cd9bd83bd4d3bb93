"""Which value of a label is positive: stated by the user, or plain from 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setpoint._core.errors import DataError
from setpoint._core.words import listing, nearest

# Only to word an example in a message; what is positive is always stated by the user.
_USUAL = {"1", "1.0", "yes", "y", "true", "t", "positive", "pos"}
_TRUTH = {"true": True, "false": False}


def declared(values: Sequence[Any], target: str) -> Any:
    """Return the positive value where the values say it: 0 and 1, False and True."""
    if list(values) == [0, 1]:
        return values[1]
    example = next((v for v in values if str(v).lower() in _USUAL), values[-1])
    held = listing(shown(v) for v in values)
    if len(values) == 2:
        raise DataError(
            f'column "{target}" holds {held}: say which one is positive, '
            f"for example positive={shown(example)}."
        )
    raise DataError(
        f'column "{target}" has {len(values)} values ({held}); a goal on precision needs two. '
        f"Say positive={shown(example)} to set it against the rest."
    )


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
