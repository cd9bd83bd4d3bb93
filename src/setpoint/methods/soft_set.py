"""Soft-set: the metric itself, on soft decisions.

    loss = (1 − c) · mean over τ of [ F(C_τ) + Σⱼ ρⱼ max(0, vⱼ(C_τ)) ]  +  c · cross-entropy

C_τ are the cells filled with soft memberships H_τ(p). The penalty is exact: for ρⱼ above the
constraint's multiplier its minimum is that of the constrained problem. ρⱼ starts at 1 and grows
while the constraint is broken: a large one from the start drives every soft decision to 0, where
nothing pulls any more.

References
----------
Tsoi et al., Bridging the Gap, NeurIPS 2022 (binary). Aligning Multiclass Neural Network Classifier
Criterion with Task Performance Metrics, arXiv 2405.20954 (multiclass; its threshold rule and
schedule are our reading of the abstract).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import exponential, is_tensor, join, total
from setpoint._core.errors import KindError
from setpoint._core.options import choice, number, numbers
from setpoint.expressions import Auroc
from setpoint.expressions.named_metric import unnamed
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Few, Lowered
from setpoint.methods.confusion.soft_decisions import SoftClasses, SoftSteps
from setpoint.methods.goal_program import MixedProgram
from setpoint.methods.method import GoalStanding, Method, Recovered, not_totals, ready
from setpoint.methods.training_hints import (
    FitSize,
    Phase,
    PortfolioPlace,
    TrainingHints,
    TreeGradient,
)
from setpoint.programs import Priced, StreamProgram
from setpoint.surrogates import Linear, Schedule, Surrogate, schedule, surrogate

# The area under the ROC curve through a few soft points, with both end points.


class Area(nn.Module):
    """−Σ ½ (TPRₖ + TPRₖ₊₁)(FPRₖ₊₁ − FPRₖ) over (0, 0), (FPR_τ, TPR_τ) by falling τ, (1, 1).

    Stands in for ``Lowered`` where the objective is auroc: the same readings, of the curve that the
    soft cells at several thresholds draw. A perfect ranking reaches 1 only with both end points in.
    """

    def __init__(self, goal: Goal, cells: Cells) -> None:
        super().__init__()
        self.goal = goal
        self.cells = cells
        self.offset = 1.0
        self.constraints: list[str] = []

    def read(self, cells: Any) -> tuple[Any, Any]:
        """(1, 1) minus the area; ``cells`` (T, 4) by rising τ."""
        fpr, tpr, _ = self._curve(torch.as_tensor(cells))
        area = -torch.trapezoid(tpr, fpr).view(1, 1)
        return (area if is_tensor(cells) else area.numpy()), None

    def prices(self, cells: Any, memory: Any, weights: Any) -> Any:
        """Weights · ∂(minus area)/∂cells, (T, 4)."""
        del memory
        pulled = self._pulled(torch.as_tensor(cells), torch.as_tensor(weights))
        return pulled if is_tensor(cells) else pulled.numpy()

    def _pulled(self, cells: Tensor, weights: Tensor) -> Tensor:
        fpr, tpr, (n, p) = self._curve(cells)
        up = (fpr[2:] - fpr[:-2]) / 2  # ∂area/∂TPRₖ
        right = (tpr[:-2] - tpr[2:]) / 2  # ∂area/∂FPRₖ
        left, rise = (right / n).flip(0), (up / p).flip(0)
        # TPR = c₃ / (c₂ + c₃): ∂/∂c₃ = (1 − TPR)/P, ∂/∂c₂ = −TPR/P, and FPR alike
        f, t = fpr[1:-1].flip(0), tpr[1:-1].flip(0)
        return -weights * torch.stack([-f * left, (1 - f) * left, -t * rise, (1 - t) * rise], 1)

    @staticmethod
    def _curve(cells: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        n, p = cells[:, :2].sum(1), cells[:, 2:].sum(1)
        n, p = (torch.where(x > 0, x, 1.0) for x in (n, p))
        zero, one = cells.new_zeros(1), cells.new_ones(1)
        fpr, tpr = (cells[:, 1] / n).flip(0), (cells[:, 3] / p).flip(0)
        fpr, tpr = (torch.cat([zero, x, one]) for x in (fpr, tpr))
        return fpr, tpr, (n.flip(0), p.flip(0))


LEAST = 0.1  #: no price of a constraint falls below
GRID = tuple(round(0.1 * k, 1) for k in range(1, 10))  #: the nine thresholds .1, .2, …, .9


#: soft decisions at ½ have small slopes: three times the rate of cross-entropy ends as far
SOFT_RATE = 3e-3
#: share of the steps that start with cross-entropy, for several classes or constraints
SOFT_WARMUP = 0.25


def warmed_up(hints: TrainingHints, goal: Goal, task: Task) -> TrainingHints:
    """Hints with a warm-up only where soft decisions need a ranking to start from."""
    needed = task.kind == "multiclass" or bool(goal.lowered.constraints)
    return hints if needed else replace(hints, warmup=0.0)


@dataclass(frozen=True)
class SoftSet(Method):
    """Train on the goal's own formula over soft decisions.

    Parameters
    ----------
    surrogate : str or Surrogate
        "linear" (δ = .2), "sigmoid" (k = 10), "ramp", or one with other options.
    thresholds : float, sequence of float or "grid"
        τ, or several whose losses are averaged; "grid" is .1, .2, …, .9. Binary and multilabel.
    cross_entropy : float
        c, the share of cross-entropy, in [0, 1]. Some of it keeps the ranking and cannot collapse.
    penalty : float
        The dearest that breaking a constraint by one unit can get; the price starts at 1.
    rate : float
        How fast it gets there: by exp(rate) at most while the running totals are renewed once. With
        some warm-up of cross-entropy it may be 1.
    membership : {"softmax", "dynamic"}
        Of a multiclass task.
    temperature : float or Schedule
        1, or annealed towards 0, where soft decisions become hard ones.
    """

    surrogate: str | Surrogate = "linear"
    thresholds: str | float | Sequence[float] = 0.5
    cross_entropy: float = 0.5
    penalty: float = 10.0
    rate: float = 0.25
    membership: str = "softmax"
    temperature: float | Schedule = 1.0

    name = "soft-set"
    summary = "the metric's formula on soft decisions, mixed with cross-entropy"
    hints = TrainingHints(
        learning_rate=SOFT_RATE,
        warmup=SOFT_WARMUP,
        step_cost=2.0,
        tree_gradient=TreeGradient.SOFT_SET,
    )

    def __post_init__(self) -> None:
        temperature = schedule(self.temperature, "temperature")
        object.__setattr__(self, "surrogate", surrogate(self.surrogate))
        object.__setattr__(self, "thresholds", _thresholds(self.thresholds))
        object.__setattr__(self, "temperature", temperature)
        number("cross_entropy", self.cross_entropy, 0, 1, error=KindError)
        number("penalty", self.penalty, 0, error=KindError)
        number("rate", self.rate, 0, error=KindError)
        choice("membership", self.membership, ("softmax", "dynamic"))
        for step in self.steps:  # a temperature that the surrogate cannot take is refused here
            for moment in (0, math.inf):
                step.limit(temperature.at(moment))

    @property
    def steps(self) -> list[Surrogate]:
        """The surrogate at each threshold."""
        shape, thresholds, _ = self._checked
        return [shape.at(t) for t in thresholds]

    @property
    def _checked(self) -> tuple[Surrogate, tuple[float, ...], Schedule]:
        """Surrogate, thresholds and temperature as they were read when the method was made."""
        options = self.surrogate, self.thresholds, self.temperature
        return cast("tuple[Surrogate, tuple[float, ...], Schedule]", options)

    def state_options(self) -> dict[str, Any]:
        return {"thresholds": self.thresholds, "membership": self.membership}

    def objection(self, goal: Goal, task: Task) -> str | None:
        if _is_area(goal):
            if task.kind == "binary" and len(self._checked[1]) >= 3:
                return None
            return (
                f'"{goal}" is an area under a curve: with several thresholds, '
                'SoftSet(thresholds="grid"), a binary task has a soft one; '
                'method="pairwise" is exact'
            )
        return not_totals(goal, task)

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        ready_goal, cells = ready(self, goal, task), Cells(task)
        lowered = Area(goal, cells) if _is_area(goal) else Lowered(ready_goal, cells)
        tables, side, _ = lowered.cells.shape
        shape, thresholds, temperature = self._checked
        if task.kind == "multiclass":
            linear = shape if isinstance(shape, Linear) else Linear()
            reader: Any = SoftClasses(tables, side, self.membership, linear, temperature)
        else:
            reader = SoftSteps(shape, thresholds, tables, temperature)
        return SoftSetProgram(lowered, reader, self)

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        return recovered(program, totals, multipliers)

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        return (Phase(method=self, name=self.name, hints=warmed_up(self.hints, goal, task)),)

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace:
        return PortfolioPlace(method=self, models=("linear", "mlp"))


class SoftSetProgram(MixedProgram):
    """Prices at soft totals, pulled through the memberships."""

    def __init__(self, lowered: Any, reader: Any, method: SoftSet) -> None:
        start = [min(1.0, method.penalty)] * len(lowered.constraints)
        super().__init__(lowered, reader, start, method.cross_entropy)
        self.rate = float(method.rate)
        self.penalty = float(method.penalty)
        self._offset = lowered.offset
        self.steepness = 2.0
        self._few = lowered.few if reader.count == 1 and isinstance(lowered, Lowered) else None

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self._few is not None and isinstance(totals, np.ndarray):
            return self._price_few(self._few, totals[0].tolist(), multipliers)
        values, memory = self.lowered.read(totals)
        value, broken = total(values[:, 0]) / len(values), values[0, 1:]
        weights = 0 * values - 1 / len(values)
        if broken.shape[0]:
            broken = values[:, 1:]
            active = 1.0 * (broken > 0) - self.lowered.equal_of(totals) * (broken < 0)
            if self.charges_held:
                active = 1.0 + 0 * broken
            value = value + (multipliers * active * broken).sum() / len(values)
            weights = join([weights[:, :1], weights[:, 1:] * (multipliers * active)], 1)
            broken = broken.sum(0) / len(values)
        prices = self.lowered.prices(totals, memory, weights)
        return Priced(value + self._offset, broken, prices)

    def _price_few(self, few: Few, cells: list[float], multipliers: Any) -> Priced:
        """The same of one table, in plain numbers."""
        (value, *broken), memory = few.read(cells)
        weights = [-1.0]
        for v, equal, price in zip(broken, few.equal, multipliers.tolist(), strict=True):
            active = price * (self.charges_held or (v > 0) - equal * (v < 0))
            value += active * v
            weights.append(-active)
        prices = np.array([few.prices(memory, weights)])
        broken = np.array(broken) if broken else multipliers
        return Priced(value + self._offset, broken, prices)

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del step
        share, plain = self.shares(on, scale)
        return self._reader.pull(rows, memory, prices, -share * scale, plain)

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        # dearer while broken, cheaper while held, by e at most in one renewal of the totals
        equal = self.lowered.equal_of(violations)
        broken = violations * (1 - equal) + abs(violations) * equal
        push = share * self.rate * (broken / (1 + abs(broken)))
        return (multipliers * exponential(push)).clip(min(LEAST, self.penalty), self.penalty)


def recovered(program: Any, totals: Tensor, multipliers: Tensor) -> Recovered:
    """Objective, violations and multipliers as plain numbers."""
    lowered = program.lowered
    if isinstance(lowered, Area):
        return Recovered(-float(lowered.read(totals)[0]))
    value, *excess = lowered.stated(totals.double().cpu().numpy())
    rows = zip(lowered.constraints, excess, multipliers.tolist(), strict=True)
    return Recovered(-lowered.goal.sign * value, tuple(GoalStanding(*row) for row in rows))


def _is_area(goal: Goal) -> bool:
    """Whether the goal is to maximize plain auroc."""
    body = unnamed(goal.objective)
    return isinstance(body, Auroc) and body == Auroc() and goal.sign > 0 and not goal.constraints


def _thresholds(x: Any) -> tuple[float, ...]:
    if isinstance(x, str) and x == "grid":
        return GRID
    several = x if isinstance(x, Iterable) else (x,)
    each = 'one or several; or "grid" for .1 … .9'
    open_ends: dict[str, bool] = {"open_low": True, "open_high": True}
    return tuple(
        sorted(numbers("thresholds", several, 0, 1, **open_ends, each=each, error=KindError))
    )
