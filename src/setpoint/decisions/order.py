"""The order in which thresholds are tested, from reference rows (placeholder)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setpoint.decisions.path import joint_power
from setpoint.decisions.problem import Problem
from setpoint.decisions.rule import DecisionRule
from setpoint.decisions.threshold import threshold_rule
from setpoint.expressions import Columns, Sweep
from setpoint.goals import Goal


def threshold_order(goal: Goal, reference: Columns, delta: float, size: int) -> list[DecisionRule]:
    """Rules of one threshold in the order of their tests."""
    problem = Problem.meet(goal, replace(reference, weight=None))
    sweep = Sweep(problem.columns)
    where = np.unique(np.geomspace(5, sweep.size - 1, 60).astype(int))
    rules = [threshold_rule(problem, sweep, int(i)) for i in where]
    powers = [joint_power(goal, rule, problem.columns, delta, size) for rule in rules]
    merit = [goal.sign * (r.value if r.value is not None else -np.inf) for r in rules]
    start, end = int(np.argmax(powers)), int(np.argmax(merit))
    step = 1 if end >= start else -1
    return [rules[i] for i in range(start, end + step, step)]
