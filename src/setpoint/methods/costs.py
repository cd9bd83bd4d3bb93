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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any, cast

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from setpoint._core.arrays import exponential, highest, inverse, is_tensor, join, lowest, where
from setpoint._core.errors import KindError
from setpoint._core.options import number, numbers
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Few, Lowered
from setpoint.methods.confusion.soft_decisions import HardClasses, HardSteps, by_class
from setpoint.methods.goal_program import GoalProgram
from setpoint.methods.method import LabelledOutputs, Method, Recovered, not_totals, ready
from setpoint.methods.rate_targets import extreme_point
from setpoint.methods.soft_set import recovered
from setpoint.methods.training_hints import PortfolioPlace, Start, TrainingHints, TreeGradient
from setpoint.programs import Priced, StreamProgram
from setpoint.surrogates import Schedule, schedule

RIGHT = 1.0, 0.0, 0.0, 1.0  #: worth of plain cross-entropy
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

    truncate: float | Schedule | None = None
    rate: float = 4.0
    floor: float = 0.02
    multipliers: Sequence[float] | None = None

    name = "costs"
    summary = "cross-entropy with the goal's own prices as example costs, a dual on hard counts"
    hints = TrainingHints(
        start=Start.CROSS_ENTROPY,
        half_threshold=True,
        rate_divisor=3.0,  # costs reweigh a loss that is near its end: full steps undo it first
        tree_gradient=TreeGradient.COSTS,
        class_costs=True,
    )

    def __post_init__(self) -> None:
        if self.truncate is not None:
            object.__setattr__(self, "truncate", schedule(self.truncate, "truncate"))
        number("rate", self.rate, 0, error=KindError)
        number("floor", self.floor, 0, 1, open_high=True, error=KindError)
        if self.multipliers is not None:
            each = "one per constraint"
            start = numbers("multipliers", self.multipliers, 0, each=each, error=KindError)
            object.__setattr__(self, "multipliers", start)

    def objection(self, goal: Goal, task: Task) -> str | None:
        return not_totals(goal, task)

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        lowered = Lowered(ready(self, goal, task), Cells(task))
        return CostsProgram(lowered, hard_reader(lowered.cells), self.started(lowered), self)

    def started(self, lowered: Lowered) -> list[float]:
        """The multipliers to start from."""
        m = len(lowered.constraints)
        start = [1.0] * m if self.multipliers is None else list(self.multipliers)
        if len(start) != m:
            raise KindError(f"multipliers holds {len(start)} numbers for {m} constraints")
        return start

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        return recovered(program, totals, multipliers)

    def at_threshold(
        self, goal: Goal, task: Task, rows: LabelledOutputs, threshold: float
    ) -> Method:
        """The method with multipliers that make the goal choose this threshold."""
        if self.multipliers is not None:
            return self
        settled = settled_multipliers(goal, task, rows, threshold)
        return replace(self, multipliers=settled) if settled else self

    def class_costs(
        self, goal: Goal, task: Task, rows: LabelledOutputs, threshold: float | None
    ) -> np.ndarray:
        settled = self if threshold is None else self.at_threshold(goal, task, rows, threshold)
        program = settled.lower(goal, task)
        assert isinstance(program, CostsProgram)
        priced = program.price(_cells(program, rows), program.start.numpy())
        worth = priced.prices.reshape(program.cells.shape)[0]
        costs = np.diagonal(worth).copy()
        return costs / costs.max()

    def classifier_objection(self, goal: Goal, classifier: str) -> str | None:
        if not goal.columns:
            return None
        return (
            f'the goal speaks of the column "{goal.columns[0]}", and costs for a scikit-learn '
            "classifier know no groups; take a network, or leave the method out"
        )

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace:
        return PortfolioPlace(method=self, reason=extreme_point(goal))


def settled_multipliers(
    goal: Goal, task: Task, rows: LabelledOutputs, threshold: float
) -> tuple[float, ...]:
    """Multipliers at which the goal chooses this threshold on these rows; () without constraints.

    The outputs decide at 0, whatever the threshold was.
    """
    program = Costs().lower(goal, task)
    assert isinstance(program, CostsProgram)
    if not program.start.numel():
        return ()
    return tuple(program.multipliers_at(_cells(program, rows), threshold).tolist())


def _cells(program: CostsProgram, rows: LabelledOutputs) -> Any:
    """The confusion table of the rows' decisions, per unit of mass."""
    batch = program.rows(rows.outputs, rows.target, rows.weight, rows.group)
    totals, _ = program.measure(batch, torch.zeros(()))
    return totals / program.whole(totals)


def hard_reader(cells: Cells) -> HardClasses | HardSteps:
    """What fills the cells with hard decisions."""
    tables, side, _ = cells.shape
    return HardClasses(tables, side) if cells.task.kind == "multiclass" else HardSteps(tables)


