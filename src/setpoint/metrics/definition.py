"""A row of the table of metrics, its help text, and the short way to write a metric."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from setpoint._core.errors import GoalError
from setpoint._core.options import is_real
from setpoint.expressions import Expression, Named
from setpoint.expressions.value_intervals import UNIT, Interval

HIGHER, LOWER, NEITHER = 1, -1, 0
_BETTER = {HIGHER: "higher is better", LOWER: "lower is better"}

#: Labels and decisions of the examples: 3 hits, 1 miss, 2 false alarms, 2 negatives left alone.
DECISIONS = "[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 1, 1]"


@dataclass(frozen=True)
class MetricDefinition:
    """One row of the table of metrics.

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
    call, value : str
        Arguments of an example and its value, for the help of a metric that is no function.
    """

    name: str
    what: Expression | Callable[..., Expression]
    formula: str
    reference: str
    says: str
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    call: str = DECISIONS
    value: str = ""

    @property
    def usage(self) -> str:
        """The shortest way to write it."""
        return self.examples[0] if self.examples else self.name

    def help(self, name: str, example: Expression) -> str:
        """The docstring of the metric under one of its names: formula, range, truth, example.

        Parameters
        ----------
        name : str
        example : Expression
            The metric, or an example of it where it takes arguments.
        """
        low, high = example.interval()
        left = f"[{low:g}" if math.isfinite(low) else "(-inf"
        right = f"{high:g}]" if math.isfinite(high) else "inf)"
        better = _BETTER.get(example.better() or NEITHER, "neither way is better by itself")
        others = [other for other in (self.name, *self.aliases) if other != name]
        also = f" Also called {', '.join(others)}." if others else ""
        subject = "Values" if isinstance(self.what, Expression) else f"Values of {example}"
        facts = f"{subject}: {left}, {right}; {better}.{also} Tested against {self.reference}."
        if isinstance(self.what, Expression):
            call = f">>> import setpoint as sp\n>>> sp.{name}({self.call})\n{self.value}\n"
            return (
                f"{self.says[0].upper()}{self.says[1:]}: {self.formula}.\n\n{facts}\n\n"
                f"Examples\n--------\n{call}"
            )
        text = inspect.cleandoc(self.what.__doc__ or "")
        head, _, examples = text.partition("\n\nExamples\n")
        formula = "" if self.formula in text else f"Formula: {self.formula}.\n"
        return f"{head}\n\n{formula}{facts}\n\nExamples\n{examples}"

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
