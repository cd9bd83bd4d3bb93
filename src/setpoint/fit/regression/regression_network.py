"""Networks for real targets: on a regression goal, or on mean squared or absolute error.

A network gives z; predictions are mean + spread · z in the user's units, and a goal's loss sees
those. Its value is divided by spreadᵈ, where the goal grows like errorsᵈ: gradients in z are then
of one size whatever the units of the targets are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint.fit.network.goal_network import NetworkSettings
from setpoint.fit.regression.regression_targets import Scale, columns_of
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import Errors
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.solvers import FirstOrder
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.loop import EpochVerdict, Trained, TrainingPlan, evaluate_outputs, train

WARMUP = 0.1  #: share of the epochs that start with mean squared error
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


@dataclass(frozen=True, eq=False)
class RealPart:
    """The rows of one job."""

    inputs: Tensor
    target: np.ndarray
    weight: np.ndarray | None
    groups: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class RealFit:
    """What trains a network on real targets.

    Parameters
    ----------
    goal, task : Goal, Task
        What the best epoch is judged by, and what Errors trains on.
    method : {"mse", "mae"} or Errors
    build : callable
        Makes the network.
    fit, tune : RealPart
        Rows that are trained on, and rows that judge.
    scale : Scale
    settings : Settings
    """

    goal: Goal
    task: Task
    method: Any
    build: Callable[[], nn.Module]
    fit: RealPart
    tune: RealPart
    scale: Scale
    settings: NetworkSettings

    def run(self) -> tuple[nn.Module, Trained]:
        """Train; the network holds the weights of the best epoch."""
        settings, fit = self.settings, self.fit
        n, model = len(fit.target), self.build()
        device = fit.inputs.device
        size = settings.batch_size or min(max(n // 16, 32), 1024)
        codes = {
            name: torch.as_tensor(_codes(fit.groups[name], values), device=device)
            for name, values in self.task.groups
        }
        target = torch.as_tensor(fit.target, dtype=torch.float64, device=device)
        weight = None if fit.weight is None else torch.as_tensor(fit.weight, device=device)
        batches = InMemory(
            TrainingRows(fit.inputs, target, weight, codes or None), max(1, min(size, n))
        )
        driven = self.method not in ("mse", "mae")
        waits = max(1, int(WARMUP * settings.epochs)) if driven else 0
        if driven:
            made = replace(self.method, scale=self.scale.spread, centre=self.scale.mean)
            loss: nn.Module = Standardised(
                GoalLoss(
                    self.goal,
                    made,
                    task=self.task,
                    memory=max(1, min(MEMORY, n)),
                    warmup=waits * batches.count(),
                ),
                self.scale,
            )
        else:
            loss = StandardError(self.method == "mae", self.scale)
        rate = settings.learning_rate or 3e-3 * settings.pace
        plan = TrainingPlan(
            solver=FirstOrder(rate, weight_decay=settings.weight_decay, final=settings.final),
            epochs=settings.epochs,
            patience=settings.patience,
            waits=waits,
            seed=settings.seed,
            phase=str(Errors.name if driven else self.method),
        )
        run = train(model, loss.to(device), batches, plan, self._judge(), settings.listener)
        return model, run

    def _judge(self) -> Callable[[nn.Module], EpochVerdict]:
        tune = self.tune
        problem = GoalOnRows.ground(self.goal, self._columns(np.zeros(len(tune.target))))

        def judge(model: nn.Module) -> EpochVerdict:
            z = evaluate_outputs(model, tune.inputs).double().cpu().numpy().reshape(-1)
            predicted = self.scale.back(z)
            point = problem.judge(self._columns(predicted))
            e = self.scale.there(predicted) - self.scale.there(tune.target)
            squared = float(np.average(e * e, weights=tune.weight))
            feasible, excess, merit = point.rank(self.goal.sign)
            shown = {"tune": point.value, "feasible": point.feasible, "squared_error": squared}
            return EpochVerdict((float(feasible), excess, merit, -squared), shown)

        return judge

    def _columns(self, predicted: np.ndarray) -> Any:
        tune = self.tune
        return columns_of(self.task, tune.target, predicted, tune.weight, tune.groups)


def fresh(module: nn.Module, device: torch.device) -> Callable[[], nn.Module]:
    """What makes a copy of a module of the user's."""
    return lambda: copy.deepcopy(module).to(device)


def _codes(column: np.ndarray, values: tuple[Any, ...]) -> np.ndarray:
    """The place of each group among the declared ones, which are sorted."""
    return np.searchsorted(np.array(values), column)
