"""Soft-set for trees: the goal's formula on soft decisions of all rows, mixed with log loss.

    g = w [ (1 − c) · κ H′(p) p (1 − p) + c (p − y) ],   κ the price of deciding the row, negated.

The soft part is not convex. Where H is straight its second derivative is (1 − 2p) times its first,
and among several classes (1 − 2 s_k) times it; both are at most as large as the first derivative
itself, and so is the bound that stands for it:

    h = (1 − c) |g_soft| · bend + w c p (1 − p).

A leaf of one mind about the soft part takes a step of at most 1, whatever the prices. ``bend`` is 1
for a straight H, 1 + k p (1 − p) for the sigmoid step of sharpness k, whose slope changes itself,
and 1/T for softmax at temperature T.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch

from setpoint.boosting.tree_rows import TreeGradients, TreeRows
from setpoint.goals import Goal, Task
from setpoint.methods.soft_set import SoftSet
from setpoint.surrogates import Schedule, Sigmoid

LEAST = 1e-16  #: of a hessian, per unit of weight
NEWEST = 0.1  #: share of the newest prices: a constraint that is met in turns must not shake them


class TreeSoftSet(TreeGradients):
    """Soft decisions at the prices of all rows' soft totals.

    Parameters
    ----------
    goal : Goal
    task : Task
    method : SoftSet
    """

    def __init__(self, goal: Goal, task: Task, method: SoftSet, factor: float = 1.0) -> None:
        self.program: Any = method.lower(goal, task)
        super().__init__(self.program.cells.side, factor)
        self.method = method
        self.mix = float(method.cross_entropy)
        self.table = np.zeros(self.program.shape)
        self.multipliers = self.program.start.double().numpy().copy()

    @classmethod
    def for_goal(
        cls, goal: Goal, task: Task, method: Any, threshold: Any, factor: float
    ) -> TreeSoftSet:
        """The gradients of a run; soft decisions need no best threshold."""
        del threshold
        return cls(goal, task, method, factor)

    @property
    def prices(self) -> np.ndarray:
        return self.table.mean(0).reshape(self.program.cells.shape)

    def renew(self, rows: TreeRows) -> None:
        totals, _ = self.program.measure(self._batch(rows), self._step())
        priced = self.program.price(totals / max(rows.mass, 1e-300), self.multipliers)
        prices = np.asarray(priced.prices, dtype=np.float64)
        share = max(1 / (self.turn + 1), NEWEST)
        self.table = (1 - share) * self.table + share * prices / self._swing(rows, prices)
        if len(self.multipliers):
            self.multipliers = self.program.ascend(self.multipliers, priced.violations, 1.0)
        self.turn += 1

    def of(self, rows: TreeRows) -> tuple[np.ndarray, np.ndarray]:
        batch, step = self._batch(rows), self._step()
        _, memory = self.program.measure(batch, step)
        whole = self.program.pull(batch, memory, self.table, 1.0, step, 1.0).numpy()
        p = rows.p
        right = rows.codes if p.ndim == 1 else np.eye(self.width)[rows.codes]
        soft = whole - self.mix * rows.weighed(p - right)
        own = p * (1 - p)
        h = np.abs(soft) * self._bend(own) + rows.weighed(self.mix * own + LEAST)
        return whole, self.factor * h

    def _swing(self, rows: TreeRows, prices: np.ndarray) -> float:
        """The mean over rows of what the decision about a row can be worth; 1 where nothing can."""
        tables = prices.reshape(len(prices), -1, self.width)
        each = (tables.max(2) - tables.min(2)).mean(0)[rows.place(self.width)]
        mean = float(rows.weighed(each).sum()) / max(rows.mass, 1e-300)
        return mean if mean > 1e-12 else 1.0

    def _batch(self, rows: TreeRows) -> Any:
        tables_of_rows = None if rows.table is None else torch.from_numpy(rows.table)
        weight = None if rows.weight is None else torch.from_numpy(rows.weight)
        scores, codes = torch.from_numpy(rows.scores), torch.from_numpy(rows.codes)
        return self.program.rows(scores, codes, weight, self._codes(tables_of_rows))

    def _codes(self, table: Any) -> Any:
        """The codes of each group column from the number of the group they make together."""
        if table is None:
            return None
        codes = {}
        for name, values in reversed(self.program.cells.task.groups):
            codes[name] = table % len(values)
            table = table // len(values)
        return codes

    def _step(self) -> Any:
        return torch.tensor(self.turn)

    def _bend(self, own: np.ndarray) -> Any:
        """How many times |g_soft| its own slope can be."""
        t, step = (
            float(cast(Schedule, self.method.temperature).at(self.turn)),
            self.method.surrogate,
        )
        if own.ndim == 2:
            return 1 / t
        return 1 + step.sharpness / t * own if isinstance(step, Sigmoid) else 1.0
