"""Durations as they are typed: ``5m``, ``300`` and ``1h`` as seconds."""

from __future__ import annotations

import re

from setpoint._core.errors import KindError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(h|min|m|s)?", re.IGNORECASE)


def seconds_of(text: str | None) -> float | None:
    """Seconds that a text spells.

    >>> seconds_of("300"), seconds_of("5m"), seconds_of("1h30m"), seconds_of(None)
    (300.0, 300.0, 5400.0, None)
    """
    if text is None:
        return None
    typed = text.strip()
    rest = typed
    total = 0.0
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise _unread(typed)
        total += float(part[1]) * _UNITS[(part[2] or "").lower()]
        rest = rest[part.end() :].lstrip()
    if not typed or total <= 0:
        raise _unread(typed)
    return total


def _unread(typed: str) -> KindError:
    return KindError(f'--time-limit is a time such as 300 (seconds), 5m or 1h; got "{typed}".')
