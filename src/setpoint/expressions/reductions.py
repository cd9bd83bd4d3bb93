"""Reductions over classes, groups, target bins: ``macro(f1)``, ``worst(recall, by="group")``.

Which classes and groups there are is known only with the rows, so a reduction is a node of its own
until ``expand`` writes it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from setpoint._core.arrays import both, plain_bool, where
from setpoint._core.errors import GoalError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import value_intervals as intervals
from setpoint.expressions.arithmetic import Expression, Product, Ratio, Sum
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.node import ATOM, common_direction, latex_text, literal_text
from setpoint.expressions.rows.domain import Domain
from setpoint.expressions.rows.row_events import BIN, RESERVED, Event, Literal, actual
from setpoint.expressions.totals import Total
from setpoint.expressions.value_intervals import Interval

# The least, the greatest or the mean of several expressions.


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


#: name -> (what it is by default taken over, what it is)
HOWS = {
    "macro": ("class", "mean over classes"),
    "micro": ("class", "totals summed over classes"),
    "weighted": ("class", "mean over classes, weighted by their rows"),
    "balanced": ("bin", "mean over the target bins that hold rows"),
    "present": ("class", "mean over the classes that hold rows"),
    "summed": ("class", "sum over classes"),
    "worst": (None, "the worst of them"),
    "least": (None, "the least of them"),
    "greatest": (None, "the greatest of them"),
    "gap": (None, "greatest minus least"),
    "ratio": (None, "least over greatest"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Over(Expression):
    """A reduction of ``inner`` over the values of ``by``."""

    how: str
    inner: Expression
    by: str
    support: Expression | None = None  #: the weights of "weighted"

    def __post_init__(self) -> None:
        if self.how == "weighted" and self.support is None:
            object.__setattr__(self, "support", Total(actual))
        usual, _ = HOWS[self.how]
        if not isinstance(self.inner, Expression):
            raise GoalError(f"{self.how}(…) takes a metric; got {self.inner!r}")
        if self.by == "query":
            raise GoalError(
                f'{self.how}(…, by="query"): ranking metrics take by="query" themselves'
            )
        if not isinstance(self.by, str):
            raise GoalError(f"{self.how}(…, by={self.by!r}): by is a word or a column's name")
        if self.by in RESERVED and self.by not in (BIN, "class"):
            words = ("class", "group", "bin")
            hint = did_you_mean(self.by, words, f"take {listing(words)} or a column's name")
            raise GoalError(f'{self.how}(…, by="{self.by}"): {hint}')
        if usual is not None and self.by != usual:
            raise GoalError(f'{self.how}(…) is taken over each {usual}, not by="{self.by}"')
        if self.how == "worst" and not self.inner.better():
            raise GoalError(
                f"worst({self.inner}): it is not known whether higher or lower is better; "
                f'say least({self.inner}, by="{self.by}") or greatest(…)'
            )
        if self.how == "micro" and any(isinstance(x, Over) for x in self.inner.walk()):
            raise GoalError(f"micro({self.inner}): a micro average takes a metric of one class")
        if self.how == "micro" and "scores" in self.inner.needs():
            raise GoalError(f"micro({self.inner}): only totals of decisions add up; use macro")

    def read(self, env: Mapping[Any, Any]) -> Reading:
        raise GoalError(f'"{self}" must be expanded over rows before it is read')

    def expand(self, domain: Domain) -> Expression:
        """Write the reduction out over the values present or declared."""
        if self.by == "class" and not domain.classes:
            raise GoalError(f'"{self}" is taken over classes, and a {domain.kind} task has none')
        if self.by == BIN and domain.kind != "regression":
            raise GoalError(f'"{self}" is taken over target bins, which only a regression task has')
        if self.how in ("summed", "present") and domain.side is None:
            self._needs_one_decision_a_row(domain)
        if self.how == "micro":
            return self.inner.map_leaves(
                lambda leaf: Sum(tuple(leaf.of(side) for side in domain.classes))
            ).expand(domain)
        parts = self._parts(self.inner, domain)
        skip = self.by == BIN or self.how == "present"
        if self.how in ("macro", "balanced", "present"):
            return Several("mean", parts, skip)
        if self.how == "summed":
            return Sum(parts)
        if self.how in ("worst", "least", "greatest"):
            return Several("min" if self._end() == "least" else "max", parts, skip)
        if self.how == "gap":
            return Several("max", parts, skip) - Several("min", parts, skip)
        if self.how == "ratio":
            return Ratio(Several("min", parts, skip), Several("max", parts, skip))
        support = self._parts(Total(actual) if self.support is None else self.support, domain)
        return Ratio(Sum(tuple(map(Product, zip(support, parts, strict=True)))), Sum(support))

    def _needs_one_decision_a_row(self, domain: Domain) -> None:
        """Metrics over the whole confusion matrix need each row in one cell of it."""
        if domain.kind == "multilabel":
            raise GoalError(
                "mcc, kappa and balanced_accuracy speak of one label; in a multilabel task say "
                'macro(mcc) or mcc.of("label")'
            )
        if self.how == "summed" and domain.abstains:
            raise GoalError(
                "mcc and kappa are not defined where rows abstain; leave abstained= out"
            )
        if self.how == "summed" and domain.task.unknown is not None:
            raise GoalError("mcc and kappa are not defined for rows of none of the classes")

    def _end(self) -> str:
        """Which end of the values is taken."""
        if self.how != "worst":
            return self.how
        return "least" if self.inner.better() == 1 else "greatest"

    def normal(self) -> Expression:
        """The worst as the least or the greatest, since the inner normal form has no direction."""
        return Over(self._end(), self.inner.normal(), self.by, self.support)

    def _parts(self, inner: Expression, domain: Domain) -> tuple[Expression, ...]:
        if self.by == "class":
            return tuple(
                inner.expand(domain.seen_from(side)).map_leaves(lambda x, side=side: x.of(side))
                for side in domain.classes
            )
        values = range(domain.bins) if self.by == BIN else domain.group_values(self.by)
        rows = [Event(frozenset([Literal(self.by, value)])) for value in values]
        parts = (inner.map_leaves(lambda leaf, r=r: leaf.within(r)) for r in rows)
        return tuple(part.expand(domain) for part in parts)

    def text(self) -> tuple[str, int]:
        by = "" if HOWS[self.how][0] == self.by else f", by={literal_text(self.by)}"
        return f"{self.how}({self.inner}{by})", ATOM

    def latex(self) -> str:
        below = "" if HOWS[self.how][0] == self.by else rf"_{{\text{{{latex_text(self.by)}}}}}"
        return rf"\operatorname{{{self.how}}}{below}\left({self.inner.latex()}\right)"

    def interval(self) -> Interval:
        low, high = self.inner.interval()
        if self.how == "gap":
            return 0.0, high - low
        if self.how == "ratio":
            return intervals.UNIT if low >= 0 else intervals.WHOLE
        return intervals.WHOLE if self.how == "summed" else (low, high)

    def better(self) -> int | None:
        return {"gap": -1, "ratio": 1, "summed": 0}.get(self.how, self.inner.better())
