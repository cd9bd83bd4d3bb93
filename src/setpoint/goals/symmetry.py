"""Whether a goal tells the two classes apart."""

from __future__ import annotations

import numpy as np

from setpoint.expressions import Columns, Task, measure
from setpoint.goals.goal import Goal


def symmetric(goal: Goal) -> bool:
    """Whether the goal says the same with the two classes exchanged, as accuracy and mcc do.

    Read on rows with random weights, once as they are and once with labels, decisions and scores
    turned round.

    Examples
    --------
    >>> symmetric(Goal.parse("maximize accuracy")), symmetric(Goal.parse("maximize f1"))
    (True, False)
    """
    rng = np.random.default_rng(0)
    actual = rng.random(24) < 0.4
    decided = rng.random(24) < 0.5
    scores, weight = rng.normal(size=24), rng.random(24) + 0.5
    columns = Columns(Task(), actual, decided, scores, weight)
    turned = Columns(Task(), ~actual, ~decided, -scores, weight)
    if goal.columns:
        return False
    for part in (goal.objective, *(side for c in goal.constraints for side in c.sides)):
        one, other = (measure(part, c).value() for c in (columns, turned))
        if abs(one - other) > 1e-9 * max(1.0, abs(one)):
            return False
    return True
