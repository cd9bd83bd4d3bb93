"""One spelling for numpy arrays and torch tensors.

An expression is read on Python floats, numpy arrays and tensors alike. The handful of functions in
which the two libraries differ stand here. Torch is never imported: a tensor can only arrive when
its library is loaded already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray | torch.Tensor; torch is not imported for a type


def is_tensor(x: object) -> bool:
    """Tell whether ``x`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(*arrays: object) -> Any:
    """Return ``torch`` if any of ``arrays`` is a tensor, else ``numpy``."""
    return sys.modules["torch"] if any(map(is_tensor, arrays)) else np


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, ``no`` elsewhere; the condition may be a plain bool."""
    if isinstance(condition, bool | np.bool_):
        return yes if condition else no
    return namespace(condition, yes, no).where(condition, yes, no)


def both(a: Any, b: Any) -> Any:
    """Logical and of two conditions, each a plain bool or an array."""
    if isinstance(a, bool):
        return b if a else a
    if isinstance(b, bool):
        return a if b else b
    return a & b


def holds_everywhere(condition: Any) -> bool:
    """Whether a condition is known to hold everywhere, without waiting for a device.

    A tensor answers no: asking it would make the host wait.
    """
    if is_tensor(condition):
        return False
    return bool(np.all(condition))


def plain_bool(condition: Any) -> Any:
    """A condition on plain numbers as a bool; one on arrays or tensors as it is."""
    return condition if is_tensor(condition) or np.ndim(condition) else bool(condition)


def square_root(x: Any) -> Any:
    """Square root of a float, an array or a tensor."""
    return x.sqrt() if is_tensor(x) else np.sqrt(x)


def to_numpy(x: Any) -> np.ndarray:
    """``x`` on the host as a numpy array (lists and data frame columns included)."""
    if not is_tensor(x):
        return np.asarray(x)
    host = x.detach().cpu()
    # numpy has no bfloat16; float32 holds each of its values exactly
    return (host.float() if host.dtype == namespace(x).bfloat16 else host).numpy()
