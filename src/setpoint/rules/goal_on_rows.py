"""A goal met with rows: ground objective and constraints, and what they read at one point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, GoalError, Name
from setpoint.expressions import (
    Columns,
    Constraint,
    Curve,
    Domain,
    Expression,
    Scan,
    Total,
    scan,
)
from setpoint.expressions.candidate_scan import Candidates
from setpoint.expressions.constraint import SLACK
from setpoint.expressions.rows.row_events import KEPT
from setpoint.goals import Goal
from setpoint.rules.rule import BestRule, ConstraintStanding, Rule


@dataclass(frozen=True)
class Point:
    """The objective and the constraints at one candidate."""

    value: float | None
    sides: tuple[float | None, ...]
    excess: tuple[float, ...]

    @property
    def feasible(self) -> bool:
        """Whether the objective is defined and every constraint holds."""
        return self.value is not None and all(e <= SLACK for e in self.excess)

    def rank(self, sign: int) -> tuple[bool, float, float]:
        """Sorts candidates: feasible ones by objective, the others by their largest excess."""
        merit = float("-inf") if self.value is None else sign * self.value
        return self.feasible, 0.0 if self.feasible else -max(self.excess, default=0.0), merit


@dataclass(frozen=True, eq=False)
class GoalOnRows:
    """A goal over columns, ready to be searched."""

    goal: Goal
    columns: Columns
    objective: Expression
    constraints: tuple[Constraint, ...]

    @classmethod
    def ground(cls, goal: Goal, columns: Columns) -> GoalOnRows:
        """Expand the goal over the columns."""
        domain = Domain(columns)
        constraints = tuple(
            Constraint(c.left.expand(domain), c.op, c.right.expand(domain))
            for c in goal.constraints
        )
        return cls(goal, columns, goal.objective.expand(domain), constraints)

    @classmethod
    def meet(cls, goal: Goal, columns: Columns, abstaining: bool = False) -> GoalOnRows:
        """The same for a search; what no choice of decisions can move is refused."""
        problem = cls.ground(goal.lowered, columns)
        written = (problem.goal.objective, *problem.goal.constraints)
        parts = ((problem.objective,), *(c.sides for c in problem.constraints))
        for text, sides in zip(written, parts, strict=True):
            leaves = [leaf for side in sides for leaf in side.leaves()]
            _moved_by_decisions(text, leaves, abstaining)
        return problem

    def scan(self, candidates: Candidates) -> Scan:
        """Read everything at every candidate."""
        return scan(candidates, self.objective, self.goal.sign, self.constraints)

    def leaves(self) -> dict[Any, None]:
        """All leaves of the objective and the constraints."""
        return self._leaves

    @cached_property
    def _leaves(self) -> dict[Any, None]:
        parts = [self.objective, *(side for c in self.constraints for side in c.sides)]
        return dict.fromkeys(leaf for part in parts for leaf in part.leaves())

    def at(self, env: Mapping[Any, Any]) -> Point:
        """What is read from one set of totals."""
        value = self.objective.read(env)
        judged = [c.judge(env) for c in self.constraints]
        return Point(
            float(value.value) if value.defined else None,
            tuple(float(j.value) if j.defined else None for j in judged),
            tuple(float(j.excess) if j.defined else float("inf") for j in judged),
        )

    def judge(self, decided: Columns) -> Point:
        """What is read from columns with decisions."""
        return self.at({leaf: leaf.measure(decided) for leaf in self.leaves()})

    def best(
        self, rule: Rule, point: Point, held: tuple[ConstraintStanding, ...], **more: Any
    ) -> BestRule:
        """The rule of a point of this problem; ``more`` is how it was searched."""
        return BestRule(
            goal=self.goal,
            rule=rule,
            feasible=point.feasible,
            value=point.value,
            held=held,
            **more,
        )

    def _short(self, j: int, excess: float) -> float:
        """The excess in the units of the metric: the scale of ``Constraint.judge`` undone."""
        if excess <= SLACK:
            return 0.0
        return excess * max(1.0, abs(self.constraints[j].number or 0.0))

    def standings(
        self,
        point: Point,
        reachable: Sequence[float | None],
        alone: Sequence[bool | None],
        binding: Sequence[bool],
    ) -> tuple[ConstraintStanding, ...]:
        """The record of each constraint."""
        return tuple(
            ConstraintStanding(
                constraint=str(text),
                value=point.sides[j],
                holds=point.excess[j] <= SLACK,
                binding=binding[j],
                short=self._short(j, point.excess[j]),
                reachable=reachable[j],
                alone=alone[j],
            )
            for j, text in enumerate(self.goal.constraints)
        )


def _moved_by_decisions(text: object, leaves: list[Any], abstaining: bool) -> None:
    curves = [leaf for leaf in leaves if isinstance(leaf, Curve)]
    if curves:
        raise GoalError(
            f'"{text}" judges scores, and no operating point can change it; tune a goal on '
            "decisions, such as recall, precision, f1 or cost"
        )
    about = any(leaf.event.about(KEPT) for leaf in leaves if isinstance(leaf, Total))
    if about and not abstaining:
        raise GoalError(
            f'"{text}" is about abstaining, and this rule decides every row; kind="abstain" may not'
        )
    if all(isinstance(leaf, Total) and leaf.threshold_free() for leaf in leaves):
        raise GoalError(f'"{text}" does not depend on the decisions; there is nothing to choose')


def refuse_one_class(columns: Columns) -> None:
    """Tuning needs rows of both classes, with weight."""
    actual = columns.actual if columns.weight is None else columns.actual[columns.weight > 0]
    if columns.task.kind == "multiclass":
        if (actual == actual[0]).all():
            only = columns.classes[int(actual[0])]
            raise DataError(
                "{argument} holds only the class {only!r}; choosing needs at least two",
                argument=Name("y_true"),
                only=only,
            )
        return
    labels = actual.reshape(actual.shape[0], -1)  # (n, 1) or (n, L)
    for j in np.flatnonzero(np.asarray(labels.all(0) | ~labels.any(0))):
        several = columns.task.kind == "multilabel"
        side = int(labels[0, j]) if several else columns.classes[int(labels[0, j])]
        raise DataError(
            "{place}{argument} holds only the class {side!r} (with weight); choosing a threshold "
            "needs rows of both classes",
            place=f"label {columns.classes[j]!r} of " if several else "",
            argument=Name("y_true"),
            side=side,
        )
