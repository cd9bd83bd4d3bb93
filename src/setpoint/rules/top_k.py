"""The first k rows by score, of all or of each query: the rule of goals such as precision_at_k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from setpoint._core.arrays import Array, to_numpy
from setpoint._core.errors import DataError, GoalError, Spelling
from setpoint.expressions import AtK, Columns, Curve, Task, take_names
from setpoint.expressions.constraint import SLACK
from setpoint.expressions.named_metric import unnamed
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.rule import BestRule, Rule, RuleSearch, as_array_of


@final
@dataclass(frozen=True, kw_only=True)
class TopK(Rule):
    """Decide positive the first k rows by score, of equal scores those that come first.

    Attributes
    ----------
    k : int
    by : str or None
        "query" for the first k of each query.
    """

    k: int
    by: str | None = None

    kind: ClassVar[str] = "top-k"
    tasks: ClassVar[tuple[str, ...]] = ("binary", "ranking")
    row_by_row: ClassVar[bool] = False
    no_proof: ClassVar[str] = "the first k of other rows are another rule"
    set_by_goal: ClassVar[bool] = True
    finds_binding: ClassVar[bool] = False  # k alone decides: no constraint can cost anything
    only_with: ClassVar[str] = (
        'kind="top-k" goes with a goal on precision_at_k(k) or recall_at_k(k)'
    )

    @classmethod
    def asked_by(cls, goal: Goal) -> bool:
        """Whether the objective is about the first k rows."""
        return _top_k(goal) is not None

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The rule of the goal's own k, and how it fares."""
        del options
        top = _top_k(goal)
        if top is None:
            raise GoalError(
                'a ranking task is tuned by precision_at_k(k, by="query") or recall_at_k'
            )
        if goal.sign < 0:
            raise GoalError(f'"{goal}": the first k rows are taken to be the best; maximize it')
        value = float(top.reading(top.measure(columns)).value)
        rule = cls(task=columns.task, k=int(top.k), by=top.by)
        best = BestRule(goal=goal, rule=rule, feasible=True, value=value)
        if not goal.constraints:
            return best
        if columns.task.kind != "binary" or top.by is not None:
            raise GoalError("constraints beside precision_at_k need a binary task without queries")
        decided = rule.decided_columns(columns)
        problem = GoalOnRows.ground(goal, decided)
        for text, constraint in zip(goal.constraints, problem.constraints, strict=True):
            leaves = [leaf for side in constraint.sides for leaf in side.leaves()]
            curves = [leaf for leaf in leaves if isinstance(leaf, Curve)]
            if any(not isinstance(c, AtK) or replace(c, given=top.given) != top for c in curves):
                raise GoalError(
                    f'"{text}" ranks other rows than the first {top.k} of all; constrain '
                    f"precision_at_k({top.k}), recall_at_k({top.k}) or metrics of decisions"
                )
        point = problem.judge(decided)  # k alone decides: there is nothing else to reach
        alone = [excess <= SLACK for excess in point.excess]
        standings = problem.standings(point, point.sides, alone, [False] * len(alone))
        return replace(best, held=standings, feasible=point.feasible)

    def is_sound(self) -> bool:
        """Whether k is a whole number, 1 or more."""
        return isinstance(self.k, int) and not isinstance(self.k, bool) and self.k > 0

    @property
    def needs_query(self) -> bool:
        """Whether it takes the first k of each query."""
        return self.by == "query"

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """True for the first k rows, of all or of each query."""
        del group
        scores = to_numpy(s)
        decided = np.zeros(scores.size, bool)
        if self.needs_query:
            if query is None:
                raise DataError(
                    "this rule takes the first k of each query: {way}",
                    way=Spelling("pass query=", "say --query"),
                )
            queries = take_names(query, "query", scores.size)
            for value in np.unique(queries):
                rows = np.flatnonzero(queries == value)
                decided[rows[np.argsort(-scores[rows], kind="stable")[: self.k]]] = True
            return as_array_of(decided, s)
        if self.k > scores.size:
            raise DataError(
                f"k = {self.k} is more than the {scores.size} rows given; pass at least k rows"
            )
        decided[np.argsort(-scores, kind="stable")[: self.k]] = True
        return as_array_of(decided, s)

    def describe(self) -> str:
        """The rule in words."""
        return f"the {self.k} highest scores" + (" of each query" if self.needs_query else "")

    def numbers(self) -> dict[str, Any]:
        """k, and what it is counted by."""
        return {"k": self.k, "by": self.by}

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> TopK:
        """Read what :meth:`numbers` wrote."""
        return cls(task=task, k=data["k"], by=data["by"])


def _top_k(goal: Goal) -> AtK | None:
    body = unnamed(goal.objective)
    return body if isinstance(body, AtK) else None
