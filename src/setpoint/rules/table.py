"""Kinds of decision rules by name, and which of them a goal is tuned by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint._core.errors import Argument, FileError, GoalError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import Task
from setpoint.goals import Goal
from setpoint.rules.abstention import Abstention
from setpoint.rules.class_offsets import Argmax, ClassOffsets
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import Rule
from setpoint.rules.threshold_blocks import GroupThresholds, LabelThresholds
from setpoint.rules.top_k import TopK

#: Every kind of rule. Of those that a task takes the first is used where nothing else is asked for.
RULES: dict[str, type[Rule]] = {
    "threshold": OneThreshold,
    "per-group": GroupThresholds,
    "per-label": LabelThresholds,
    "offsets": ClassOffsets,
    "argmax": Argmax,
    "top-k": TopK,
    "abstain": Abstention,
}


def kind_for(goal: Goal, task: str, kind: str | None = None) -> type[Rule]:
    """The kind of rule that is asked for, or that suits the goal."""
    allowed = {name: rule for name, rule in RULES.items() if task in rule.tasks}
    if not allowed:
        raise GoalError(
            f"a {task} task has no operating point to choose; evaluate the metric instead"
        )
    if kind is None:
        return next((r for r in allowed.values() if r.asked_by(goal)), next(iter(allowed.values())))
    if kind not in allowed:
        hint = f"a {task} task takes {listing(allowed)}."
        hint = hint if kind in RULES else did_you_mean(kind, RULES, hint)
        raise KindError("{argument}: {hint}", argument=Argument("kind", kind), hint=hint)
    for rule in RULES.values():
        if rule.only_with and rule.asked_by(goal) != (rule is allowed[kind]):
            raise GoalError(rule.only_with)
    return allowed[kind]


def needs_group(kind: str | None) -> bool:
    """Whether a kind of rule, as a user names it, has to know the group of each row."""
    return kind in RULES and RULES[kind].needs_group


def rule_from_json(data: Mapping[str, Any]) -> Rule:
    """Read what :meth:`Rule.to_json` wrote, whatever its kind."""
    kind = data["kind"]
    if kind not in RULES:
        raise FileError(f'unknown kind of rule "{kind}"; known are {listing(RULES)}')
    return RULES[kind].from_numbers(Task.from_json(data["task"]), data)
