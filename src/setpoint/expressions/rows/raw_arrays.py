"""Raw input as arrays of one kind: text, numbers or truth values; numpy or torch."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import DataError, KindError, Name, RowNumber
from setpoint._core.words import listing


def array_of(x: Any, name: str, dims: int, n: int | None = None) -> Array:
    """An array or tensor of ``dims`` dimensions and ``n`` rows; lists and series are read.

    One column (n, 1) counts as one dimension.
    """
    if isinstance(x, str | bytes | Mapping) or x is None or np.isscalar(x):
        raise KindError(
            "{argument} must be an array with one entry per row; got {value}",
            argument=Name(name),
            value=repr(x),
        )
    if is_tensor(x) and (x.layout != namespace(x).strided or x.device.type == "meta"):
        raise KindError(f"{name} is a tensor without plain values; pass a dense one")
    if isinstance(x, np.ma.MaskedArray):
        raise KindError(f"{name} is a masked array; drop the masked rows, or fill them")
    try:
        a = x if is_tensor(x) else _settled(_read(x), name)
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            "{argument} cannot be read as an array: {reason}",
            argument=Name(name),
            reason=str(error),
        ) from error
    if dims == 1 and a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]  # the output of a network with one logit
    if a.ndim != dims:
        want = "one-dimensional" if dims == 1 else "a matrix with one column per class"
        pair = dims == 1 and a.ndim == 2 and a.shape[1] == 2
        hint = "; of predict_proba pass [:, 1]" if pair else ""
        raise DataError(
            "{argument} must be {want}; its shape is {shape}{hint}",
            argument=Name(name),
            want=want,
            shape=tuple(a.shape),
            hint=hint,
        )
    if n is not None and a.shape[0] != n:
        raise DataError(
            "{argument} has {n} rows and {other} has {rows}; they must match",
            argument=Name("y_true"),
            n=n,
            other=Name(name),
            rows=a.shape[0],
        )
    return a


def _read(x: Any) -> np.ndarray:
    """An array; a list that mixes text and numbers stays one of objects, where numpy makes text."""
    a = np.asarray(x)
    mixed = isinstance(x, list | tuple) and a.dtype.kind == "U" and a.ndim == 1
    if mixed and not all(isinstance(v, str) for v in x):
        return np.array(x, dtype=object)
    return a


def _settled(a: np.ndarray, name: str) -> np.ndarray:
    """An array of Python objects as an array of one kind: text, numbers or truth values."""
    if a.dtype.kind == "S":
        raise DataError(
            "{argument} holds bytes such as {first}; decode them to text",
            argument=Name(name),
            first=a.ravel()[:1].tolist(),
        )
    if a.dtype.kind != "O":
        return a
    items = a.ravel().tolist()
    gaps = [i for i, v in enumerate(items) if _is_gap(v)]
    if gaps:
        row = gaps[0] // max(1, a.size // max(1, a.shape[0]))
        raise DataError(
            "{argument} has a missing value {row}; drop such rows or fill them",
            argument=Name(name),
            row=RowNumber(row),
        )
    if all(isinstance(v, str) for v in items):
        return a.astype(np.str_)
    if all(isinstance(v, numbers.Real) for v in items):
        return np.array(items).reshape(a.shape)
    kinds = sorted({type(v).__name__ for v in items})
    raise DataError(
        "{argument} mixes or holds {kinds}; give text, numbers or truth values",
        argument=Name(name),
        kinds=listing(kinds),
    )


def _is_gap(v: Any) -> bool:
    """None, NaN, or what pandas puts for a missing value."""
    if v is None or type(v).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(v, float) and v != v


def numeric(a: Array, name: str) -> Array:
    """Refuse what is no real number: text, dates, complex numbers."""
    if is_tensor(a):
        if not a.is_complex():
            return a
    elif a.dtype.kind in "fiub":
        return a
    first = to_numpy(a).ravel()[:1].tolist()
    raise KindError(
        "{argument} must be numbers; got {dtype} such as {first!r}",
        argument=Name(name),
        dtype=a.dtype,
        first=first[0],
    )


def floating(a: Array) -> Array:
    """Integers as float64; floats as they are."""
    if is_tensor(a):
        return a if a.is_floating_point() else a.double()
    return a if a.dtype.kind == "f" else a.astype(np.float64)
