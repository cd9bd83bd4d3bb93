"""The operating point of a fitted model, chosen on held rows with a margin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.decisions import DecisionRule, Fingerprint
from setpoint.decisions.evaluate import evaluate_columns
from setpoint.decisions.proof.safety_margin import MARGIN, cautious
from setpoint.decisions.tune import tune_columns
from setpoint.expressions import AtK, Columns
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.goals import Goal, Task, symmetric
from setpoint.rules.class_offsets import ClassOffsets
from setpoint.rules.decision_rule import groups_of
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.one_threshold import OneThreshold, quick_point
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for
from setpoint.rules.threshold_blocks import LabelThresholds


def choose_rule(
    goal: Goal,
    columns: Columns,
    *,
    kind: str | None,
    seed: int,
    margin: float = MARGIN,
) -> tuple[DecisionRule, tuple[Note, ...]]:
    """The rule that best meets the goal on these rows, and what to know of it.

    Constraints hold with a margin (see :mod:`setpoint.decisions.proof.safety_margin`; 0 is none).
    ½ and the plain argmax are left only for something better; a goal that judges the ranking alone
    leaves the threshold open, and ½ is taken.
    """
    goal = goal.lowered
    if ranks_only(goal):
        value = quick_point(goal, columns).value
        note = Note(
            NoteCode.RANKING_ONLY,
            f'"{goal}" judges the ranking and leaves the threshold open: ½ is taken',
        )
        rule = _usual(goal, columns.task, columns.size, value)
        return replace(rule, chosen_on=Fingerprint.of(columns)), (note,)
    search = RuleSearch(rule=kind_for(goal, columns.task.kind, kind), seed=seed)
    refuse_one_class(columns)
    if not goal.constraints or margin == 0:
        return _plainest(goal, tune_columns(goal, columns, search), columns), ()
    rule, share = cautious(goal, columns, search, margin=margin)
    notes = ()
    if share < 1:
        left = "no margin" if share == 0 else "less than the margin asked for"
        words = f"the rule has {left}: no rule has more on the rows it was chosen on"
        notes = (Note(NoteCode.SMALL_MARGIN, words, {"share": share, "margin": margin}),)
    return replace(rule, chosen_on=Fingerprint.of(columns), groups=groups_of(goal, columns)), notes


def ranks_only(goal: Goal) -> bool:
    """Whether a goal judges scores alone, so that no operating point is wanted."""
    top = any(isinstance(leaf, AtK) for leaf in goal.objective.leaves())
    return goal.objective.needs() <= {"scores"} and not goal.constraints and not top


def _plainest(goal: Goal, rule: DecisionRule, columns: Columns) -> DecisionRule:
    """½ or the plain argmax, where they are as good.

    Exactly as good; of a goal that does not tell the classes apart (accuracy, mcc) also where what
    is better is so by less than two standard errors, 2 √(v (1 − v) / n): with probabilities ½ is
    where such goals belong, and a threshold that a few rows have moved is noise.
    """
    plain = rule.point.plain()
    if plain is None or rule.task.score != "probability" or goal.constraints:
        return rule
    usual = replace(rule, point=plain)
    value = evaluate_columns(usual, usual.decided_columns(columns)).value
    if value is None or rule.value is None:
        return rule
    inside = min(max(abs(rule.value), 0.0), 1.0)
    error = 2 * math.sqrt(inside * (1 - inside) / columns.size) if symmetric(goal) else 0.0
    near = goal.sign * (rule.value - value) <= error
    return replace(usual, value=value) if near else rule


def _usual(goal: Goal, task: Task, rows: int, value: float | None) -> DecisionRule:
    labels = task.classes or ()
    if task.kind == "binary":
        point = OneThreshold(task=task, threshold=0.5 if task.score == "probability" else 0.0)
    elif task.kind == "multiclass":
        point = ClassOffsets(task=task, offsets=(0.0,) * len(labels))
    else:
        point = LabelThresholds(task=task, thresholds=tuple((label, 0.5) for label in labels))
    return DecisionRule(point=point, goal=goal, feasible=True, value=value, rows=rows)


def rule_on(
    held: OutOfFold, scores: np.ndarray, task: Task, *, margin: float
) -> tuple[DecisionRule, tuple[Note, ...]]:
    """The rule that best meets the goal on the held rows, and what to know of it."""
    return choose_rule(
        held.job.goal,
        held.columns(held.rows, scores, task),
        kind=held.choice.kind,
        seed=held.job.seed,
        margin=margin,
    )
