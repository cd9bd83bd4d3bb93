"""Whether a goal can be meant of some rows: its groups and classes are there, its rule exists."""

from __future__ import annotations

import numpy as np

from setpoint.cli.inputs.fit_table import Given
from setpoint.expressions import Domain, take_in
from setpoint.goals import Goal, lower
from setpoint.rules.goal_on_rows import Problem
from setpoint.rules.table import kind_for


def refuse_unmeant(goal: Goal, given: Given, kind: str | None) -> None:
    """Raise before anything is fitted where the goal names what no row has."""
    from setpoint.fit.class_labels import read_labels
    from setpoint.fit.operating_point import ranks_only

    target, rows, lowered = given.target, len(given.X), lower(goal)
    labels, codes = read_labels(goal, target.y, rows, target.task, target.positive)
    several = len(labels.task.classes or ())
    scores = np.zeros((rows, several) if several else rows)
    columns = take_in(
        labels.task, labels.named(codes), scores=scores, group=given.more.get("group")
    )
    if ranks_only(lowered):  # the ranking is judged, and no rule is looked for
        lowered.objective.expand(Domain(columns.on_host()))
        return
    kind_for(lowered, labels.task.kind, kind)
    Problem.ground(lowered, columns.on_host())
