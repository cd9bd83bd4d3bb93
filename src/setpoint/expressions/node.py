"""A node: what every part of an expression knows of itself.

An atom knows only itself: its children, how it reads their values, which values it can take, which
way is better, how it is written. The rewritings (normal form, ground form) follow from that.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from setpoint.expressions import value_intervals as intervals
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.rows.domain import Domain
from setpoint.expressions.rows.row_events import Label
from setpoint.expressions.value_intervals import Interval

SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4  # how tightly a text binds


class Node(ABC):
    """A part of a tree: a frozen dataclass whose fields are nodes, tuples of nodes, or data."""

    @property
    def need(self) -> str | None:
        """What a leaf looks at: "decisions", "scores" or "rows"; None if it is no leaf."""
        return None

    def children(self) -> tuple[Any, ...]:
        """The nodes among its fields, in order."""
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return tuple(
            item
            for value in values
            for item in (value if isinstance(value, tuple) else (value,))
            if isinstance(item, Node)
        )

    def rebuild(self, children: tuple[Any, ...]) -> Any:
        """The same node over other children."""
        rest, changed = iter(children), {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Node):
                changed[field.name] = next(rest)
            elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
                changed[field.name] = tuple(next(rest) for _ in value)
        return replace(self, **changed) if changed else self  # type: ignore[type-var]

    def key(self) -> tuple:
        """A hashable form of the node; equal for equal structure."""
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return (type(self).__name__, *map(_key, values))

    @abstractmethod
    def read(self, env: Mapping[Any, Any]) -> Reading:
        """The value, given the states of the leaves (numbers or arrays)."""

    @abstractmethod
    def text(self) -> tuple[str, int]:
        """How it is written, and how tightly that binds."""

    @abstractmethod
    def latex(self) -> str:
        """The expression as LaTeX, without the dollar signs."""

    def interval(self) -> Interval:
        """An interval that holds every value it can take."""
        return intervals.WHOLE

    def better(self) -> int | None:
        """1 if higher is better, −1 if lower is, 0 if unknown, None for a constant."""
        return 0

    def normal(self) -> Any:
        """Normal form: names resolved, sums and products flat, sorted and folded."""
        return self.rebuild(tuple(child.normal() for child in self.children()))

    def expand(self, domain: Domain) -> Any:
        """Ground form: names and "by=" resolved over classes, groups and bins."""
        return self.rebuild(tuple(child.expand(domain) for child in self.children()))

    def map_leaves(self, change: Callable[[Any], Any]) -> Any:
        """The same expression over changed leaves."""
        if self.need is not None:
            return change(self)
        return self.rebuild(tuple(child.map_leaves(change) for child in self.children()))

    def walk(self) -> Iterator[Any]:
        """The node and everything below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def leaves(self) -> tuple[Any, ...]:
        """The distinct leaves, in order of appearance."""
        return tuple(dict.fromkeys(node for node in self.walk() if node.need is not None))

    def needs(self) -> set[str]:
        """What its leaves look at."""
        return {node.need for node in self.walk() if node.need is not None}


def common_direction(directions: list[int | None]) -> int | None:
    """The direction all agree on (constants aside), or 0."""
    known = {d for d in directions if d is not None}
    return None if not known else known.pop() if len(known) == 1 else 0


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return value.key() if hasattr(value, "key") else value


# How numbers, labels and nodes are written, in goals and in LaTeX.


def number_text(x: float) -> str:
    """A number as written in goals: 0.9, 2, 1e-06."""
    if isinstance(x, int):
        return str(x)
    return str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(float(x))


def latex_text(x: object) -> str:
    """A text as LaTeX can carry it."""
    signs = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(signs.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in str(x))


def literal_text(x: Label) -> str:
    """A label or an option as written in goals: "b", 3, 0.5, true."""
    if x is None or isinstance(x, bool):
        return {None: "none", True: "true", False: "false"}[x]
    return number_text(x) if isinstance(x, int | float) else json.dumps(x, ensure_ascii=False)


def grouped(node: Node, least: int) -> str:
    """The text of a node, in parentheses if it binds less tightly than ``least``."""
    text, binding = node.text()
    return text if binding >= least else f"({text})"
