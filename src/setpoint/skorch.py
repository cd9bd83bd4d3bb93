"""The door to skorch: the exact goal on the validation rows of a net, and its best weights.

Needs the extra: ``pip install 'setpoint[skorch]'``.
"""

from __future__ import annotations

from typing import Any

import torch

from setpoint._core.errors import DataError, KindError
from setpoint.decisions import DecisionRule
from setpoint.losses import GoalLoss
from setpoint.training.best_weights import BestWeights, EpochVerdict
from setpoint.training.scored_rows import scored
from setpoint.training.validation_rows import goal_logits
from setpoint.validation import LossReport, goal_figures, tuned_rule

try:
    from skorch.callbacks import Callback  # pyright: ignore[reportMissingImports]
    from skorch.dataset import unpack_data  # pyright: ignore[reportMissingImports]
except ImportError as error:  # an extra: the rest of the package does without
    raise ImportError("setpoint.skorch needs skorch: pip install 'setpoint[skorch]'") from error


class GoalNetCallback(Callback):
    """Tunes the goal's rule on validation rows after every epoch, and keeps the best weights.

    For ``NeuralNet(module, criterion=GoalLoss, criterion__goal="maximize …", callbacks=[…])``.
    Recorded in the history are the figures of :func:`setpoint.validation.goal_figures` (``goal``,
    ``goal_feasible``, …), ``goal_best``, and how the goal stands on the rows that the loss saw last
    (``train_held``, …). Its lasting alarms go to the logger "setpoint", once.
    ``EarlyStopping(monitor="goal", lower_is_better=False, threshold_mode="abs")``, listed behind
    it, stops early; relative thresholds go wrong where ``goal`` is negative, as while a constraint
    is broken.

    Parameters
    ----------
    load_best : bool
        Load the weights of the best epoch when training ends.

    Attributes
    ----------
    rule_ : DecisionRule or None
        For logits, ``net.forward(X)``; of the best epoch, or of the last without ``load_best``.
    """

    def __init__(self, load_best: bool = True) -> None:
        self.load_best = load_best

    def initialize(self) -> GoalNetCallback:
        """Forget the last fit."""
        self.rule_: DecisionRule | None = None
        self.best_ = BestWeights()
        self.report_: LossReport | None = None
        return self

    def on_epoch_end(
        self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        """Tune, record, and keep the weights if they are the best."""
        loss = net.criterion_
        if not isinstance(loss, GoalLoss):
            raise KindError(
                f"the net's criterion is {type(loss).__name__}; say criterion=setpoint.GoalLoss, "
                'criterion__goal="maximize …"'
            )
        if dataset_valid is None:
            raise DataError("the net has no validation rows; leave train_split on, or give one")
        if self.report_ is None:
            self.report_ = LossReport(loss)
        rule = self._tuned(net, loss, dataset_valid)
        figures = goal_figures(rule)
        verdict = EpochVerdict((figures["goal"] * loss.goal.sign,))
        best = self.best_.offer(net.module_, len(net.history), verdict)
        if best or not self.load_best:
            self.rule_ = rule
        for name, value in {**figures, **self.report_.figures()}.items():
            net.history.record(name, value)
        net.history.record("goal_best", best)

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Load the best weights."""
        if self.load_best:
            self.best_.restore(net.module_)

    def _tuned(self, net: Any, loss: GoalLoss, rows: Any) -> DecisionRule:
        """The rule on these rows; random numbers stay as they are."""
        logits, targets = [], []
        with torch.random.fork_rng():
            for batch in net.get_iterator(rows, training=False):
                outputs = net.evaluation_step(batch)
                outputs = outputs[0] if isinstance(outputs, tuple) else outputs
                logits.append(goal_logits(outputs, loss.task).cpu())
                targets.append(torch.as_tensor(unpack_data(batch)[1]).cpu())
        target = torch.cat(targets)
        columns = scored(loss.task, torch.cat(logits), target, None, None, "logit")
        return tuned_rule(loss.goal, columns)
