"""Options of a method are those of its signature; others are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.words import did_you_mean


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
