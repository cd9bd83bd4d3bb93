"""What counts as a real number."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean


def is_real(x: object) -> bool:
    """Whether ``x`` is a real number (numpy scalars included) and no truth value.

    >>> is_real(1.5), is_real(True), is_real("1")
    (True, False, False)
    """
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


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


def at_least(name: str, value: Any, least: int) -> None:
    """Raise unless the value is a whole number, at least so large."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DataError(f"{name}={value!r} must be a whole number, {least} or more")


def above_zero(name: str, value: Any) -> None:
    """Raise unless the value is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise DataError(f"{name}={value!r} must be a number above 0")


def as_floats(name: str, images: Any) -> Tensor:
    """Images as a tensor, or a sentence where their numbers do not say their range."""
    given = torch.as_tensor(images)
    if not given.is_floating_point():
        raise KindError(
            f"{name} holds {given.dtype}, and its range cannot be known from that; give floats in "
            f"the range of the prior's images, such as {name.split()[-1]}.float() / 255"
        )
    return given
