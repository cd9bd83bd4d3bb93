"""What counts as a real number."""

from __future__ import annotations

import numbers


def is_real(x: object) -> bool:
    """Whether ``x`` is a real number (numpy scalars included) and no truth value.

    >>> is_real(1.5), is_real(True), is_real("1")
    (True, False, False)
    """
    return isinstance(x, numbers.Real) and not isinstance(x, bool)
