"""The door to Lightning: the exact goal on the validation rows, for callbacks to watch.

Needs the extra: ``pip install 'setpoint[lightning]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.decisions import DecisionRule, tune
from setpoint.expressions import Expression
from setpoint.goals import Goal, Task
from setpoint.training.running_loss import RunningLoss
from setpoint.training.scored_rows import in_task_labels

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

    Logged are ``goal`` (the objective at the best operating point, or a value below every feasible
    one where there is none) and ``goal_feasible``; ``EarlyStopping("goal", mode="max")`` and
    ``ModelCheckpoint(monitor="goal", mode="max")`` work with them. For goals that minimize,
    ``mode="min"``.

    ``validation_step`` returns a mapping with "logits" and "target", and perhaps "weight" and
    "group". At the start of training the loss's ``accumulate`` is compared with the trainer's.

    Parameters
    ----------
    goal : Goal, str or Expression
    task : Task or str, optional

    Attributes
    ----------
    rule : DecisionRule or None
        Of the last validation epoch, on probabilities.
    """

    def __init__(self, goal: Goal | Expression | str, task: Task | str | None = None) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.rule: DecisionRule | None = None
        self._rows: list[dict[str, Tensor]] = []

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse a loss that is told another number of parts than the trainer makes."""
        parts = int(trainer.accumulate_grad_batches)
        for name, module in pl_module.named_modules():
            if isinstance(module, RunningLoss) and module.memory and module.accumulate != parts:
                raise KindError(
                    f"the trainer accumulates {parts} batches and {name or 'the loss'} was made "
                    f"with accumulate={module.accumulate}: say GoalLoss(…, accumulate={parts})"
                )

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
        logits = rows["logits"].double().cpu()
        if self.task.kind == "multiclass":
            scores = torch.softmax(logits, 1)
        else:
            scores = torch.sigmoid(logits.squeeze(-1) if self.task.kind == "binary" else logits)
        weight = rows.get("weight")
        self.rule = tune(
            self.goal,
            in_task_labels(rows["target"].cpu(), self.task),
            scores.numpy(),
            sample_weight=None if weight is None else weight.cpu().numpy(),
            group=self._groups(rows) or None,
            task=self.task,
        )
        value = float("nan") if self.rule.value is None else self.rule.value
        low, high = self.goal.objective.interval()
        worst = low - 1 if self.goal.sign > 0 else high + 1
        shown = value if self.rule.feasible else worst
        pl_module.log("goal", shown, prog_bar=True)
        pl_module.log("goal_feasible", float(self.rule.feasible))

    def _groups(self, rows: dict[str, Tensor]) -> dict[str, np.ndarray]:
        """The group columns of the task, their codes read as the values declared for them."""
        columns = {}
        for name, values in self.task.groups:
            codes = rows.get(f"group {name}", rows.get("group"))
            if codes is not None:
                columns[name] = np.array(values)[codes.cpu().numpy()]
        return columns


def _gathered(pl_module: LightningModule, rows: Tensor) -> Tensor:
    """A batch's rows of all processes, one behind the other."""
    whole: Any = pl_module.all_gather(rows)
    return whole if whole.shape == rows.shape else whole.flatten(0, 1)
