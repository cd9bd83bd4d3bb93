"""Named metrics: a name, its arguments, and the tree they stand for."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from setpoint._core.errors import GoalError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.arithmetic import Expression
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.leaf import Leaf
from setpoint.expressions.node import ATOM, latex_text, literal_text
from setpoint.expressions.rows.domain import Domain
from setpoint.expressions.rows.row_events import Label
from setpoint.expressions.value_intervals import Interval

Arguments = tuple[tuple[str | None, Label], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Named(Expression):
    """A metric by its name.

    Parameters
    ----------
    name : str
        As written in goals.
    body : Expression
        What the name stands for.
    direction : int
        1 if higher is better, −1 if lower is, 0 if neither.
    span : pair of float
        The values it can take.
    arguments : tuple of (keyword or None, value)
        As written in goals.
    tasks : tuple of str
        The kinds of task it is for; empty where its parts decide.
    """

    name: str
    body: Expression
    direction: int
    span: Interval
    arguments: Arguments = ()
    tasks: tuple[str, ...] = ()

    def read(self, env: Mapping[Any, Any]) -> Reading:
        return self.body.read(env)

    def expand(self, domain: Domain) -> Expression:
        """The body's ground form."""
        if self.tasks and domain.kind not in self.tasks:
            raise GoalError(f"{self} is for {listing(self.tasks)} tasks, not {domain.kind}")
        return self.body.expand(domain)

    def normal(self) -> Expression:
        """The body's normal form."""
        return self.body.normal()

    def text(self) -> tuple[str, int]:
        if not self.arguments:
            return self.name, ATOM
        written = (f"{k}={literal_text(v)}" if k else literal_text(v) for k, v in self.arguments)
        return f"{self.name}({', '.join(written)})", ATOM

    def latex(self) -> str:
        return rf"\mathrm{{{latex_text(self.text()[0])}}}"

    def interval(self) -> Interval:
        return self.span

    def better(self) -> int | None:
        return self.direction

    def __call__(self, *rows: Any, **more: Any) -> Any:
        """Evaluate with positional arguments; with options alone, give a variant.

        >>> import setpoint as sp
        >>> sp.recall([1, 1, 0], [1, 0, 0])
        0.5
        >>> sp.auroc(max_fpr=0.05)
        metric('auroc(max_fpr=0.05)')
        """
        if rows or "y_true" in more:
            try:
                return super().__call__(*rows, **more)
            except TypeError as error:
                misfit = _misfit(super().__call__, rows, more)
                if isinstance(error, KindError) or misfit is None:
                    raise
                raise KindError(
                    f"{self.name} is evaluated as {self.name}(y_true, y_pred, sample_weight=None, "
                    f"group=None); {misfit}"
                ) from error
        return self.variant(more)

    def variant(self, options: Mapping[str, Any]) -> Named:
        """The metric with other options, for metrics that have any."""
        allowed = self.body.options if isinstance(self.body, Leaf) else ()
        for option in options:
            if option not in allowed:
                way = f"it takes {listing(allowed)}" if allowed else "it takes none"
                hint = did_you_mean(option, allowed, way)
                raise GoalError(f'{self.name} has no option "{option}": {hint}')
        if not options:
            raise GoalError(f"{self.name}() is empty; write {self.name}, or pass y_true and y_pred")
        body = dataclasses.replace(self.body, **options)  # type: ignore[type-var]
        usual = {field.name: field.default for field in dataclasses.fields(self.body)}  # type: ignore[arg-type]
        given: dict[str | None, Label] = {**dict(self.arguments), **options}
        given = {k: v for k, v in given.items() if k is None or v != usual[k]}
        return Named(self.name, body, self.direction, self.span, tuple(given.items()), self.tasks)


def _misfit(call: Any, rows: tuple[Any, ...], more: Mapping[str, Any]) -> str | None:
    """Why arguments do not fit the signature of a call; None where they do."""
    try:
        inspect.signature(call).bind(*rows, **more)
    except TypeError as error:
        return str(error)
    return None


def unnamed(expression: Expression) -> Expression:
    """What the name of a metric, or a name of a name, stands for."""
    while isinstance(expression, Named):
        expression = expression.body
    return expression
