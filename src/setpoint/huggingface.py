"""The door to Hugging Face Trainer: a goal as its loss, its metric and its best checkpoint.

Needs the extra: ``pip install 'setpoint[huggingface]'``.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.decisions import DecisionRule
from setpoint.losses import GoalLoss
from setpoint.training.checkpoint import load_state, save_state
from setpoint.training.scored_rows import scored
from setpoint.training.validation_rows import goal_logits
from setpoint.validation import LossReport, check_accumulation, goal_figures, tuned_rule

try:
    from transformers import TrainerCallback  # pyright: ignore[reportMissingImports]
except ImportError as error:  # an extra: the rest of the package does without
    raise ImportError(
        "setpoint.huggingface needs transformers: pip install 'setpoint[huggingface]'"
    ) from error

if TYPE_CHECKING:
    from transformers import (  # pyright: ignore[reportMissingImports]
        EvalPrediction,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )

logger = logging.getLogger("setpoint")

FILE = "goal_loss.safetensors"  #: the loss's totals and prices, in each checkpoint of the trainer


class GoalTrainerCallback(TrainerCallback):
    """A goal in a ``Trainer``: pass it as loss, as metric and as callback.

    ``Trainer(…, compute_loss_func=goal.compute_loss, compute_metrics=goal.compute_metrics,
    callbacks=[goal])``. Evaluation logs ``eval_goal`` and what else
    :func:`setpoint.validation.goal_figures` gives, and how the goal stands on the rows that the
    loss saw last (``eval_train_held``, …); lasting alarms of the loss go to the logger
    "setpoint", once. ``TrainingArguments(metric_for_best_model="goal", greater_is_better=True,
    load_best_model_at_end=True)`` keeps the best checkpoint; for goals that minimize,
    ``greater_is_better=False``. Checkpoints hold the state of the loss, which a resumed run takes
    up.

    Of a binary task the model may have one output or two. With several processes say
    ``average_tokens_across_devices=False``: the loss is averaged over rows, not tokens.

    Parameters
    ----------
    loss : GoalLoss

    Attributes
    ----------
    rule : DecisionRule or None
        Of the last evaluation, for logits (of a binary task with two outputs, for their
        difference); after training with ``load_best_model_at_end`` that of the best checkpoint.
    """

    def __init__(self, loss: GoalLoss) -> None:
        if loss.task.kind in ("ranking", "regression"):
            raise KindError(
                f"GoalTrainerCallback takes goals on decisions, not of a {loss.task.kind} task"
            )
        if loss.task.groups:
            raise KindError(
                "the Trainer hands labels to a loss and no groups; train a goal by group in a loop "
                "of your own, with sp.GoalKeeper"
            )
        self.loss = loss
        self.rule: DecisionRule | None = None
        self._report = LossReport(loss)
        self._parts = 1
        self._rules: dict[int, DecisionRule | None] = {}

    def compute_loss(
        self, outputs: Any, labels: Tensor | None, num_items_in_batch: Any = None
    ) -> Tensor:
        """The loss of a batch; for ``compute_loss_func``."""
        del num_items_in_batch
        if labels is None:
            raise DataError('the batches have no "labels": name the column of the targets so')
        value = self.loss(goal_logits(outputs, self.loss.task), labels)
        # the Trainer leaves the division to a loss of one's own
        return value / self._parts if torch.is_grad_enabled() else value

    def compute_metrics(self, prediction: EvalPrediction) -> dict[str, float]:
        """The exact goal on the evaluation rows; for ``compute_metrics``."""
        logits, labels = (
            torch.as_tensor(x[0] if isinstance(x, tuple) else x)
            for x in (prediction.predictions, prediction.label_ids)
        )
        task = self.loss.task
        columns = scored(task, goal_logits(logits, task), labels, None, None, "logit")
        self.rule = tuned_rule(self.loss.goal, columns)
        return {**goal_figures(self.rule), **self._report.figures()}

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Check the loss against the trainer's settings; take up the loss of a resumed run."""
        check_accumulation(self.loss, args.gradient_accumulation_steps)
        if args.n_gpu > 1 or (args.world_size > 1 and args.average_tokens_across_devices):
            raise KindError(
                "the Trainer would multiply the loss by the number of devices; start one process "
                "for each (torchrun), with average_tokens_across_devices=False"
            )
        self._parts = args.gradient_accumulation_steps
        self.loss.to(args.device)
        if not state.global_step:
            return
        path = self._path(args, state)
        if path.exists():
            self.loss.load_state_dict(load_state(path))
        else:
            logger.warning("the loss starts anew: the resumed checkpoint has no %s", path)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Note which rule belongs to which weights."""
        self._rules[state.global_step] = self.rule

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Write the loss's state beside the checkpoint."""
        whole = self.loss.whole_state()
        if state.is_world_process_zero:
            save_state(self._path(args, state), whole)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Take the rule of the best checkpoint, where its weights are loaded."""
        best = getattr(state, "best_global_step", None)
        if args.load_best_model_at_end and best is not None:
            self.rule = self._rules.get(best)

    @staticmethod
    def _path(args: TrainingArguments, state: TrainerState) -> Path:
        return Path(args.output_dir or ".") / f"checkpoint-{state.global_step}" / FILE
