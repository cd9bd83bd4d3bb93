"""One spelling for numpy arrays and torch tensors.

An expression is read on Python floats, numpy arrays and tensors alike. The handful of functions in
which the two libraries differ stand here. Torch is never imported: a tensor can only arrive when
its library is loaded already.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

# A search by halves costs log(borders) steps a number, counting costs one pass for each border.
SEARCHED_NUMBERS = 2048  #: up to so many numbers a search is cheaper, however few the borders
SEARCHED_BORDERS = 100  #: beyond so many borders a search is cheaper, however many the numbers
SMALL = 64  #: entries that Python adds up before numpy has set out to

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


def lowest(x: Any, axis: int) -> Any:
    """The least along an axis, which stays with length 1."""
    return x.amin(axis, keepdim=True) if is_tensor(x) else x.min(axis, keepdims=True)


def highest(x: Any, axis: int) -> Any:
    """The greatest along an axis."""
    return x.amax(axis) if is_tensor(x) else x.max(axis)


def greater(a: Any, b: Any) -> Any:
    """The greater of two arrays, elementwise."""
    return a.maximum(b) if is_tensor(a) else np.maximum(a, b)


def join(parts: list[Any], axis: int) -> Any:
    """Arrays or tensors one behind the other."""
    return namespace(*parts).concatenate(parts, axis)


def total(x: Any) -> Any:
    """The sum of all entries."""
    if isinstance(x, np.ndarray) and x.size <= SMALL:
        return sum(x.ravel().tolist())
    return x.sum()


def inverse(x: Any) -> Any:
    """1/x, and 0 where x is not positive."""
    if isinstance(x, float | int):
        return 1 / x if x > 0 else 0.0
    filled = x > 0
    return filled / where(filled, x, 1.0) if is_tensor(x) else filled / (x + ~filled)


def exponential(x: Any) -> Any:
    """The exponential of a number, an array or a tensor."""
    if isinstance(x, float):
        return math.exp(x)
    return x.exp() if is_tensor(x) else np.exp(x)


def cast(x: Any, like: Any) -> Any:
    """An array or a tensor in the type of another."""
    return x.astype(like.dtype) if isinstance(x, np.ndarray) else x.to(like.dtype)


def assign(buffer: Any, value: Any) -> None:
    """Write a value into a tensor in place; numbers and arrays go through its host memory."""
    if is_tensor(value):
        buffer.copy_(value)
    else:
        buffer.numpy()[...] = value


def find(borders: Any, x: Any) -> Any:
    """The number of rising borders that are <= x, for each x."""
    if not isinstance(x, np.ndarray):
        return namespace(x).bucketize(x, borders, out_int32=True, right=True)
    if len(borders) == 2:
        low, high = borders.tolist()
        count = (x >= low).view(np.uint8)
        count += (x >= high).view(np.uint8)
        return count
    if len(x) <= SEARCHED_NUMBERS or len(borders) > SEARCHED_BORDERS:
        return borders.searchsorted(x, "right")
    # many are counted, not searched for: a search takes turns that no processor can foresee
    return np.add.reduce((x >= borders[:, None]).view(np.uint8), 0, np.uint8)


def look_up(table: Any, places: Any) -> Any:
    """The entry of a table (m,) at each place."""
    if isinstance(table, np.ndarray):
        return table.take(places)
    return table.index_select(0, places)


def tally(places: Any, amounts: Any, size: int, like: Any) -> Any:
    """The sum of the amounts at each of ``size`` places; None stands for ones in a type."""
    if isinstance(places, np.ndarray):
        return np.bincount(places, amounts, size)
    amounts = namespace(like).ones_like(like) if amounts is None else amounts
    return like.new_zeros(size).index_add_(0, places, amounts)


def to_numpy(x: Any) -> np.ndarray:
    """``x`` on the host as a numpy array (lists and data frame columns included)."""
    if not is_tensor(x):
        return np.asarray(x)
    host = x.detach().cpu()
    # numpy has no bfloat16; float32 holds each of its values exactly
    return (host.float() if host.dtype == namespace(x).bfloat16 else host).numpy()
