"""A row of the table of metrics, and the short way to write one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from setpoint._core.errors import GoalError
from setpoint._core.options import is_real
from setpoint.expressions import Expression, Named
from setpoint.expressions.value_intervals import UNIT, Interval

HIGHER, LOWER, NEITHER = 1, -1, 0


@dataclass(frozen=True)
class MetricDefinition:
    """What the table says of one metric.

    Parameters
    ----------
    name : str
    what : Expression or callable
        The metric, or the factory that makes it.
    formula : str
    reference : str
        The outside truth it is tested against.
    says : str
        One sentence.
    aliases : tuple of str
    examples : tuple of str
        How it is written, where it takes arguments or options.
    """

    name: str
    what: Expression | Callable[..., Expression]
    formula: str
    reference: str
    says: str
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The shortest way to write it."""
        return self.examples[0] if self.examples else self.name

    def named(self) -> dict[str, Any]:
        """The metric under its name and under each alias."""
        table: dict[str, Any] = {self.name: self.what}
        for alias in self.aliases:
            what = self.what
            table[alias] = replace(what, name=alias) if isinstance(what, Named) else what
        return table


def metric(
    name: str,
    body: Expression,
    better: int = HIGHER,
    span: Interval = UNIT,
    arguments: tuple[tuple[str | None, Any], ...] = (),
    tasks: tuple[str, ...] = (),
) -> Named:
    """A named metric."""
    return Named(name, body, better, span, arguments, tasks)


def share(metric_name: str, value: Any) -> float:
    """Check an argument that is a rate."""
    if not is_real(value) or not 0 <= value <= 1:
        raise GoalError(f"{metric_name}({value!r}): the argument is a rate, a number in [0, 1]")
    return float(value)
