"""`evaluate`: what a rule does on other rows than those it was chosen on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setpoint.expressions import Columns, Ratio, measure
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.decision_rule import DecisionRule, applied
from setpoint.rules.goal_on_rows import GoalOnRows


@dataclass(frozen=True)
class ConstraintValue:
    """One constraint on these rows: its left side (None where empty), and whether it holds.

    ``short`` is how far it is from holding, relative to a bound beyond 1, and at most 1.
    """

    constraint: str
    value: float | None
    holds: bool
    short: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """A rule's goal on some rows.

    Attributes
    ----------
    goal : Goal
    value : float or None
        The objective; None where it is an empty rate.
    kept : tuple of ConstraintValue
    rows : int
    """

    goal: Goal
    value: float | None
    kept: tuple[ConstraintValue, ...]
    rows: int

    @property
    def holds(self) -> bool:
        """Whether every constraint holds on these rows."""
        return all(k.holds for k in self.kept)

    def __str__(self) -> str:
        def shown(value: float | None) -> str:
            return "empty" if value is None else f"{value:.4g}"

        kept = (
            f", {k.constraint} {'holds' if k.holds else 'BROKEN'} ({shown(k.value)})"
            for k in self.kept
        )
        return f"{self.goal.objective} {shown(self.value)}{''.join(kept)} on {self.rows:,} rows."


def evaluate(
    rule: DecisionRule,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
) -> Evaluation:
    """Apply a rule to rows with labels, and read its goal there.

    A figure, not a proof: rows that the rule was chosen on flatter it.

    Parameters
    ----------
    rule : DecisionRule
    y_true, scores : array-like
        As for :func:`tune`.
    sample_weight, group, query : array-like, optional
        As for :func:`tune`; ``group`` wherever the goal or the rule speaks of it.

    Examples
    --------
    >>> import setpoint as sp
    >>> goal = "maximize recall subject to precision >= 0.7"
    >>> rule = sp.tune(goal, [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> print(sp.evaluate(rule, [0, 1, 1], [0.5, 0.6, 0.2]))
    recall 0.5, precision >= 0.7 BROKEN (0.5) on 3 rows.
    """
    given = {"sample_weight": sample_weight, "group": group, "query": query}
    return evaluate_columns(rule, applied(rule, y_true, scores, **given))


def evaluate_columns(rule: DecisionRule, columns: Columns) -> Evaluation:
    """:func:`evaluate` of rows that are checked, on the host, and hold the rule's decisions."""
    problem = GoalOnRows.ground(rule.goal, columns)
    point = problem.judge(columns)
    value = point.value
    if value is None and not isinstance(problem.objective, Ratio):
        # an average of which a part is empty: that part has its conventional value, as in a metric
        value = float(measure(rule.goal.objective, columns).value())
    kept = tuple(
        ConstraintValue(
            str(c), side, excess <= SLACK, min(max(excess, 0.0), 1.0) if excess > SLACK else 0.0
        )
        for c, side, excess in zip(rule.goal.constraints, point.sides, point.excess, strict=True)
    )
    return Evaluation(rule.goal, value, kept, columns.size)
