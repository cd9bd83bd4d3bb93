"""Costs: the metric's own prices as example costs on cross-entropy.

At hard running totals C the goal's Lagrangian L = F + Σ λⱼ vⱼ prices each cell of the confusion
table; deciding d for a row of class a is worth u[a, d] = −∂L/∂C[a, d], shifted so that the worst
decision is worth 0. The loss is

    Σᵢ wᵢ Σ_d u[yᵢ, d] · min(−log p_d(xᵢ), κ).

Without truncation its minimiser has p_d ∝ Σₐ P(a|x) u[a, d], so the largest p_d is the decision of
greatest expected worth: the metric's Bayes rule at threshold ½ (argmax), with scores that still
rank. For F1 the costs are (2 − F) : F, for recall subject to precision >= α they are
1 + λ(1 − α) : λα. The multipliers follow the hard counts: a constraint that is broken gets dearer.

References
----------
The costs of F-measures at their optimum: Parambath, Usunier, Grandvalet, Optimizing F-measures by
cost-sensitive classification, NeurIPS 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from setpoint._core.arrays import exponential, highest, inverse, is_tensor, join, lowest, where
from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint.goals import Goal, Task
from setpoint.methods.batch import Batch
from setpoint.methods.cells import Cells
from setpoint.methods.classes import HardClasses
from setpoint.methods.lowered import Lowered
from setpoint.methods.method import Method, Recovered, not_totals, ready
from setpoint.methods.program import GoalProgram
from setpoint.methods.soft_set import recovered
from setpoint.methods.steps import HardSteps, by_class
from setpoint.programs import Priced, StreamProgram
from setpoint.surrogates import schedule

DEAREST = 1e4  #: no multiplier grows beyond
CHEAPEST = 1e-3  #: nor falls below, so that it can come back


@dataclass(frozen=True)
class Costs(Method):
    """Cross-entropy with the costs that the goal itself puts on each mistake.

    Parameters
    ----------
    truncate : None, float or Schedule
        κ: mistakes with a larger cross-entropy are given up. None gives up none.
    rate : float
        How fast a broken constraint gets dearer: its multiplier grows by exp(rate · violation)
        while the running totals are renewed once.
    floor : float
        Least worth of a right decision, relative to the mean.
    multipliers : sequence of float, optional
        Where to start, one per constraint; 1 by default.
    """

    truncate: Any = None
    rate: float = 4.0
    floor: float = 0.02
    multipliers: Any = None

    name = "costs"
    summary = "cross-entropy with the goal's own prices as example costs, a dual on hard counts"

    def __post_init__(self) -> None:
        if self.truncate is not None:
            object.__setattr__(self, "truncate", schedule(self.truncate, "truncate"))
        if not is_real(self.rate) or self.rate < 0:
            raise KindError(f"rate={self.rate!r}: a number, 0 or more")
        if not is_real(self.floor) or not 0 <= self.floor < 1:
            raise KindError(f"floor={self.floor!r}: a number in [0, 1)")

    def refusal(self, goal: Goal, task: Task) -> str | None:
        return not_totals(goal, task)

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        lowered = Lowered(ready(self, goal, task), Cells(task))
        tables, side, _ = lowered.cells.shape
        several = task.kind == "multiclass"
        reader = HardClasses(tables, side) if several else HardSteps(tables)
        m = len(lowered.constraints)
        start = [1.0] * m if self.multipliers is None else list(self.multipliers)
        if len(start) != m:
            raise KindError(f"multipliers holds {len(start)} numbers for {m} constraints")
        return CostsProgram(lowered, reader, start, self)

    def recover(self, program: StreamProgram, totals: Any, multipliers: Any) -> Recovered:
        return recovered(program, totals, multipliers)


class CostsProgram(GoalProgram):
    """Prices at hard totals, as costs on cross-entropy."""

    def __init__(self, lowered: Lowered, reader: Any, start: list[float], method: Costs) -> None:
        super().__init__(lowered, reader, start)
        self.method = method
        side = self.cells.side
        self._right = np.eye(side)
        self.register_buffer("right", torch.eye(side), persistent=False)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        values, memory = self.lowered.read(totals)
        held = values[:, 1:]
        weights = join([0 * values[:, :1] - 1, 0 * held - multipliers], 1)
        table = self.lowered.prices(totals, memory, weights).reshape(self.cells.shape)
        worth = table - lowest(table, 2)
        mass = totals.reshape(self.cells.shape).sum(2)  # (tables, side) rows of each class
        mean = (mass * highest(worth, 2)).sum() / self.labels
        right = self.right if is_tensor(totals) else self._right
        # worth ∝ its mean over rows; where nothing is worth anything, plain cross-entropy
        worth = worth * inverse(mean) + right * where(mean > 0, self.method.floor, 1.0)
        cost = values[0, 0] + self.lowered.offset + (multipliers * held[0]).sum()
        return Priced(cost, held[0], worth.reshape(1, -1))

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory
        right = self.right if is_tensor(prices) else self._right
        worth = on * prices.reshape(self.cells.shape) + (1 - on) * right
        return self._costly(rows, worth.reshape(-1, self.cells.side) * (scale / self.labels), step)

    def _costly(self, rows: Batch, worth: Any, step: Tensor) -> Tensor:
        p = rows.probability
        least = None if self.method.truncate is None else self._least(step)
        if rows.logits.ndim == 2:
            u = torch.as_tensor(worth).to(p).index_select(0, rows.place)
            u = u if least is None else u * (p >= least)
            return rows.weighed(u.sum(1, keepdim=True) * p - u)
        if least is None:
            slope = by_class(rows, worth[:, 0] + worth[:, 1]).mul_(p)
            return rows.weighed(slope.sub_(by_class(rows, worth[:, 1])))
        no = by_class(rows, worth[:, 0]) * (1 - p >= least)
        yes = by_class(rows, worth[:, 1]) * (p >= least)
        return rows.weighed((no + yes) * p - yes)

    def _least(self, step: Tensor) -> Any:
        """exp(−κ), the least probability of the right decision that is not given up."""
        kappa = self.method.truncate.at(step)
        return (-kappa).exp() if isinstance(kappa, Tensor) else math.exp(-kappa)

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        return on * priced.value + (1 - on) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        push = (self.method.rate * share * violations).clip(-1, 1)
        dearer = (multipliers * exponential(push)).clip(CHEAPEST, DEAREST)
        shifted = (multipliers + push).clip(-DEAREST, DEAREST)
        return where(self.lowered.equal_of(violations) > 0, shifted, dearer)

    def settle(self, totals: np.ndarray, threshold: float) -> Tensor:
        """Multipliers at which the goal itself would choose this threshold on calibrated scores.

        A row of probability t is as good decided as not where t·w₊(λ) = (1 − t)·w₋(λ), the worth of
        deciding a positive and of leaving a negative. That is one linear equation in λ; the
        least λ >= 0 that meets it is taken. For recall subject to precision >= α it is
        λ = t / (α − t).

        Parameters
        ----------
        totals : numpy.ndarray
            (1, cells) per unit of mass, of decisions at the threshold.
        threshold : float
            A probability.
        """
        m = len(self.lowered.constraints)
        if not m or self.cells.task.kind != "binary" or not 0 < threshold < 1:
            return self.start.clone()
        values, memory = self.lowered.read(totals)
        tilt = []
        for j in range(1 + m):
            one = np.zeros_like(values)
            one[:, j] = -1
            gain = self.lowered.prices(totals, memory, one).reshape(self.cells.shape)
            up = (gain[:, 1, 1] - gain[:, 1, 0]).sum()
            down = (gain[:, 0, 0] - gain[:, 0, 1]).sum()
            tilt.append(float(threshold * up - (1 - threshold) * down))
        row, right = np.array(tilt[1:])[None], -tilt[0]
        if not np.isfinite([*tilt]).all() or not np.abs(row).max():
            return self.start.clone()
        found, _ = nnls(row, np.array([right]))
        return torch.as_tensor(np.clip(found, CHEAPEST, DEAREST)).to(self.start)
