"""The operating point of a fitted model, from the tune rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.decisions import DecisionRule, Fingerprint, evaluate, tune
from setpoint.decisions.quick import quick_point
from setpoint.expressions import AtK, take_in
from setpoint.goals import Goal, Task, lower


def choose_rule(
    goal: Goal,
    task: Task,
    y: np.ndarray,
    scores: np.ndarray,
    *,
    sample_weight: Any,
    group: Any,
    kind: str | None,
    seed: int,
) -> tuple[DecisionRule, tuple[str, ...]]:
    """The rule that best meets the goal on these rows, and what to know of it.

    ½ and the plain argmax are left only for something better; a goal that judges the ranking alone
    leaves the threshold open, and ½ is taken.
    """
    goal = lower(goal)
    top = any(isinstance(leaf, AtK) for leaf in goal.objective.leaves())
    if goal.objective.needs() <= {"scores"} and not goal.constraints and not top:
        columns = take_in(task, y, scores=scores, sample_weight=sample_weight)
        value = quick_point(goal, columns).value
        note = f'"{goal}" judges the ranking and leaves the threshold open: ½ is taken'
        rule = _usual(goal, task, len(y), value)
        return replace(rule, chosen_on=Fingerprint.of(columns.on_host())), (note,)
    rule = tune(
        goal,
        y,
        scores,
        sample_weight=sample_weight,
        group=group,
        task=task,
        kind=kind,
        random_state=seed,
    )
    plain = {"threshold": {"threshold": 0.5}, "offsets": {"offsets": (0.0,) * scores.shape[-1]}}
    if rule.kind in plain and task.score == "probability" and not goal.constraints:
        usual = replace(rule, **plain[rule.kind])
        found = evaluate(usual, y, scores, sample_weight=sample_weight, group=group)
        rule = usual if found.value == rule.value else rule
    return rule, ()


def _usual(goal: Goal, task: Task, rows: int, value: float | None) -> DecisionRule:
    found = {"goal": goal, "task": task, "feasible": True, "value": value, "rows": rows}
    if task.kind == "binary":
        half = 0.5 if task.score == "probability" else 0.0
        return DecisionRule(kind="threshold", threshold=half, **found)
    labels = task.classes or ()
    if task.kind == "multiclass":
        return DecisionRule(kind="offsets", offsets=(0.0,) * len(labels), **found)
    cuts = tuple((label, 0.5) for label in labels)
    return DecisionRule(kind="per-label", thresholds=cuts, **found)
