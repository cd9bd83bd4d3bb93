"""Records to JSON and back, by the fields of dataclasses: one codec for all that is saved.

    to_json(record)        plain data; an infinity is the word "inf", not-a-number is null
    from_json(cls, data)   the record again, checked by the class's own ``__post_init__``

A class with ``to_json`` and ``from_json`` of its own (a goal, a task) speaks for itself; other
dataclasses are read field by field from their type hints. A field that is missing takes its
default, so what an earlier version wrote still loads. Nothing that is read is executed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from setpoint._core.errors import FileError, SetpointError

T = TypeVar("T")


def to_json(x: Any) -> Any:
    """A value as JSON can say it.

    Examples
    --------
    >>> import numpy as np
    >>> to_json({"a": (np.float64(0.5), np.int64(3)), "b": np.array([float("inf"), float("nan")])})
    {'a': [0.5, 3], 'b': ['inf', None]}
    """
    if isinstance(x, Enum):
        return x.value
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return None if math.isnan(x) else x if math.isfinite(x) else str(x)
    if isinstance(x, Mapping):
        return {str(key): to_json(value) for key, value in x.items()}
    if isinstance(x, tuple | list | set | frozenset | range):
        return [to_json(value) for value in x]
    if hasattr(x, "to_json"):
        return x.to_json()
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return record_to_json(x)
    return str(x)


def record_to_json(record: Any) -> dict[str, Any]:
    """The fields of a dataclass as plain data; those marked ``metadata={"saved": False}`` stay."""
    return {
        f.name: to_json(getattr(record, f.name))
        for f in dataclasses.fields(record)
        if f.metadata.get("saved", True)
    }


def from_json(kind: type[T], data: Any) -> T:
    """Read what :func:`to_json` wrote, as a value of a type.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Bound:
    ...     name: str
    ...     low: float
    ...     rows: tuple[int, ...] = ()
    >>> bound = Bound("recall", float("-inf"), (3, 4))
    >>> from_json(Bound, to_json(bound)) == bound
    True
    """
    return _read(kind, data, kind.__name__)


def record_from_json(kind: type[T], data: Any) -> T:
    """A dataclass from its fields, whatever methods of its own it has."""
    name = kind.__name__
    if not isinstance(data, Mapping):
        raise FileError(f"this file is damaged: {name} should be an object, not {data!r}")
    hints, values = _hints(kind), {}
    for f in dataclasses.fields(kind):  # type: ignore[arg-type]
        if not f.init or not f.metadata.get("saved", True):
            continue
        if f.name in data:
            values[f.name] = _read(hints[f.name], data[f.name], f"{name}.{f.name}")
        elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise FileError(f'this file is damaged: {name} lacks "{f.name}"')
    try:
        return kind(**values)
    except SetpointError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise FileError(f"this file is damaged: {name}: {error}") from error


class Record:
    """Base of frozen dataclasses that are saved: their fields, through the codec.

    A subclass that writes more (a format, what is derived) extends :meth:`to_json`.
    """

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; infinities are strings."""
        return record_to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Read what :meth:`to_json` wrote."""
        return record_from_json(cls, data)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any, where: str) -> Any:
    """A value of a type hint; ``where`` names the place in a sentence."""
    if kind is Any:
        return data
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, data, where)
    if origin is typing.Literal:
        return _checked(data in arguments, data, data, where)
    kind = origin or kind
    if kind is float:
        return _number(data, where)
    if kind in (int, str, bool):
        return _checked(type(data) is kind, data, data, where)
    if kind in (tuple, list, frozenset, set):
        _checked(isinstance(data, list | tuple), data, data, where)
        if kind is tuple and arguments and arguments[-1] is not Ellipsis:
            _checked(len(data) == len(arguments), data, data, where)
            return tuple(_read(a, x, where) for a, x in zip(arguments, data, strict=True))
        inner = arguments[0] if arguments else Any
        return kind(_read(inner, x, where) for x in data)
    if kind is np.ndarray:
        _checked(isinstance(data, list | tuple), data, data, where)
        if arguments and typing.get_args(arguments[-1]) == (np.float64,):
            return np.array([_number(x, where) for x in data], np.float64)
        return np.array([_number(x, where) if isinstance(x, str) else x for x in data])
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [member.value for member in kind]
        return kind(_checked(data in values, data, data, where))
    if isinstance(kind, type) and issubclass(kind, Mapping):
        _checked(isinstance(data, Mapping), data, data, where)
        inner = arguments[1] if arguments else Any
        return {key: _read(inner, value, where) for key, value in data.items()}
    if kind is Path:
        return Path(data)
    if hasattr(kind, "from_json"):
        return kind.from_json(data)
    if dataclasses.is_dataclass(kind):
        return record_from_json(typing.cast("type", kind), data)
    return data


def _read_union(kinds: tuple[Any, ...], data: Any, where: str) -> Any:
    """The first kind of a union that the data can be; plain kinds before records."""
    if data is None:
        return _checked(type(None) in kinds or float in kinds, None, data, where)
    tried = sorted((k for k in kinds if k is not type(None)), key=lambda k: k is not type(data))
    for kind in tried[:-1]:
        try:
            return _read(kind, data, where)
        except FileError:
            continue
    return _read(tried[-1], data, where)


def _number(data: Any, where: str) -> float:
    if data is None:
        return math.nan
    plain = isinstance(data, int | float) and not isinstance(data, bool)
    _checked(plain or data in ("inf", "-inf", "nan"), data, data, where)
    return float(data)


def _checked(good: bool, value: Any, data: Any, where: str) -> Any:
    if not good:
        raise FileError(f"this file is damaged: {where} cannot be {data!r}")
    return value


# Numbers of a record that is kept as plain data.


def number(x: Any) -> float:
    """A number of a record as a float; what is not there is not-a-number.

    Examples
    --------
    >>> number("inf"), number(None), number(3)
    (inf, nan, 3.0)
    """
    return _number(x, "a number")


def number_to(x: Any) -> Any:
    """A number as JSON can say it; what is no number stays.

    Unlike :func:`to_json` not-a-number is a word: beside it null stands for a value that is empty,
    and the two have to be told apart when they are read.

    Examples
    --------
    >>> number_to(np.float64("inf")), number_to(float("nan")), number_to(None)
    ('inf', 'nan', None)
    """
    if isinstance(x, np.generic):
        x = x.item()
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def number_from(x: Any) -> Any:
    """The inverse of :func:`number_to`."""
    return float(x) if isinstance(x, str) and x in ("inf", "-inf", "nan") else x


def numbers(xs: Any) -> np.ndarray:
    """A list of a record as an array of floats."""
    return np.array([number(x) for x in xs], dtype=np.float64)


plain = to_json
