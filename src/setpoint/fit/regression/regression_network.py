"""Networks for real targets: on a regression goal, or on mean squared or absolute error.

A network gives z; predictions are mean + spread · z in the user's units, and a goal's loss sees
those. Its value is divided by spreadᵈ, where the goal grows like errorsᵈ: gradients in z are then
of one size whatever the units of the targets are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from setpoint.expressions import Columns
from setpoint.fit.network.goal_network import NetworkSettings, TensorRows
from setpoint.fit.regression.regression_targets import Scale, columns_of
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import Errors
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.solvers import FirstOrder
from setpoint.training.batches import InMemory
from setpoint.training.best_weights import EpochVerdict
from setpoint.training.loop import Trained, TrainingPlan, train
from setpoint.training.validation_rows import evaluate_outputs
from setpoint.validation import goal_verdict

WARMUP = 0.1  #: share of the epochs that start with mean squared error
PLAIN_RATE = 3e-3  #: learning rate of plain mse and mae, the same as that of the goal's errors
MEMORY = 8192  #: rows that running totals remember, and no more than there are


class Standardised(nn.Module):
    """A goal's loss over outputs in standard units."""

    def __init__(self, loss: GoalLoss, scale: Scale) -> None:
        super().__init__()
        self.loss, self.scale = loss, scale
        self.unit = scale.spread ** loss.program.lowered.degrees[0]  # type: ignore[union-attr]

    def forward(self, outputs: Tensor, target: Any, *, weight: Any, group: Any) -> Tensor:
        """The loss in units of the goal at errors of the targets' own size."""
        # in float64, where predictions far from 0 keep the digits of their errors
        predicted = outputs.double() * self.scale.spread + self.scale.mean
        return self.loss(predicted, target, weight=weight, group=group) / self.unit


class StandardError(nn.Module):
    """Mean squared or absolute error in standard units."""

    def __init__(self, absolute: bool, scale: Scale) -> None:
        super().__init__()
        self.absolute, self.scale = absolute, scale

    def forward(self, outputs: Tensor, target: Any, *, weight: Any, group: Any) -> Tensor:
        """Σ w e² / Σ w, or Σ w |e| / Σ w."""
        del group
        e = outputs.reshape(-1) - ((target - self.scale.mean) / self.scale.spread).to(outputs.dtype)
        each = e.abs() if self.absolute else e * e
        if weight is None:
            return each.mean()
        weight = weight.to(each.dtype)
        return (each * weight).sum() / weight.sum().clamp(min=1e-30)


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTraining:
    """The training of one network on real targets.

    Parameters
    ----------
    goal, task : Goal, Task
        What the best epoch is judged by, and what Errors trains on.
    method : {"mse", "mae"} or Errors
    fit, tune : TensorRows
        Rows that are trained on, and rows that judge; targets in float64.
    scale : Scale
    settings : NetworkSettings
    """

    goal: Goal
    task: Task
    method: str | Errors
    fit: TensorRows
    tune: TensorRows
    scale: Scale
    settings: NetworkSettings

    def run(self, build: Callable[[], nn.Module]) -> tuple[nn.Module, Trained]:
        """Train a new network; it comes back with the weights of the best epoch."""
        settings, n, model = self.settings, len(self.fit.target), build()
        size = settings.batch_size or min(max(n // 16, 32), 1024)
        batches = InMemory(self.fit.rows(), max(1, min(size, n)))
        waits = 0
        if isinstance(self.method, str):
            phase, usual = self.method, PLAIN_RATE
            loss: nn.Module = StandardError(self.method == "mae", self.scale)
        else:
            phase, usual = self.method.name, self.method.hints.learning_rate
            waits = max(1, int(WARMUP * settings.epochs))
            loss = self._goal_loss(self.method, n, waits * batches.count())
        rate = settings.learning_rate or usual * settings.pace
        plan = TrainingPlan(
            solver=FirstOrder(rate, weight_decay=settings.weight_decay, final=settings.final),
            epochs=settings.epochs,
            patience=settings.patience,
            waits=waits,
            seed=settings.seed,
            phase=phase,
        )
        loss.to(self.fit.inputs.device)
        run = train(model, loss, batches, plan, self._judge(), settings.listener)
        return model, run

    def _goal_loss(self, method: Errors, rows: int, warmup: int) -> Standardised:
        method = replace(method, scale=self.scale.spread, centre=self.scale.mean)
        memory = max(1, min(MEMORY, rows))
        loss = GoalLoss(self.goal, method, task=self.task, memory=memory, warmup=warmup)
        return Standardised(loss, self.scale)

    def _judge(self) -> Callable[[nn.Module], EpochVerdict]:
        tune = self.tune
        target = tune.target.cpu().numpy()
        weight = None if tune.weight is None else tune.weight.cpu().numpy()

        def columns(predicted: np.ndarray) -> Columns:
            return columns_of(self.task, target, predicted, weight, tune.groups)

        problem = GoalOnRows.ground(self.goal, columns(np.zeros(len(target))))

        def judge(model: nn.Module) -> EpochVerdict:
            z = evaluate_outputs(model, tune.inputs).double().cpu().numpy().reshape(-1)
            predicted = self.scale.to_units(z)
            point = problem.judge(columns(predicted))
            errors = self.scale.standardise(predicted) - self.scale.standardise(target)
            squared = float(np.average(errors * errors, weights=weight))
            return goal_verdict(point, self.goal, "squared_error", squared)

        return judge
