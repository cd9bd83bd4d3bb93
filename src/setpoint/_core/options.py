"""Options: numbers, whole numbers and choices, each checked by one function.

A checked value is returned, so that an option is read and checked in one line.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from setpoint._core.errors import Argument, DataError, KindError, SetpointError
from setpoint._core.words import did_you_mean, listing


def is_real(x: object) -> bool:
    """Whether ``x`` is a real number (numpy scalars included) and not a truth value.

    >>> is_real(1.5), is_real(True), is_real("1")
    (True, False, False)
    """
    return isinstance(x, Real) and not isinstance(x, bool)


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
    ends = {"open_low": open_low, "open_high": open_high}
    if _inside(x, low, high, **ends):
        return float(x)
    raise error(
        "{argument} must be a number" + _range(low, high, **ends), argument=Argument(name, x)
    )


def numbers(
    name: str,
    xs: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    each: str = "",
    error: type[SetpointError] = DataError,
) -> tuple[float, ...]:
    """One finite number or more between two bounds; ``each`` says what each of them is for.

    >>> numbers("multipliers", [1, 2.5], 0)
    (1.0, 2.5)
    >>> numbers("multipliers", [], 0, each="one per constraint")
    Traceback (most recent call last):
    setpoint.DataError: multipliers=[] must be numbers at least 0, one per constraint
    """
    values = () if isinstance(xs, str) or not isinstance(xs, Iterable) else tuple(xs)
    ends = {"open_low": open_low, "open_high": open_high}
    if values and all(_inside(x, low, high, **ends) for x in values):
        return tuple(float(x) for x in values)
    raise error(
        "{argument} must be numbers" + _range(low, high, **ends) + (f", {each}" if each else ""),
        argument=Argument(name, xs),
    )


def _inside(x: Any, low: float, high: float, *, open_low: bool, open_high: bool) -> bool:
    """Whether a value is a finite number between two bounds."""
    if not is_real(x) or not math.isfinite(x):
        return False
    return bool((x > low if open_low else x >= low) and (x < high if open_high else x <= high))


def _range(low: float, high: float, *, open_low: bool, open_high: bool) -> str:
    """The bounds in words, with a blank before them."""
    ends = [
        f"{'above' if open_low else 'at least'} {low:g}" if low > -math.inf else "",
        f"{'below' if open_high else 'at most'} {high:g}" if high < math.inf else "",
    ]
    words = " and ".join(end for end in ends if end)
    return f" {words}" if words else ""


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
        words = f", {low} to {high}"
    elif low is not None:
        words = f", {low} or more"
    else:
        words = "" if high is None else f", {high} or less"
    raise error("{argument} must be a whole number" + words, argument=Argument(name, x))


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
    hint = did_you_mean(x, values, f"choose from {listing(values)}")
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