class CostsProgram(GoalProgram):
    """Prices at hard totals, as costs on cross-entropy."""

    def __init__(self, lowered: Lowered, reader: Any, start: list[float], method: Costs) -> None:
        super().__init__(lowered, reader, start)
        self.method = method
        self.truncate = cast("Schedule | None", method.truncate)  # read when the method was made
        self._few = lowered.few
        self._offset = lowered.offset
        self._right = np.broadcast_to(np.eye(self.cells.side), self.cells.shape)
        self.register_buffer("right", torch.tensor(self._right, dtype=torch.float32), False)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self._few is not None and isinstance(totals, np.ndarray):
            return self._price_few(self._few, totals[0].tolist(), multipliers.tolist())
        values, memory = self.lowered.read(totals)
        violations = values[:, 1:]
        weights = join([0 * values[:, :1] - 1, 0 * violations - multipliers], 1)
        table = self.lowered.prices(totals, memory, weights).reshape(self.cells.shape)
        worth = table - lowest(table, 2)
        mass = totals.reshape(self.cells.shape).sum(2)  # (tables, side) rows of each class
        mean = (mass * highest(worth, 2)).sum() / self.labels
        right = self.right if is_tensor(totals) else self._right
        # worth ∝ its mean over rows; where nothing is worth anything, plain cross-entropy
        least = where(mean > 0, 0 * mean + self.method.floor, 0 * mean + 1)
        worth = worth * inverse(mean) + right * least
        cost = values[0, 0] + self._offset + (multipliers * violations[0]).sum()
        return Priced(cost, violations[0], worth.reshape(1, -1))

    def _price_few(self, few: Few, cells: list[float], multipliers: list[float]) -> Priced:
        """The same of one table, in plain numbers."""
        (value, *violations), memory = few.read(cells)
        tn, fp, fn, tp = few.prices(memory, [-1.0, *(-x for x in multipliers)])
        mean = (cells[0] + cells[1]) * abs(tn - fp) + (cells[2] + cells[3]) * abs(tp - fn)
        unit, right = inverse(mean), self.method.floor if mean > 0 else 1.0
        no, yes = (tn - fp) * unit, (tp - fn) * unit  # how much better the right decision is
        worth = [max(no, 0.0) + right, max(-no, 0.0), max(-yes, 0.0), max(yes, 0.0) + right]
        cost = value + self._offset + sum(map(mul, multipliers, violations))
        return Priced(cost, np.array(violations), np.array([worth]))

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory
        if self._few is not None and rows.flat and self.truncate is None:
            return self._pull_few(rows, prices[0].tolist() if on else RIGHT, scale)
        right = self.right if is_tensor(prices) else self._right
        worth = where(on > 0, prices.reshape(self.cells.shape), right) * (scale / self.labels)
        least = None
        if self.truncate is not None:  # the least probability that is not given up
            least = on * exponential(-self.truncate.at(rows.small(step)))
        return self._costly(rows, worth.reshape(-1, self.cells.side), least)

    def _pull_few(self, rows: Batch, worth: Sequence[float], scale: float) -> Tensor:
        """The same of one table: (u[y, 0] + u[y, 1]) p − u[y, 1], written out."""
        tn, fp, fn, tp = (scale * x for x in worth)
        slope = rows.y * (fn + tp - tn - fp)
        slope += tn + fp
        slope *= rows.p
        slope -= rows.y * (tp - fp)
        if fp:
            slope -= fp
        return rows.gradient(slope)

    def _costly(self, rows: Batch, worth: Any, least: Any) -> Tensor:
        p = rows.probability
        if rows.logits.ndim == 2:
            u = torch.as_tensor(worth).to(p).index_select(0, rows.place)
            u = u if least is None else u * (p >= least)
            return rows.weighed(u.sum(1, keepdim=True) * p - u)
        p = rows.p
        no, yes = by_class(rows, worth[:, 0]), by_class(rows, worth[:, 1])
        if least is not None:
            no, yes = no * (1 - p >= least), yes * (p >= least)
        no += yes
        no *= p
        no -= yes
        return rows.gradient(no)

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        return on * priced.value + (1 - on) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        push = (self.method.rate * share * violations).clip(-1, 1)
        dearer = (multipliers * exponential(push)).clip(CHEAPEST, DEAREST)
        shifted = (multipliers + push).clip(-DEAREST, DEAREST)
        return where(self.lowered.equal_of(violations) > 0, shifted, dearer)

    def multipliers_at(self, totals: np.ndarray, threshold: float) -> Tensor:
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
        solution, _ = nnls(row, np.array([right]))
        return torch.as_tensor(np.clip(solution, CHEAPEST, DEAREST)).to(self.start)
