"""The choice of an operating point on checked columns, by kind of rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.errors import (
    Argument,
    DataError,
    GoalError,
    KindError,
    Name,
    Phrase,
    Spelling,
)
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import AtK, Columns, Curve, Total
from setpoint.expressions.constraint import SLACK
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import KEPT
from setpoint.goals import Goal
from setpoint.rules.abstention import Selector, tune_band, tune_sure
from setpoint.rules.class_offsets import decide_classes, search_offsets
from setpoint.rules.decision_rule import DecisionRule
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.one_threshold import tune_threshold
from setpoint.rules.rule import KINDS
from setpoint.rules.threshold_blocks import EXACT, group_blocks, label_blocks, search

_KINDS_OF = {
    "binary": ("threshold", "per-group", "top-k", "abstain"),
    "multiclass": ("offsets", "argmax", "abstain"),
    "multilabel": ("per-label",),
    "ranking": ("top-k",),
    "regression": (),
}


def choose(
    goal: Goal, columns: Columns, kind: str, by: str | None = None, head: Any = None, seed: int = 0
) -> DecisionRule:
    """The rule of a kind that best meets a goal on these rows.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, on the host.
    kind : str
        From :func:`kind_for`.
    by, head, seed
        As ``by``, ``head`` and ``random_state`` of :func:`setpoint.tune`.
    """
    if kind == "top-k":
        return _tune_top_k(goal, columns, _top_k(goal))
    if by is not None and kind not in ("per-group", "abstain"):
        raise KindError(
            "{argument} belongs to {per_group} or {abstain}",
            argument=Argument("by", by),
            per_group=Argument("kind", "per-group"),
            abstain=Argument("kind", "abstain"),
        )
    if head is not None and kind != "abstain":
        raise KindError('head= belongs to kind="abstain" with by="rl_geo_m"')
    if kind == "abstain":  # so that what is not defined where rows abstain is refused
        columns = replace(columns, abstained=np.zeros(columns.size, bool))
    problem = GoalOnRows.meet(goal, columns, abstaining=kind == "abstain")
    if kind == "abstain" and columns.task.kind == "binary":
        if by is not None:
            raise KindError(
                "{argument}: a binary rule abstains in a band of scores; leave {by} out",
                argument=Argument("by", by),
                by=Argument("by"),
            )
        if head is not None:
            raise KindError("a binary rule abstains in a band of scores; leave head= out")
        return tune_band(problem)
    if kind == "abstain":
        return tune_sure(problem, Selector.make(columns, by, head))
    if kind == "threshold":
        return tune_threshold(problem)
    if kind == "per-group":
        column = _group_column(columns, by)
        return _tune_blocks(problem, group_blocks(columns, column), column)
    if kind == "per-label":
        return _tune_blocks(problem, label_blocks(columns), None)
    return _tune_offsets(problem, kind, seed)


def _abstains(goal: Goal) -> bool:
    """Whether the goal counts rows by whether they are decided at all."""
    parts = (goal.objective, *(side for c in goal.constraints for side in c.sides))
    leaves = (leaf for part in parts for leaf in part.normal().leaves())
    return any(isinstance(leaf, Total) and leaf.event.about(KEPT) for leaf in leaves)


def kind_for(goal: Goal, task: str, kind: str | None) -> str:
    """The kind of rule that is asked for, or that suits the goal."""
    top = _top_k(goal)
    allowed = _KINDS_OF[task]
    if not allowed:
        raise GoalError(
            f"a {task} task has no operating point to choose; evaluate the metric instead"
        )
    if kind is None:
        usual = "abstain" if "abstain" in allowed and _abstains(goal) else allowed[0]
        return "top-k" if top is not None else usual
    if kind not in allowed:
        known = (*KINDS, "argmax")
        hint = f"a {task} task takes {listing(allowed)}."
        hint = hint if kind in known else did_you_mean(kind, known, hint)
        raise KindError("{argument}: {hint}", argument=Argument("kind", kind), hint=hint)
    if (kind == "top-k") != (top is not None):
        raise GoalError('kind="top-k" goes with a goal on precision_at_k(k) or recall_at_k(k)')
    return kind


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


def _group_column(columns: Columns, by: str | None) -> str:
    names = list(columns.groups)
    if by is None and len(names) == 1:
        return names[0]
    if by is None:
        raise DataError(
            "{argument} needs to know the group of each row: {way}",
            argument=Argument("kind", "per-group"),
            way=Phrase("say {by}, one of {names}", by=Argument("by"), names=listing(names))
            if names
            else Spelling("pass group=", "say --group"),
        )
    columns.group(by)
    return by


# --- rules other than one threshold -------------------------------------------------------------


def _tune_blocks(problem: GoalOnRows, blocks: list, by: str | None) -> DecisionRule:
    """One threshold per block; what is reachable and binding is searched in the same way."""
    places, how = search(problem, blocks)

    def rule_at(p: GoalOnRows, found: list[int]) -> tuple[Point, tuple]:
        pairs = zip(blocks, found, strict=True)
        thresholds = tuple((b.name, float(b.sweep.thresholds[i])) for b, i in pairs)
        return p.judge(_decided(p.columns, thresholds, by)), thresholds

    point, thresholds = rule_at(problem, places)
    reachable: list[float | None] = []
    alone: list[bool | None] = []
    binding: list[bool] = []
    for j, constraint in enumerate(problem.constraints):
        single = replace(problem, constraints=(constraint,))
        nearest = rule_at(single, search(_pull(single), blocks)[0])[0]
        reachable.append(None if constraint.number is None else nearest.sides[0])
        met = nearest.excess[0] <= SLACK
        alone.append(met if met or how == EXACT else None)
        rest = tuple(c for i, c in enumerate(problem.constraints) if i != j)
        freed = replace(problem, constraints=rest)
        better = rule_at(freed, search(freed, blocks)[0])[0]
        binding.append(point.feasible and better.feasible and _gain(problem, better, point) > SLACK)
    held = problem.held(point, reachable, alone, binding)
    kind = "per-label" if by is None else "per-group"
    return problem.rule(kind, point, held, thresholds=thresholds, by=by, search=how)


def _gain(problem: GoalOnRows, a: Point, b: Point) -> float:
    return problem.goal.sign * ((a.value or 0.0) - (b.value or 0.0))


def _pull(problem: GoalOnRows) -> GoalOnRows:
    """The problem of meeting the one constraint as well as possible."""
    (constraint,) = problem.constraints
    apart = constraint.left - constraint.right
    if constraint.op == "==":
        goal = Goal("minimize", abs(apart))
    else:
        goal = Goal("minimize" if constraint.op == "<=" else "maximize", apart)
    return GoalOnRows(goal, problem.columns, goal.objective, ())


def _decided(columns: Columns, thresholds: tuple, by: str | None) -> Columns:
    scores = np.asarray(columns.scores)
    cut = np.array([t for _, t in thresholds], dtype=scores.dtype)
    if by is not None:
        names = [name for name, _ in thresholds]
        index = np.zeros(columns.size, np.int64)
        for i, name in enumerate(names):
            index[columns.group(by) == name] = i
        cut = cut[index]
    return replace(columns, decided=scores >= cut)


def _tune_offsets(problem: GoalOnRows, kind: str, seed: int) -> DecisionRule:
    count = len(problem.columns.classes)
    if kind == "argmax":
        offsets, how = (0.0,) * count, "exact"
    else:
        found = search_offsets(problem, seed)
        offsets = found.values
        how = f"class by class, shrunk by {found.factor:g}"
    point = problem.judge(decide_classes(problem.columns, np.array(offsets)))
    unknown = [None] * len(point.sides)  # other offsets than these were not searched for each
    held = problem.held(point, unknown, unknown, [False] * len(unknown))
    return problem.rule("offsets", point, held, offsets=offsets, search=how)


def _top_k(goal: Goal) -> AtK | None:
    body = unnamed(goal.objective)
    return body if isinstance(body, AtK) else None


def _tune_top_k(goal: Goal, columns: Columns, top: AtK | None) -> DecisionRule:
    if top is None:
        raise GoalError('a ranking task is tuned by precision_at_k(k, by="query") or recall_at_k')
    if goal.sign < 0:
        raise GoalError(f'"{goal}": the first k rows are taken to be the best; maximize it')
    state = top.measure(columns)
    value = float(top.reading(state).value)
    rule = DecisionRule(
        goal=goal,
        task=columns.task,
        kind="top-k",
        feasible=True,
        value=value,
        rows=columns.size,
        k=int(top.k),
        by=top.by,
    )
    if not goal.constraints:
        return rule
    if columns.task.kind != "binary" or top.by is not None:
        raise GoalError("constraints beside precision_at_k need a binary task without queries")
    decided = replace(columns, decided=rule.decide(columns.scores))
    problem = GoalOnRows.ground(goal, decided)
    for text, constraint in zip(goal.constraints, problem.constraints, strict=True):
        leaves = [leaf for side in constraint.sides for leaf in side.leaves()]
        curves = [leaf for leaf in leaves if isinstance(leaf, Curve)]
        if any(not isinstance(c, AtK) or replace(c, given=top.given) != top for c in curves):
            raise GoalError(
                f'"{text}" ranks other rows than the first {top.k} of all; constrain precision_at_k'
                f"({top.k}), recall_at_k({top.k}) or metrics of decisions"
            )
    point = problem.judge(decided)  # k alone decides: there is nothing else to reach
    alone = [excess <= SLACK for excess in point.excess]
    held = problem.held(point, point.sides, alone, [False] * len(alone))
    return replace(rule, held=held, feasible=point.feasible)
