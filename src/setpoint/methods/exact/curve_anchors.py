"""Anchors: the area under a curve, by thresholds along it and a loss that is cut off at each.

    average precision ≈ (1/T) Σ_k precision at recall r_k,      r_k the midpoints of T bins,

and likewise the areas of auprc(min_recall) and of auroc(max_fpr), with tpr at fpr held. Each anchor
k has a threshold b_k at which its level is kept on hard counts of pooled rows, and at those counts
a price for each mistake, −∂precision/∂C. A row pays, as in ``eliminated``,

    Σ_k u_k[y] · min(ℓ(z − b_k), κ),      ℓ the cross-entropy of a logit, κ falling with the steps:

positives that lie far below b_k are given up at k, and so are negatives far above. What is held
gets the multiplier that makes each anchor's pull sum to 0,

    u_k[1] Σ₊ |ℓ'| = u_k[0] Σ₋ |ℓ'|      over rows that are not given up,

so that scores are told to change places, never to move all together: the threshold would follow.
Sums over rows are all that is kept: (T, 6) numbers, and the tracker's pool. Ten to forty anchors
are enough; a level under 1 % would meet the least divisor of a fraction (``lowered``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from setpoint._core.arrays import exponential
from setpoint._core.errors import GoalError
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.implicit.implicit import Implicit, ImplicitProgram
from setpoint.methods.implicit.moving_thresholds import Thresholds
from setpoint.methods.rate_targets import aim_objection, aim_of, curve_of
from setpoint.surrogates import Schedule


class Anchors(Thresholds):
    """Hard cells at each anchor's threshold, and the slopes of the loss that is cut off there.

    Parameters
    ----------
    count : int
        T.
    truncate : Schedule or None
        κ.
    """

    def __init__(self, count: int, truncate: Schedule | None) -> None:
        super().__init__((0,), count, 1.0)
        self.truncate = truncate
        self.least: Any = 0.0  #: exp(−κ) at the step that was read last

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        if self.truncate is not None:
            self.least = exponential(-self.truncate.at(batch.small(step)))
        return super().read(batch, step)

    def memberships(self, batch: Batch) -> Tensor:
        """(2, T, N): 1{z >= b}, and |p − y| where the right decision has a probability >= least."""
        far = batch.logits - self.thresholds.to(batch.logits.dtype)  # (T, N)
        both = torch.empty(2, *far.shape, dtype=far.dtype, device=far.device)
        torch.ge(far, 0, out=both[0])
        gap = torch.sub(torch.sigmoid(far), batch.actual, out=both[1]).abs_()
        gap.mul_(gap <= 1 - self.least)
        return both


class AnchorsProgram(ImplicitProgram):
    """Prices at hard totals of each anchor, with the multipliers that keep its level.

    Parameters
    ----------
    goal : Goal
        Maximize average_precision, auprc(min_recall=…) or auroc(max_fpr=…).
    task : Task
        Binary.
    method : Any
        With ``anchors``, their number, and ``truncate`` (a Schedule, or None: nothing is given up).
    """

    def __init__(self, goal: Goal, task: Task, method: Any) -> None:
        why = anchors_objection(goal, task)
        if why is not None:
            raise GoalError(why)
        aim = aim_of(goal, task, int(method.anchors), None)
        lowered = Lowered(aim.goal, Cells(replace(task, groups=())))
        keeping = Implicit(sharpness=1.0, points=aim.count)
        super().__init__(goal, lowered, Anchors(aim.count, method.truncate), aim, keeping)


def anchors_objection(goal: Goal, task: Task) -> str | None:
    """Why a goal has no anchors, as a sentence; None if it has."""
    if curve_of(goal) is None:
        return f'"{goal}" is no area under a curve'
    return aim_objection(goal, task, None)
