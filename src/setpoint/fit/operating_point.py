"""The operating point of a fitted model, from the tune rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.decisions import DecisionRule, Fingerprint, evaluate, tune
from setpoint.decisions.groups import groups_of
from setpoint.decisions.proof.safety_margin import MARGIN, cautious
from setpoint.decisions.quick import quick_point
from setpoint.expressions import AtK, take_in
from setpoint.goals import Goal, Task, lower, symmetric
from setpoint.rules.table import kind_for, refuse_one_class


def choose_rule(
    goal: Goal,
    task: Task,
    y_true: np.ndarray,
    scores: np.ndarray,
    *,
    sample_weight: Any,
    group: Any,
    kind: str | None,
    seed: int,
    margin: float = MARGIN,
) -> tuple[DecisionRule, tuple[str, ...]]:
    """The rule that best meets the goal on these rows, and what to know of it.

    Constraints hold with a margin (see :mod:`setpoint.decisions.proof.safety_margin`; 0 is none). ½ and the
    plain argmax are left only for something better; a goal that judges the ranking alone leaves the
    threshold open, and ½ is taken.
    """
    goal = lower(goal)
    given = {"sample_weight": sample_weight, "group": group}
    columns = take_in(task, y_true, scores=scores, **given).on_host()
    if ranks_only(goal):
        value = quick_point(goal, columns).value
        note = f'"{goal}" judges the ranking and leaves the threshold open: ½ is taken'
        rule = _usual(goal, task, len(y_true), value)
        return replace(rule, chosen_on=Fingerprint.of(columns)), (note,)
    if not goal.constraints or margin == 0:
        rule = tune(goal, y_true, scores, **given, task=task, kind=kind, random_state=seed)
        return _plainest(goal, rule, y_true, scores, given), ()
    kind = kind_for(goal, task.kind, kind)
    refuse_one_class(columns)
    by = next(iter(columns.groups)) if kind == "per-group" and len(columns.groups) == 1 else None
    rule, share = cautious(goal, columns, kind, by=by, seed=seed, margin=margin)
    notes = ()
    if share < 1:
        left = "no margin" if share == 0 else "less than the margin asked for"
        notes = (f"the rule has {left}: no rule has more on the rows it was chosen on",)
    return replace(rule, chosen_on=Fingerprint.of(columns), groups=groups_of(goal, columns)), notes


def ranks_only(goal: Goal) -> bool:
    """Whether a goal judges scores alone, so that no operating point is wanted."""
    top = any(isinstance(leaf, AtK) for leaf in goal.objective.leaves())
    return goal.objective.needs() <= {"scores"} and not goal.constraints and not top


def _plainest(goal: Goal, rule: DecisionRule, y: Any, scores: Any, given: Any) -> DecisionRule:
    """½ or the plain argmax, where they are as good.

    Exactly as good; of a goal that does not tell the classes apart (accuracy, mcc) also where what
    is better is so by less than two standard errors, 2 √(v (1 − v) / n): with probabilities ½ is
    where such goals belong, and a threshold that a few rows have moved is noise.
    """
    plain = {"threshold": {"threshold": 0.5}, "offsets": {"offsets": (0.0,) * scores.shape[-1]}}
    if rule.kind not in plain or rule.task.score != "probability" or goal.constraints:
        return rule
    usual = replace(rule, **plain[rule.kind])
    value = evaluate(usual, y, scores, **given).value
    if value is None or rule.value is None:
        return rule
    inside = min(max(abs(rule.value), 0.0), 1.0)
    error = 2 * math.sqrt(inside * (1 - inside) / len(y)) if symmetric(goal) else 0.0
    near = goal.sign * (rule.value - value) <= error
    return replace(usual, value=value) if near else rule


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
