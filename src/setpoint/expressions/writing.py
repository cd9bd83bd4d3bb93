"""How numbers, labels and nodes are written, in goals and in LaTeX."""

from __future__ import annotations

import json

from setpoint.expressions.node import Node
from setpoint.expressions.rows.row_events import Label


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
