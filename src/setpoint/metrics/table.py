"""The table of metrics: every name that a goal may use. A row is a promise; the tests hold it."""

from __future__ import annotations

from typing import Any

from setpoint._core.errors import GoalSyntaxError
from setpoint.expressions import Expression, Parser
from setpoint.metrics import binary, ranking, reductions, regression, selective
from setpoint.metrics import operating_points as points
from setpoint.metrics.definition import MetricDefinition

METRICS: dict[str, MetricDefinition] = {
    row.name: row
    for room in (binary, points, ranking, reductions, regression, selective)
    for row in room.ROWS
}

#: Every name and alias, with the metric or factory it stands for.
NAMES: dict[str, Any] = {
    name: what for row in METRICS.values() for name, what in row.named().items()
}


USAGES: dict[str, str] = {
    name: row.usage if row.examples else name for row in METRICS.values() for name in row.named()
}


def _document() -> None:
    """Give every metric and every factory the help that its row says."""
    for row in METRICS.values():
        example = row.what if isinstance(row.what, Expression) else metric(row.usage)
        for name in row.named():
            what = NAMES[name]
            text = row.help(name, example)
            if isinstance(what, Expression):  # frozen: a docstring is no part of what it says
                object.__setattr__(what, "__doc__", text)
            else:
                what.__doc__ = text


def parser_of(text: str) -> Parser:
    """A parser that knows every metric."""
    return Parser(text, NAMES, USAGES)


def metric(text: str) -> Expression:
    """Read an expression from text.

    Examples
    --------
    >>> metric("0.65 * accuracy + 0.35 * recall")
    metric('0.65 * accuracy + 0.35 * recall')

    Raises
    ------
    GoalSyntaxError
        With the place of the mistake and the nearest valid word.
    """
    parser = parser_of(text)
    expression = parser.sum()
    if parser.now.kind != "end":
        parser.fail(f'cannot read "{parser.now.word}" here')
    if not expression.needs():
        raise GoalSyntaxError("a number alone is no metric", text, 0, len(text))
    return expression


_document()
