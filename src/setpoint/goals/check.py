"""Discipline: whether a goal is well formed for a task.

Every refusal names the offending sub-expression and the way out.
"""

from __future__ import annotations

import math
from typing import Any

from setpoint._core.errors import GoalError
from setpoint._core.words import listing
from setpoint.expressions import (
    Constraint,
    Curve,
    Event,
    Expression,
    Literal,
    Named,
    Number,
    Over,
    Product,
    Ratio,
    Spread,
    Sum,
    Task,
    Total,
)
from setpoint.expressions.constraint import SLACK
from setpoint.expressions.rows.row_events import BIN
from setpoint.goals.goal import Goal


def check(goal: Goal, task: Task | str | None = None) -> Goal:
    """Return the goal if it is well formed for the task.

    Raises
    ------
    GoalError
        If a part does not fit the task, a bound lies outside what a metric can be, or constraints
        contradict each other.

    Examples
    --------
    >>> check(Goal.parse("maximize recall subject to precision >= 1.2"))
    Traceback (most recent call last):
    ...
    setpoint.GoalError: "precision >= 1.2" can never hold: precision lies in [0, 1]
    """
    goal = Goal.of(goal)
    kind = Task.make(task).kind
    for expression in (goal.objective, *(side for c in goal.constraints for side in c.sides)):
        _fits(expression, kind)
    for constraint in goal.constraints:
        _reachable(constraint)
    _compatible(goal.constraints)
    return goal


# --- task ------------------------------------------------------------------------------------


def _fits(expression: Expression, kind: str, one_class: bool = False, top: Any = None) -> None:
    """Walk down; ``one_class``: a class was said above; ``top``: the metric we are in."""
    top = expression if isinstance(expression, Named) and top is None else top
    if isinstance(expression, Named) and expression.tasks and kind not in expression.tasks:
        raise GoalError(f"{expression} is for {listing(expression.tasks)} tasks, not {kind}")
    if isinstance(expression, Over):
        _reduction_fits(expression, kind, one_class, top)
        one_class = one_class or expression.by == "class"
    says_class = getattr(expression, "label", None) is not None
    if says_class and kind in ("ranking", "regression"):
        raise GoalError(f'"{expression}" speaks of a class, and a {kind} task has none')
    one_class = one_class or says_class
    if isinstance(expression, Curve):
        _curve_fits(expression, kind, one_class, top)
    elif isinstance(expression, Total):
        _total_fits(expression, kind, one_class, top)
    elif isinstance(expression, Spread) and kind != "regression":
        raise GoalError(f"{top} is for regression tasks, not {kind}")
    for child in expression.children():
        _fits(child, kind, one_class, top)


def _reduction_fits(over: Over, kind: str, one_class: bool, top: Any) -> None:
    if over.how in ("summed", "present") and kind == "multilabel" and not one_class:
        raise GoalError(f"{top} speaks of one label; in a multilabel task say macro({top})")
    if over.by == "class" and kind in ("ranking", "regression"):
        raise GoalError(f'"{over}" is taken over classes, and a {kind} task has none')
    if over.by == BIN and kind != "regression":
        raise GoalError(f'"{over}" is taken over target bins, which only a regression task has')


def _total_fits(total: Total, kind: str, one_class: bool, top: Any) -> None:
    about_errors = total.quantity != "one"
    if kind == "ranking":
        raise GoalError(
            f"{top} judges decisions; a ranking task has scores: ndcg, precision_at_k, …"
        )
    if kind == "regression" and not about_errors and total.event.literals:
        raise GoalError(f"{top} judges classes; a regression task has mae, mse, rmse, r2")
    if kind != "regression" and about_errors:
        raise GoalError(f"{top} is for regression tasks, not {kind}")
    if kind in ("multiclass", "multilabel") and total.speaks_of_one_class() and not one_class:
        raise GoalError(
            f"{top} speaks of one class; in a {kind} task say macro({top}), micro({top}), "
            f'{top}.of("class") or worst({top}, by="class")'
        )


