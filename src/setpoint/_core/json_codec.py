"""Plain data: what JSON can say, and numbers read back from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.errors import FileError


def plain(x: Any) -> Any:
    """A value as JSON can say it; not-a-number is None, an infinity a word.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": (np.float64(0.5), np.int64(3)), "b": np.array([float("inf"), float("nan")])})
    {'a': [0.5, 3], 'b': ['inf', None]}
    """
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return None if math.isnan(x) else x if math.isfinite(x) else str(x)
    if isinstance(x, Mapping):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, tuple | list | set | frozenset | range):
        return [plain(value) for value in x]
    return str(x)


def number(x: Any) -> float:
    """A number of a record as a float; what is not there is not-a-number.

    Examples
    --------
    >>> number("inf"), number(None), number(3)
    (inf, nan, 3.0)
    """
    if x is None:
        return math.nan
    if isinstance(x, bool) or (isinstance(x, str) and x not in ("inf", "-inf")):
        raise FileError(f"this report is damaged: {x!r} stands where a number belongs")
    return float(x)


def numbers(xs: Any) -> np.ndarray:
    """A list of a record as an array of floats."""
    return np.array([number(x) for x in xs], dtype=np.float64)
