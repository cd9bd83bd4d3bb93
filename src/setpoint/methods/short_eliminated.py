"""The short way of the eliminated form: one table, no weights, prices that move with the step.

As in :mod:`setpoint.methods.short`: the whole step in one function, held equal to the general way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setpoint.methods.confusion.batch import ones
from setpoint.methods.confusion.goal_over_cells import Few

if TYPE_CHECKING:
    from setpoint.methods.exact.elimination import EliminatedProgram


class ShortEliminated:
    """A loss cut off at κ, with or without constraints.

    Parameters
    ----------
    program : EliminatedProgram
        With a schedule of κ.
    few : Few
        Of its goal.
    """

    def __init__(self, program: EliminatedProgram, few: Few) -> None:
        self.few, self.at = few, program.method.truncate.at
        #: bound to the program, which a copy of it takes along
        self.read, self.ascend = program.priced, program.ascend

    def __call__(
        self,
        z: Tensor,
        y: Tensor,
        totals: Any,
        prices: Any,
        fading: float,
        multipliers: Any,
        step: int,
    ) -> tuple[float, np.ndarray] | None:
        """One step; None where a mistake is worth something, which is left to the general way."""
        n = z.shape[0]
        tn_, fp_, fn_, tp_ = (prices[0] / n).tolist()
        if fp_ or fn_:
            return None
        gap, actual = torch.sigmoid(z).numpy(), y.numpy()
        unit = ones(n, gap.dtype)
        decided = (z.numpy() >= 0).astype(gap.dtype)
        yes, tp = float(actual @ unit), float(decided @ actual)
        fp = float(decided @ unit) - tp
        gap -= actual
        gradient = actual * (tp_ - tn_)
        gradient += tn_
        gradient *= gap
        poison = 0 * float(gap @ unit)  # NaN where a logit is
        gradient *= np.abs(gap) <= 1 - math.exp(-self.at(step))
        fresh, old = (n - yes - fp, fp, yes - tp, tp), totals[0].tolist()
        new = [x + fading * o for x, o in zip(fresh, old, strict=True)]
        mass = 1 / sum(new)
        value, violations, found = self.read(self.few, [x * mass for x in new], multipliers)
        finite = sum(found[0].tolist()) + poison
        if finite - finite == 0:
            totals[0], prices[...] = new, found
            if len(multipliers):
                multipliers[...] = self.ascend(multipliers, violations, 1 - fading)
        return value + poison, gradient
