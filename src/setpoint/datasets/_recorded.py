"""The record of one encoded column: plain data out, checked data in; nothing is run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.reals import is_real
from setpoint._core.words import listing
from setpoint.datasets.columns.column_encoding import Category, Number

_KINDS: dict[str, type[Number] | type[Category]] = {"number": Number, "category": Category}


def record(column: Number | Category) -> dict[str, Any]:
    """Plain data that :func:`restored` reads back."""
    if isinstance(column, Number):
        return {"kind": "number", **asdict(column)}
    return {"kind": "category", **asdict(column), "levels": list(column.levels)}


def damaged(what: str) -> FileError:
    """The error for data that :func:`record` cannot have written."""
    return FileError(f"these features are damaged: {what}.")


def restored(data: Any, j: int) -> Number | Category:
    """Read the record of column j, every part of it checked."""
    kind = _KINDS.get(str(data.get("kind"))) if isinstance(data, Mapping) else None
    if kind is None:
        raise damaged(f"column {j + 1} is neither a number nor a category")
    parts = {key: value for key, value in data.items() if key != "kind"}
    if set(parts) != set(kind.__dataclass_fields__):
        raise damaged(f"column {j + 1} has the parts {listing(parts)}")
    name, missing = parts["name"], parts["missing"]
    if not isinstance(name, str) or not isinstance(missing, bool):
        raise damaged(f"the name of column {j + 1} is no text, or missing no truth value")
    if kind is Category:
        return _category(name, parts["levels"], parts["other"], missing)
    centre, scale, mean, sd = sizes = [parts[key] for key in ("centre", "scale", "mean", "sd")]
    if not all(is_real(size) and math.isfinite(size) for size in sizes):
        raise damaged(f'a part of column "{name}" is no finite number')
    if scale <= 0 or sd < 0:
        raise damaged(f'the scale of column "{name}" is not positive')
    return Number(name, float(centre), float(scale), float(mean), float(sd), missing)


def _category(name: str, levels: Any, other: Any, missing: bool) -> Category:
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise damaged(f'the levels of column "{name}" are no list of texts')
    if levels != sorted(set(levels)):
        raise damaged(f'the levels of column "{name}" are not sorted, or one is repeated')
    if not isinstance(other, bool):
        raise damaged(f'other is no truth value for column "{name}"')
    return Category(name, tuple(levels), other, missing)
