"""Options: numbers, whole numbers and choices, each checked by one function.

A checked value is returned, so that an option is read and checked in one line.
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable
from typing import Any

from setpoint._core.errors import Argument, DataError, KindError, SetpointError
from setpoint._core.words import did_you_mean, listing


def is_real(x: object) -> bool:
    """Whether ``x`` is a real number (numpy scalars included) and not a truth value.

    >>> is_real(1.5), is_real(True), is_real("1")
    (True, False, False)
    """
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


def number(
    name: str,
    x: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    error: type[SetpointError] = DataError,
) -> float:
    """A finite number between two bounds, which belong to the range unless they are open.

    >>> number("margin", 0.5, 0, 1)
    0.5
    >>> number("margin", 2, 0, 1, open_low=True)
    Traceback (most recent call last):
    setpoint.DataError: margin=2 must be a number above 0 and at most 1
    """
    good = is_real(x) and math.isfinite(x)
    good = good and (x > low if open_low else x >= low) and (x < high if open_high else x <= high)
    if good:
        return float(x)
    ends = [
        f"{'above' if open_low else 'at least'} {low:g}" if low > -math.inf else "",
        f"{'below' if open_high else 'at most'} {high:g}" if high < math.inf else "",
    ]
    said = " and ".join(end for end in ends if end)
    raise error(
        "{argument} must be a number" + (f" {said}" if said else ""), argument=Argument(name, x)
    )


def whole(
    name: str,
    x: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    floats: bool = False,
    error: type[SetpointError] = DataError,
) -> int:
    """A whole number between two bounds; with ``floats``, 1e4 counts as one.

    >>> whole("folds", 5, 2)
    5
    >>> whole("folds", 1, 2)
    Traceback (most recent call last):
    setpoint.DataError: folds=1 must be a whole number, 2 or more
    """
    try:
        if isinstance(x, bool):
            raise TypeError
        value = int(x) if floats and is_real(x) and x % 1 == 0 else operator.index(x)
        if (low is None or value >= low) and (high is None or value <= high):
            return value
    except TypeError:
        pass
    if low is not None and high is not None:
        said = f", {low} to {high}"
    elif low is not None:
        said = f", {low} or more"
    else:
        said = "" if high is None else f", {high} or less"
    raise error("{argument} must be a whole number" + said, argument=Argument(name, x))


def choice(
    name: str, x: Any, known: Iterable[Any], *, error: type[SetpointError] = KindError
) -> Any:
    """One of several known values.

    >>> choice("effort", "quik", ["quick", "normal"])
    Traceback (most recent call last):
    setpoint.KindError: effort="quik": did you mean quick?
    """
    values = list(known)
    if any(x is v or (type(x) is type(v) and x == v) for v in values):
        return x
    hint = did_you_mean(x, values, f"choose one of {listing(values)}")
    raise error("{argument}: {near}", argument=Argument(name, x), near=hint)


def checked_options(method: str, run: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise for an option that the method does not have."""
    known = [
        name
        for name, parameter in inspect.signature(run).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name in options:
        if name not in known:
            words = did_you_mean(name, known, f"it has {', '.join(known)}")
            raise KindError(f"{method} has no option {name!r}; {words}")
