"""Expressions as plain data: every node by its name and its fields, and back.

Nothing is executed on the way: a node is looked up in a table, and its own checks run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.words import listing
from setpoint.expressions.arithmetic import (
    Absolute,
    Bound,
    Expression,
    Number,
    Power,
    Product,
    Ratio,
    Sum,
)
from setpoint.expressions.constraint import Constraint
from setpoint.expressions.named_metric import Named
from setpoint.expressions.ranking_curves import AtK, Auroc, Best, Ndcg, PrecisionOverRecall
from setpoint.expressions.reductions import Over, Several
from setpoint.expressions.rows.row_events import Event, Literal, Not
from setpoint.expressions.totals import Spread, Total

NODES: dict[str, type] = {
    node.__name__: node
    for node in (
        Absolute, AtK, Auroc, Best, Bound, Constraint, Event, Literal, Named, Ndcg, Not, Number,
        Over, Power, PrecisionOverRecall, Product, Ratio, Several, Spread, Sum, Total,
    )
}  # fmt: skip


def to_json(thing: Any) -> Any:
    """An expression, or any value in it, as plain data.

    Examples
    --------
    >>> import setpoint as sp
    >>> data = to_json(2 * sp.recall)
    >>> data["node"], from_json(data) == 2 * sp.recall
    ('Product', True)
    """
    if type(thing).__name__ in NODES:
        parts = {f.name: to_json(getattr(thing, f.name)) for f in fields(thing)}
        return {"node": type(thing).__name__, **parts}
    if isinstance(thing, frozenset):
        return {"set": sorted(map(to_json, thing), key=repr)}
    if isinstance(thing, tuple):
        return [to_json(item) for item in thing]
    if isinstance(thing, float) and thing in (float("inf"), float("-inf")):
        return {"number": str(thing)}
    return thing


def from_json(data: Any) -> Expression:
    """Read what :func:`to_json` wrote.

    Raises
    ------
    FileError
        If the data is no expression.
    """
    try:
        found = _read(data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"this is not an expression: {error}") from error
    if not isinstance(found, Expression):
        raise FileError(f"this is not an expression but {type(found).__name__}")
    return found


def _read(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(map(_read, data))
    if not isinstance(data, Mapping):
        return data
    if "set" in data:
        return frozenset(map(_read, data["set"]))
    if "number" in data:
        return float(data["number"])
    node = NODES.get(data["node"])
    if node is None:
        raise FileError(f'unknown node "{data["node"]}"; known are {listing(NODES, 30)}')
    return node(**{name: _read(value) for name, value in data.items() if name != "node"})
