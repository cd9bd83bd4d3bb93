"""`tune`: the operating point that best meets a goal on scores of any model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.decisions.blocks import EXACT, group_blocks, label_blocks, search
from setpoint.decisions.offsets import decide_classes, search_offsets
from setpoint.decisions.problem import Point, Problem
from setpoint.decisions.rule import KINDS, DecisionRule
from setpoint.decisions.threshold import tune_threshold
from setpoint.expressions import AtK, Columns, Curve, Expression, Label, Named, Task, take_in
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal, check

_KINDS_OF = {
    "binary": ("threshold", "per-group", "top-k"),
    "multiclass": ("offsets", "argmax"),
    "multilabel": ("per-label",),
    "ranking": ("top-k",),
    "regression": (),
}


def tune(
    goal: Goal | Expression | str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
    task: Task | str | None = None,
    positive: Label = None,
    kind: str | None = None,
    by: str | None = None,
    random_state: int = 0,
) -> DecisionRule:
    """Choose the operating point that best meets a goal on these rows.

    Binary: exact over all distinct thresholds, decided where score >= threshold; among equally good
    thresholds the highest. A threshold at which a rate of the goal is empty (0/0) is not feasible.

    Parameters
    ----------
    goal : Goal, str or Expression
        ``"maximize recall subject to precision >= 0.9"``; a metric alone is made as good as
        possible.
    y_true : array-like
        Labels (n,), or a 0/1 matrix for multilabel.
    scores : array-like
        (n,), or (n, K) for multiclass and multilabel.
    sample_weight, query : array-like of shape (n,), optional
    group : array-like or mapping of array-likes, optional
    task : Task or str, optional
        Needed where the task is not binary.
    positive : label, optional
        The positive label where the labels are not 0 and 1.
    kind : str, optional
        The kind of rule. Binary: "threshold" (default), "per-group" (then ``decide`` needs the
        group as well), "top-k" (chosen by goals on precision_at_k). Multiclass: "offsets" (default)
        or "argmax". Multilabel: "per-label".
    by : str, optional
        The column of a "per-group" rule, where ``group`` has several.
    random_state : int
        Seed of the folds that shrink class offsets.

    Returns
    -------
    DecisionRule

    Examples
    --------
    >>> import setpoint as sp
    >>> goal = "maximize recall subject to precision >= 0.7"
    >>> rule = sp.tune(goal, [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> rule.threshold, rule.feasible
    (0.4, True)
    """
    goal = Goal.of(goal)
    task = Task.make(task, positive)
    check(goal, task)
    top = _top_k(goal)
    chosen = _kind(kind, task.kind, top)
    if not isinstance(random_state, int) or random_state < 0:
        raise KindError(f"random_state is a whole number, 0 or more; got {random_state!r}")
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        task, y_true, scores=scores, sample_weight=sample_weight, group=group, query=query
    ).on_host()
    if task.kind != "ranking":
        _both_sides(columns)
    if chosen == "top-k":
        return _tune_top_k(goal, columns, top)
    if by is not None and chosen != "per-group":
        raise KindError(f'by="{by}" belongs to kind="per-group"')
    problem = Problem.meet(goal, columns)
    if chosen == "threshold":
        return tune_threshold(problem)
    if chosen == "per-group":
        column = _group_column(columns, by)
        return _tune_blocks(problem, group_blocks(columns, column), column)
    if chosen == "per-label":
        return _tune_blocks(problem, label_blocks(columns), None)
    return _tune_offsets(problem, chosen, random_state)


def _kind(kind: str | None, task: str, top: AtK | None) -> str:
    allowed = _KINDS_OF[task]
    if not allowed:
        raise GoalError(
            f"a {task} task has no operating point to choose; evaluate the metric instead"
        )
    if kind is None:
        return "top-k" if top is not None else allowed[0]
    if kind not in allowed:
        known = (*KINDS, "argmax")
        hint = f"a {task} task takes {listing(allowed)}."
        hint = hint if kind in known else did_you_mean(kind, known, hint)
        raise KindError(f'kind="{kind}": {hint}')
    if (kind == "top-k") != (top is not None):
        raise GoalError('kind="top-k" goes with a goal on precision_at_k(k) or recall_at_k(k)')
    return kind


def _both_sides(columns: Columns) -> None:
    """Tuning needs rows of both classes, with weight."""
    actual = columns.actual if columns.weight is None else columns.actual[columns.weight > 0]
    if columns.task.kind == "multiclass":
        if (actual == actual[0]).all():
            only = columns.classes[int(actual[0])]
            raise DataError(f"y_true holds only the class {only!r}; choosing needs at least two")
        return
    labels = actual.reshape(actual.shape[0], -1)  # (n, 1) or (n, L)
    for j in np.flatnonzero(np.asarray(labels.all(0) | ~labels.any(0))):
        several = columns.task.kind == "multilabel"
        side = int(labels[0, j]) if several else columns.classes[int(labels[0, j])]
        place = f"label {columns.classes[j]!r} of y_true" if several else "y_true"
        raise DataError(
            f"{place} holds only the class {side!r} (with weight); choosing a threshold needs rows "
            "of both classes"
        )


def _group_column(columns: Columns, by: str | None) -> str:
    names = list(columns.groups)
    if by is None and len(names) == 1:
        return names[0]
    if by is None:
        way = f"say by=, one of {listing(names)}" if names else "pass group="
        raise DataError(f'kind="per-group" needs to know the group of each row: {way}')
    columns.group(by)
    return by


# --- rules other than one threshold -------------------------------------------------------------


def _tune_blocks(problem: Problem, blocks: list, by: str | None) -> DecisionRule:
    """One threshold per block; what is reachable and binding is searched in the same way."""
    places, how = search(problem, blocks)

    def rule_at(p: Problem, found: list[int]) -> tuple[Point, tuple]:
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
        plain = not constraint.right.needs()
        reachable.append(nearest.sides[0] if plain else None)
        met = nearest.excess[0] <= SLACK
        alone.append(met if met or how == EXACT else None)
        rest = tuple(c for i, c in enumerate(problem.constraints) if i != j)
        freed = replace(problem, constraints=rest)
        better = rule_at(freed, search(freed, blocks)[0])[0]
        binding.append(point.feasible and better.feasible and _gain(problem, better, point) > SLACK)
    return DecisionRule(
        goal=problem.goal,
        task=problem.columns.task,
        kind="per-label" if by is None else "per-group",
        feasible=point.feasible,
        value=point.value,
        rows=problem.columns.size,
        held=problem.held(point, reachable, alone, binding),
        thresholds=thresholds,
        by=by,
        search=how,
    )


def _gain(problem: Problem, a: Point, b: Point) -> float:
    return problem.goal.sign * ((a.value or 0.0) - (b.value or 0.0))


def _pull(problem: Problem) -> Problem:
    """The problem of meeting the one constraint as well as possible."""
    (constraint,) = problem.constraints
    apart = constraint.left - constraint.right
    if constraint.op == "==":
        goal = Goal("minimize", abs(apart))
    else:
        goal = Goal("minimize" if constraint.op == "<=" else "maximize", apart)
    return Problem(goal, problem.columns, goal.objective, ())


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


def _tune_offsets(problem: Problem, kind: str, seed: int) -> DecisionRule:
    count = len(problem.columns.classes)
    if kind == "argmax":
        offsets, how = (0.0,) * count, "exact"
    else:
        found = search_offsets(problem, seed)
        offsets = found.values
        how = f"class by class, shrunk by {found.factor:g}"
    point = problem.judge(decide_classes(problem.columns, np.array(offsets)))
    unknown = [None] * len(point.sides)  # other offsets than these were not searched for each
    return DecisionRule(
        goal=problem.goal,
        task=problem.columns.task,
        kind="offsets",
        feasible=point.feasible,
        value=point.value,
        rows=problem.columns.size,
        held=problem.held(point, unknown, unknown, [False] * len(unknown)),
        offsets=offsets,
        search=how,
    )


def _top_k(goal: Goal) -> AtK | None:
    body = goal.objective
    while isinstance(body, Named):
        body = body.body
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
    problem = Problem.ground(goal, decided)
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
