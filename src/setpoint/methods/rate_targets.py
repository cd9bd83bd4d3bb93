"""Aims: a goal as an objective at operating points, each fixed by what is held there.

    fnr at fpr b           one point, fpr held at b
    precision at recall r  one point, recall held at r
    partial auroc          T points, fpr held at the midpoints of T bins of [0, max_fpr]; mean tpr
    partial auprc          T points, recall held at the midpoints of [min_recall, 1]; mean precision
    precision at k         one point, the share of the rows decided held at k/n
    any other goal         one point, at the best threshold that keeps the constraints

Bin ends are never targets: at an fpr of 0 or a recall of 1 a threshold is one row's score.
"""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.words import listing
from setpoint.expressions import (
    AtK,
    Auroc,
    Best,
    Constraint,
    Curve,
    Expression,
    Number,
    PrecisionOverRecall,
)
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import EVERYTHING
from setpoint.goals import Goal, Task
from setpoint.metrics.binary import fnr, fpr, positive_rate, precision, recall


@dataclass(frozen=True)
class Aim:
    """A goal of totals, and the levels at which its one constraint is held, where there are any.

    Attributes
    ----------
    goal : Goal
        With levels: one constraint, written with the bound 0.
    levels : tuple of float
        One per operating point; empty where the goal's own constraints choose the threshold.
    condition : {"negative", "positive", "all"}
        Of which rows the level is a share, where there are levels.
    """

    goal: Goal
    levels: tuple[float, ...] = ()
    condition: str = "all"

    @property
    def count(self) -> int:
        """Number of operating points."""
        return max(1, len(self.levels))

    @property
    def text(self) -> str:
        """What is held, where there are levels."""
        held = self.goal.constraints[0]
        several = f"{self.levels[0]:.4g} … {self.levels[-1]:.4g}"
        return f"{held.left} {held.op} {several if self.count > 1 else f'{self.levels[0]:.4g}'}"

    @property
    def at_least(self) -> bool:
        """Whether the level is a floor (recall), not a cap (fpr, share of the rows)."""
        return self.condition == "positive"


def aim_of(goal: Goal, task: Task, points: int, share: float | None, several: bool = False) -> Aim:
    """The aim of a goal that ``aim_objection`` has nothing against.

    With ``several`` thresholds at a point, no level says where they are.
    """
    leaf = curve_of(goal)
    if isinstance(leaf, Auroc):
        return _over(recall, fpr <= 0, _midpoints(0.0, leaf.max_fpr, points), "negative")
    if isinstance(leaf, PrecisionOverRecall):
        return _over(precision, recall >= 0, _midpoints(leaf.min_recall, 1.0, points), "positive")
    if isinstance(leaf, AtK):
        best = precision if leaf.given == "decided" else recall
        return _over(best, positive_rate <= 0, (float(share or 0.0),), "all")
    goal = goal.lowered
    if task.kind != "binary" or several:
        return Aim(goal)
    return _point(goal) or Aim(goal)


def aim_objection(goal: Goal, task: Task, share: float | None) -> str | None:
    """Why a goal about a ranking has no aim, as a sentence; None for goals of decisions."""
    leaf = curve_of(goal)
    if leaf is None:
        return None
    if task.kind != "binary":
        return f'"{goal}" is about the ranking of one class; a {task.kind} task has several'
    if goal.constraints or goal.sign < 0:
        return f'"{goal}": a curve is maximized, without constraints'
    if two_way(leaf):
        return TWO_WAY.format(goal=goal)
    if leaf.where != EVERYTHING or leaf.label is not None or leaf.by is not None:
        return f'"{goal}" is taken over some of the rows; the implicit method ranks all of them'
    if isinstance(leaf, AtK) and share is None:
        return (
            f'"{goal}" decides k rows of how many? Say the share, '
            f'GoalLoss(…, "implicit", share={leaf.k} / number of rows)'
        )
    if not isinstance(leaf, Auroc | PrecisionOverRecall | AtK):
        return f'"{goal}" has no operating points to train at'
    return None


def curve_of(goal: Goal) -> Curve | None:
    """The curve or list that the objective is, if it is one."""
    body = unnamed(goal.objective)
    return body if isinstance(body, Curve) and not isinstance(body, Best) else None


#: why only pairs train on an area that two rates bound
TWO_WAY = (
    '"{goal}" bounds two rates at once, and a threshold holds one; method="pairwise" trains on it'
)


def two_way(leaf: Curve | None) -> bool:
    """Whether a curve counts from a true positive rate on."""
    return isinstance(leaf, Auroc) and leaf.min_tpr > 0


EXTREME = 0.01  #: a bound so near the end of its scale leaves few rows on the far side of it


def extreme(constraint: Constraint) -> bool:
    """Whether a bound is within a hundredth of the end of its scale, on the side that is hard.

    >>> goal = Goal.parse("maximize recall subject to precision >= 0.99, fpr <= 0.02")
    >>> [extreme(c) for c in goal.constraints]
    [True, False]
    """
    bound = constraint.number
    if bound is None:
        return False
    low, high = constraint.left.interval()
    room = high - bound if constraint.op == ">=" else bound - low
    return room <= EXTREME + 1e-12


def extreme_point(goal: Goal) -> str:
    """Which constraints put the goal at an extreme operating point, as a sentence; "" for none."""
    far = [str(c) for c in goal.constraints if extreme(c)]
    return f"{listing(far)} is an extreme operating point" if far else ""


def partial_curve(goal: Goal) -> str:
    """A sentence where the objective is a curve of which only one end counts; "" elsewhere."""
    leaf = curve_of(goal)
    if two_way(leaf):
        return ""  # nothing but pairs trains on it
    part = isinstance(leaf, Auroc) and leaf.max_fpr < 1
    part = part or (isinstance(leaf, PrecisionOverRecall) and leaf.min_recall > 0)
    return f"{goal.objective} is a part of a curve" if part else ""


def _over(
    best: Expression, constraint: Constraint, levels: tuple[float, ...], condition: str
) -> Aim:
    return Aim(Goal("maximize", best, (constraint,)), levels, condition)


def _midpoints(low: float, high: float, points: int) -> tuple[float, ...]:
    width = (high - low) / points
    return tuple(low + (i + 0.5) * width for i in range(points))


def _point(goal: Goal) -> Aim | None:
    """Two goals whose one constraint is a share of one class, and always binds, as a level."""
    if len(goal.constraints) != 1 or not isinstance(goal.constraints[0].right, Number):
        return None
    (constraint,) = goal.constraints
    bound = float(constraint.right.value)  # type: ignore[attr-defined]
    misses = goal.objective == fnr and goal.sign < 0
    catches = goal.objective == recall and goal.sign > 0
    if constraint.op == "<=" and constraint.left == fpr and (misses or catches) and 0 < bound < 1:
        return Aim(Goal(goal.sense, goal.objective, (fpr <= 0,)), (bound,), "negative")
    precise = goal.objective == precision and goal.sign > 0
    if constraint.op == ">=" and constraint.left == recall and precise and 0 < bound < 1:
        return Aim(Goal(goal.sense, goal.objective, (recall >= 0,)), (bound,), "positive")
    return None


def area_of(goal: Goal) -> tuple[float, float]:
    """Slope and start of a curve's value in the mean of its operating points."""
    leaf = curve_of(goal)
    if not isinstance(leaf, Auroc):
        return 1.0, 0.0
    if leaf.max_fpr == 1 or not leaf.standardized:
        return leaf.max_fpr, 0.0
    chance, most = leaf.bounds
    span = most - chance
    return 0.5 * most / span, 0.5 - 0.5 * chance / span
