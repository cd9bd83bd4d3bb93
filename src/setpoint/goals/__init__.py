"""Goals: what is wanted, and whether it can be meant.

`Task` and `Constraint` are made one floor below, in `expressions`, because a metric needs them to
evaluate and to compare; they are part of this room's vocabulary.
"""

from setpoint.expressions import Constraint, Task
from setpoint.goals.check import check
from setpoint.goals.goal import Goal, maximize, minimize, symmetric

__all__ = ["Constraint", "Goal", "Task", "check", "maximize", "minimize", "symmetric"]
