"""The door to Lightning: the exact goal on the validation rows, for callbacks to watch.

Needs the extra: ``pip install 'setpoint[lightning]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.decisions import DecisionRule
from setpoint.expressions import Expression
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.training.running_loss import RunningLoss
from setpoint.training.scored_rows import in_group_values, scored
from setpoint.validation import LossReport, check_accumulation, goal_figures, tuned_rule

try:
    from lightning.pytorch.callbacks import Callback
except ImportError as error:  # an extra: the rest of the package does without
    raise ImportError(
        "setpoint.lightning needs Lightning: pip install 'setpoint[lightning]'"
    ) from error

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class GoalCallback(Callback):
    """Tunes the goal's rule on the validation rows after every epoch, exactly, and logs it.

    Logged are the figures of :func:`setpoint.validation.goal_figures`: ``goal`` (the objective at
    the best operating point, or a value below every feasible one where there is none),
    ``goal_feasible`` and the constraints; ``EarlyStopping("goal", mode="max")`` and
    ``ModelCheckpoint(monitor="goal", mode="max")`` work with them. For goals that minimize,
    ``mode="min"``. Of a ``GoalLoss`` in the module also how the goal stands on the rows it saw last
    (``train_goal``, ``train_held``, …); its lasting alarms go to the logger "setpoint", once.

    ``validation_step`` returns a mapping with "logits" and "target", and perhaps "weight" and
    "group". At the start of training the loss's ``accumulate`` is compared with the trainer's.

    Parameters
    ----------
    goal : Goal, str or Expression
    task : Task or str, optional

    Attributes
    ----------
    rule : DecisionRule or None
        Of the last validation epoch, for logits: ``rule.decide(logits)``. For probabilities, where
        the task declares them, ``Task.binary(score="probability")``.
    """

    def __init__(self, goal: Goal | Expression | str, task: Task | str | None = None) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.rule: DecisionRule | None = None
        self._rows: list[dict[str, Tensor]] = []
        self._report = LossReport(None)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse a loss that is told another number of parts than the trainer makes."""
        parts = int(trainer.accumulate_grad_batches)
        for name, module in pl_module.named_modules():
            if isinstance(module, RunningLoss):
                check_accumulation(module, parts, name or "the loss")
        losses = (module for module in pl_module.modules() if isinstance(module, GoalLoss))
        self._report = LossReport(next(losses, None))

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the rows of the last epoch."""
        self._rows = []

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Keep a batch's rows."""
        if not isinstance(outputs, dict) or not {"logits", "target"} <= set(outputs):
            raise DataError(
                'validation_step must return {"logits": …, "target": …} for GoalCallback'
            )
        batch = {k: v.detach() for k, v in outputs.items() if isinstance(v, Tensor)}
        group = outputs.get("group")
        if isinstance(group, dict):
            batch |= {f"group {name}": codes.detach() for name, codes in group.items()}
        self._rows.append(batch)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tune on the rows of all processes, and log."""
        if not self._rows or trainer.sanity_checking:
            return
        rows = {
            name: torch.cat([_gathered(pl_module, batch[name]) for batch in self._rows])
            for name in self._rows[0]
        }
        group = {
            name: rows[f"group {name}" if f"group {name}" in rows else "group"]
            for name, _ in self.task.groups
            if f"group {name}" in rows or "group" in rows
        }
        columns = scored(
            self.task,
            rows["logits"].cpu(),
            rows["target"].cpu(),
            rows.get("weight"),
            in_group_values(group, self.task),
            "probability" if self.task.score == "probability" else "logit",
        )
        self.rule = tuned_rule(self.goal, columns)
        for name, value in goal_figures(self.rule).items():
            pl_module.log(name, value, prog_bar=name == "goal")
        for name, value in self._report.figures().items():
            pl_module.log(name, value)


def _gathered(pl_module: LightningModule, rows: Tensor) -> Tensor:
    """A batch's rows of all processes, one behind the other."""
    whole: Any = pl_module.all_gather(rows)
    return whole if whole.shape == rows.shape else whole.flatten(0, 1)
