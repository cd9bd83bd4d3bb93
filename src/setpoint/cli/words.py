"""Words that every part of the command line uses: counts, numbers, durations, its own name."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

_LARGE = 1e12  #: whole numbers from here on are written with an exponent


def command() -> str:
    """How this program is called from here: by its name, or by its path where it has no other.

    A virtual environment that is not active is on no search path, so the bare name would fail.
    """
    called = sys.argv[0] if sys.argv else ""
    stem = Path(called).stem
    if shutil.which("setpoint") is not None:
        return "setpoint"
    if stem == "setpoint" and os.path.basename(called) != called:
        return called if re.fullmatch(r"[\w./\\:+-]+", called) else f'"{called}"'
    if stem == "__main__":
        return "python -m setpoint.cli"
    return "setpoint"


def number(value: float | None, otherwise: str = "empty") -> str:
    """A number in four significant digits, a whole one in full; None is an empty rate.

    >>> number(0.98765), number(1.0), number(31415.0), number(None)
    ('0.9877', '1', '31415', 'empty')
    """
    if value is None:
        return otherwise
    return f"{value:.0f}" if abs(value) < _LARGE and value % 1 == 0 else f"{value:.4g}"


def count(many: int, one: str, several: str | None = None) -> str:
    """A count and its noun.

    >>> count(1, "row"), count(1210, "row")
    ('1 row', '1,210 rows')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def in_words(seconds: float) -> str:
    """Seconds, minutes or hours.

    >>> in_words(7.24), in_words(95), in_words(5400)
    ('7.2 s', '1 min 35 s', '1 h 30 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
