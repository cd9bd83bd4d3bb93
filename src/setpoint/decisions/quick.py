"""The goal at its best operating point, read quickly: what a model under training is judged by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setpoint.expressions import Columns, measure
from setpoint.goals import Goal, lower
from setpoint.rules.goal_on_rows import Point, Problem
from setpoint.rules.one_threshold import best_threshold


def quick_point(goal: Goal, columns: Columns) -> Point:
    """What the goal reads on scores.

    At the best threshold of a binary task, by argmax of a multiclass one, at ½ of a multilabel one;
    a goal on scores alone as it is.

    Parameters
    ----------
    goal : Goal
    columns : Columns
        With scores, on the host; of a multilabel task probabilities.
    """
    goal = lower(goal)
    if goal.objective.needs() <= {"scores"} and not goal.constraints:
        return Point(float(measure(goal.objective, columns).value()), (), ())
    problem = Problem.meet(goal, columns)
    if columns.task.kind == "binary":
        return best_threshold(problem)[0]
    scores = np.asarray(columns.scores)
    decided = scores.argmax(1) if columns.task.kind == "multiclass" else scores >= 0.5
    return problem.judge(replace(columns, decided=decided))
