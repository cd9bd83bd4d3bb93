"""Numbers written as texts: ``12.5``, ``-3``, ``1e-4``, ``1,234`` and ``1,234,567.8``.

A comma parts thousands and nothing else: ``12,5`` is no number here, and neither is ``1,23``. A
text with a leading zero, ``007``, is a code: as a number it would lose what tells it from ``7``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_CODE = re.compile(r"[+-]?0[0-9]+")


def numbers_of(texts: Iterable[str]) -> np.ndarray:
    """Texts as 64-bit floats, NaN where one is no number.

    >>> numbers_of(["1,234", " 12.5 ", "-3e2", "12,5", "?"])
    array([1234. ,   12.5, -300. ,    nan,    nan])
    """
    return np.array([_number(text.strip()) for text in texts], dtype=np.float64)


def is_code(text: str) -> bool:
    """Whether a text is of digits with a leading zero.

    >>> is_code("007"), is_code("0.5"), is_code("0")
    (True, False, False)
    """
    return _CODE.fullmatch(text.strip()) is not None


def _number(text: str) -> float:
    if _PLAIN.fullmatch(text):
        return float(text)
    return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else math.nan
