"""The least, the greatest or the mean of several expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from setpoint._core.arrays import both, plain_bool, where
from setpoint.expressions import value_intervals as intervals
from setpoint.expressions.arithmetic import Expression
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.node import ATOM, common_direction
from setpoint.expressions.value_intervals import Interval


@dataclass(frozen=True, eq=False, repr=False)
class Several(Expression):
    """The least, the greatest or the mean of several expressions.

    With ``skip`` the undefined ones are left out, and only if all are it is undefined itself.
    """

    how: str  # "min", "max" or "mean"
    items: tuple[Expression, ...]
    skip: bool = False

    def read(self, env: Mapping[Any, Any]) -> Reading:
        parts = [item.read(env) for item in self.items]
        if not self.skip or all(p.defined is True for p in parts):
            return Reading(
                self._join([p.value for p in parts]), reduce(both, (p.defined for p in parts))
            )
        if self.how == "mean":
            count = sum(1.0 * p.defined for p in parts)
            total = sum(where(p.defined, p.value, 0.0) for p in parts)
            some = plain_bool(count != 0)
            return Reading(where(some, total / where(some, count, 1.0), 0.0), some)
        worst = float("inf") if self.how == "min" else float("-inf")
        value = self._join([where(p.defined, p.value, worst) for p in parts])
        some = plain_bool(reduce(lambda a, b: a | b, (p.defined for p in parts)))
        return Reading(where(some, value, 0.0), some)

    def _join(self, values: list[Any]) -> Any:
        if self.how == "mean":
            return reduce(lambda a, b: a + b, values) / len(values)
        pick = (lambda a, b: a <= b) if self.how == "min" else (lambda a, b: a >= b)
        return reduce(lambda a, b: where(plain_bool(pick(a, b)), a, b), values)

    def text(self) -> tuple[str, int]:
        return f"{self.how}({', '.join(map(str, self.items))})", ATOM

    def latex(self) -> str:
        inner = ", ".join(item.latex() for item in self.items)
        return rf"\operatorname{{{self.how}}}\left({inner}\right)"

    def interval(self) -> Interval:
        return intervals.hull(*(item.interval() for item in self.items))

    def better(self) -> int | None:
        return common_direction([item.better() for item in self.items])

    def normal(self) -> Expression:
        """Sorted by key, since the order says nothing."""
        items = sorted((item.normal() for item in self.items), key=lambda x: repr(x.key()))
        return Several(self.how, tuple(items), self.skip)
