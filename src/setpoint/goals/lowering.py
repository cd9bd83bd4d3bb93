"""Operating points as constraints: what a goal says, in totals of decisions."""

from __future__ import annotations

from setpoint._core.errors import GoalError
from setpoint.expressions import Best
from setpoint.expressions.named_metric import unnamed
from setpoint.goals.goal import Goal


def lower(goal: Goal) -> Goal:
    """``maximize recall_at_precision(p)`` as ``maximize recall subject to precision >= p``."""
    body = unnamed(goal.objective)
    if not isinstance(body, Best):
        return goal
    if body.sense != goal.sign:
        better = "maximize" if body.sense > 0 else "minimize"
        raise GoalError(f'"{goal}": {goal.objective} is the best value already; {better} it')
    return Goal(goal.sense, body.objective, (body.constraint, *goal.constraints))  # type: ignore[arg-type]
