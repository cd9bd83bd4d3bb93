"""The goal at a threshold for each group, read quickly: by it a network in training is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from torch import Tensor

from setpoint.expressions import Columns
from setpoint.goals import Goal, Task, lower
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.implicit.threshold_search import search_slots
from setpoint.rules.goal_on_rows import Point, Problem

STEP = 0.01  #: how far beyond the outermost probabilities the outer candidates lie


def point_by_group(
    goal: Goal, columns: Columns, task: Task, by: str, codes: Mapping[str, Tensor]
) -> Point:
    """What the goal reads at the best thresholds of a coarse mesh, one for each group.

    Parameters
    ----------
    goal : Goal
    columns : Columns
        With scores, on the host.
    task : Task
        With the values of its group columns.
    by : str
        The column that thresholds differ by.
    codes : mapping of str to torch.Tensor
        The code of each row in each group column.
    """
    goal, cells = lower(goal), Cells(task)
    at = [name for name, _ in task.groups].index(by)
    values = dict(task.groups)[by]
    slot = np.repeat([values.index(group[at]) for group in cells.groups], 2)
    scores = np.asarray(columns.scores)
    code = np.zeros(len(scores), int)
    for name, several in task.groups:
        code = code * len(several) + codes[name].cpu().numpy()
    place = 2 * code + np.asarray(columns.actual)
    weight = np.ones(len(code)) if columns.weight is None else np.asarray(columns.weight)
    cuts, *_ = search_slots(Lowered(goal, cells), slot, scores, place, weight, STEP)
    known = replace(columns, task=replace(columns.task, groups=task.groups))
    decided = scores >= cuts[slot[place]]
    return Problem.meet(goal, known).judge(replace(known, decided=decided))