def _curve_fits(curve: Curve, kind: str, one_class: bool, top: Any) -> None:
    if kind == "regression":
        raise GoalError(f"{top} judges a ranking; a regression task has mae, mse, rmse, r2")
    if kind in ("multiclass", "multilabel") and not one_class:
        raise GoalError(
            f'{top} speaks of one class; in a {kind} task say macro({top}) or {top}.of("class")'
        )
    if kind == "ranking" and not (curve.ranks or curve.by == "query"):
        raise GoalError(f'{top} is not taken by query; in a ranking task use ndcg(k) or by="query"')


# --- bounds ----------------------------------------------------------------------------------


def _reachable(constraint: Constraint) -> None:
    if not constraint.left.needs() and not constraint.right.needs():
        raise GoalError(f'"{constraint}" compares two numbers')
    right = constraint.right.normal()
    if not isinstance(right, Number) or not constraint.left.needs():
        return
    bound = right.value
    low, high = constraint.left.interval()
    span = f"{constraint.left} lies in {_range(low, high)}"
    below, above = bound < low, bound > high
    if constraint.op == ">=":
        never, always = above, below
    elif constraint.op == "<=":
        never, always = below, above
    else:
        never, always = below or above, False
    if never:
        percent = f"; did you mean {bound:g}%?" if high == 1 and 2 <= bound <= 100 else ""
        raise GoalError(f'"{constraint}" can never hold: {span}{percent}')
    if always:
        raise GoalError(f'"{constraint}" always holds and asks for nothing: {span}')


def _range(low: float, high: float) -> str:
    left = f"[{low:g}" if math.isfinite(low) else "(-inf"
    right = f"{high:g}]" if math.isfinite(high) else "inf)"
    return f"{left}, {right}"


def _compatible(constraints: tuple[Constraint, ...]) -> None:
    """Constraints on one expression must leave it a value.

    A constraint on a·x + b is turned into one on x, so that ``1 - fpr`` and ``fpr`` meet.
    """
    spans: dict[Any, tuple[float, float, Constraint | None, Constraint | None]] = {}
    for constraint in constraints:
        right = constraint.right.normal()
        if not isinstance(right, Number):
            continue
        key, scale, shift = _affine(constraint.left)
        bound = (right.value - shift) / scale
        op = constraint.op if scale > 0 else {">=": "<=", "<=": ">="}.get(constraint.op, "==")
        low, high, by_low, by_high = spans.get(key, (-math.inf, math.inf, None, None))
        if op in (">=", "==") and bound > low:
            low, by_low = bound, constraint
        if op in ("<=", "==") and bound < high:
            high, by_high = bound, constraint
        if low > high + SLACK * max(1.0, abs(high)):
            raise GoalError(f'"{by_low}" and "{by_high}" contradict each other; drop one')
        spans[key] = (low, high, by_low, by_high)


def _affine(expression: Expression) -> tuple[tuple, float, float]:
    """(key of x, a, b) with expression = a·x + b, for the simplest such x."""
    inner, scale, shift = expression.normal(), 1.0, 0.0
    if isinstance(inner, Sum):
        rest = [term for term in inner.terms if not isinstance(term, Number)]
        if len(rest) == 1:
            shift = sum(term.value for term in inner.terms if isinstance(term, Number))
            inner = rest[0]
    if (
        isinstance(inner, Product)
        and len(inner.factors) == 2
        and isinstance(inner.factors[0], Number)
    ):
        scale, inner = inner.factors[0].value, inner.factors[1]
    if isinstance(inner, Ratio):
        other = _complement(inner)
        if other is not None:  # a·(1 − y) + b = −a·y + (a + b)
            inner, scale, shift = other, -scale, scale + shift
    return inner.key(), scale, shift


def _complement(rate: Ratio) -> Ratio | None:
    """Rate(not q | e) as one minus Rate(q | e): the latter, or None."""
    top, bottom = rate.numerator, rate.denominator
    if not isinstance(top, Total) or not isinstance(bottom, Total):
        return None
    extra = top.event.literals - bottom.event.literals
    if len(extra) != 1 or bottom.event.literals - top.event.literals:
        return None
    (literal,) = extra
    if literal.holds:
        return None
    turned = Literal(literal.column, literal.value)
    return Ratio(Total(Event(bottom.event.literals | {turned})), bottom, rate.empty)
