"""The door to validation rows: the best weights by the exact goal, and figures for any trainer."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint._core.errors import FileError, KindError
from setpoint._core.options import whole
from setpoint.decisions import DecisionRule
from setpoint.decisions.tune import tune_columns
from setpoint.expressions import Columns, Expression, take_in
from setpoint.goals import Goal, Task, check
from setpoint.losses import GoalLoss
from setpoint.methods.guard.loss_status import LossStatus
from setpoint.rules.goal_on_rows import GoalOnRows, Point, refuse_one_class
from setpoint.rules.one_threshold import quick_point
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for
from setpoint.training.best_weights import BestWeights, EpochVerdict
from setpoint.training.distributed import agreed
from setpoint.training.running_loss import RunningLoss
from setpoint.training.scored_rows import entropy, in_group_values, scored
from setpoint.training.validation_rows import Forward, ValidationRows

logger = logging.getLogger("setpoint")

PATIENCE = 15  #: evaluations without a better one; as many as the epochs that the estimator waits
#: what a trainer is shown in place of an endless worst value, which its float32 can hold
FARTHEST = 1e30


# What a model is ranked by, for loops of ours and of others.


def goal_verdict(point: Point, goal: Goal, name: str, tie: float) -> EpochVerdict:
    """What a point is worth: a kept constraint first, then the objective, then the lower ``tie``.

    Of points that break a constraint the one that breaks it least is best.
    """
    feasible, excess, merit = point.rank(goal.sign)
    shown = {"tune": point.value, "feasible": point.feasible, name: tie}
    return EpochVerdict((float(feasible), excess, merit, -tie), shown)


def tuned_rule(
    goal: Goal, columns: Columns, kind: str | None = None, by: str | None = None
) -> DecisionRule:
    """The goal's rule on validation rows that are checked and on the host."""
    refuse_one_class(columns)
    return tune_columns(
        goal, columns, RuleSearch(rule=kind_for(goal, columns.task.kind, kind), by=by)
    )


def goal_figures(rule: DecisionRule) -> dict[str, float]:
    """What a trainer logs of a rule on validation rows.

    ``goal`` is one number for early stopping and checkpoints: the objective where every constraint
    holds. Where one is broken it lies beyond every feasible value, the further the more is broken.
    ``goal_feasible`` is 0 or 1, ``goal_constraint_1`` the left side of the first constraint.
    """
    value = math.nan if rule.value is None else rule.value
    figures = {"goal": value, "goal_feasible": float(rule.feasible)}
    if not rule.feasible:
        low, high = rule.goal.objective.interval()
        broken = 1.0 if rule.value is None else max((h.short for h in rule.held), default=1.0)
        worst = low - min(broken, 1.0) if rule.goal.sign > 0 else high + min(broken, 1.0)
        figures["goal"] = min(max(worst, -FARTHEST), FARTHEST)
    for j, standing in enumerate(rule.held, 1):
        figures[f"goal_constraint_{j}"] = math.nan if standing.value is None else standing.value
    return figures


def check_accumulation(loss: RunningLoss, parts: int, name: str = "the loss") -> None:
    """Refuse a loss that is told another number of parts than the trainer makes."""
    if loss.memory and loss.accumulate != parts:
        raise KindError(
            f"the trainer accumulates {parts} batches and {name} was made with "
            f"accumulate={loss.accumulate}: say GoalLoss(…, accumulate={parts})"
        )


class LossReport:
    """What a trainer logs of a loss; an alarm that lasts goes to the logger once.

    Lasting is to stand at two reports running: most of those of the first epoch pass.

    Parameters
    ----------
    loss : GoalLoss or None
    """

    def __init__(self, loss: GoalLoss | None) -> None:
        self.loss = loss
        self.told: list[str] = []
        self.standing: list[str] = []  # alarms of the last report

    def figures(self) -> dict[str, float]:
        """How the goal stands on the rows seen last; empty where the loss keeps no such rows.

        ``train_goal``, ``train_held`` (0 or 1), ``train_decided`` (a share), ``train_threshold`` of
        the logit, and for each constraint ``train_constraint_1`` and ``train_price_1``.
        """
        status = self._status()
        if status is None or status.objective is None:
            return {}
        for note in status.alarms:
            if note.code in self.standing and note.code not in self.told:
                self.told.append(str(note.code))
                logger.warning(note.text)
        self.standing = [str(note.code) for note in status.alarms]
        figures = {
            "train_goal": status.objective.value,
            "train_held": float(status.held),
            "train_decided": status.decided,
            "train_threshold": status.threshold,
        }
        for j, constraint in enumerate(status.constraints, 1):
            figures[f"train_constraint_{j}"] = constraint.value
            figures[f"train_price_{j}"] = constraint.price
        return figures

    def _status(self) -> LossStatus | None:
        try:
            return None if self.loss is None else self.loss.status()
        except KindError:  # several classes, groups, rankings: no window of recent rows
            return None


# The keeper of a plain loop.


@dataclass(frozen=True, kw_only=True)
class GoalCheck:
    """The goal on the validation rows at one moment.

    Attributes
    ----------
    step : int
        Calls of ``GoalKeeper.step`` so far.
    objective : str
    value : float or None
        Of the objective at the best operating point; None where it is an empty rate, or where the
        model's outputs are not finite.
    feasible : bool
        Whether every constraint holds there.
    constraints : dict of str to float or None
        The left side of each constraint.
    best : bool
        Whether these weights are the best so far, and were kept.
    """

    step: int
    objective: str
    value: float | None
    feasible: bool
    constraints: dict[str, float | None]
    best: bool

    def __str__(self) -> str:
        value = "empty" if self.value is None else f"{self.value:.4g}"
        sides = "".join(
            f", {text} ({'empty' if side is None else f'{side:.4g}'})"
            for text, side in self.constraints.items()
        )
        word = "" if self.feasible else ", not feasible"
        best = ", best so far" if self.best else ""
        return f"step {self.step:,}: {self.objective} {value}{sides}{word}{best}"


class GoalKeeper:
    """Keeps the best weights of a plain loop, by the exact goal on validation rows.

    Call :meth:`step` once an epoch, or after every optimiser step with ``every=200`` or so. Weights
    that keep every constraint beat weights that do not. Among the first the objective decides,
    among the others the smallest violation; ties go to the lower cross-entropy. An evaluation
    changes nothing else: the mode of each module, random numbers and the loss stay as they are.

    Weights and rule are chosen on the same validation rows, so the figures there are optimistic:
    prove the rule on fresh rows with :func:`setpoint.certify`.

    Parameters
    ----------
    model : torch.nn.Module
    loss : GoalLoss, Goal or str
        Whose goal and task are judged; of a goal alone, say the task.
    X_val : Tensor, tuple or dict of Tensor, or DataLoader
        Called as ``model(x)``, ``model(*x)`` or ``model(**x)``. A loader gives ``(inputs, target)``
        or dicts with "labels"; then leave ``y_val`` out.
    y_val : Tensor, optional
        Targets as the loss takes them.
    group, weight : optional
        Of the validation rows, as the loss takes them.
    task : Task or str, optional
        Where ``loss`` is a goal.
    kind, by : str, optional
        The kind of rule, as of :func:`setpoint.tune`.
    every : int
        Calls of :meth:`step` from one evaluation to the next.
    patience : int
        Evaluations without a better one until :attr:`stop` is True.
    batch_size : int
        Rows that go through the model at a time.
    device : torch.device or str, optional
        Where the best weights are kept: "cpu" spares the memory of a GPU. That of the model by
        default.
    forward : callable, optional
        ``forward(model, inputs)`` gives the logits of a batch, where ``model(inputs)`` does not.

    Attributes
    ----------
    rule : DecisionRule or None
        For logits; made by :meth:`finish`. None before, and for goals that no threshold can change.
    history : list of GoalCheck
        Every evaluation.

    Examples
    --------
    >>> import torch, setpoint as sp
    >>> x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    >>> y = (x.sum(1) > 1).long()
    >>> model = torch.nn.Linear(3, 1)
    >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.9")
    >>> optimiser = torch.optim.Adam(model.parameters(), 0.1)
    >>> keeper = sp.GoalKeeper(model, loss, x[300:], y[300:])
    >>> for _ in range(20):
    ...     optimiser.zero_grad()
    ...     loss(model(x[:300]), y[:300]).backward()
    ...     optimiser.step()
    ...     check = keeper.step()
    ...     if keeper.stop:
    ...         break
    >>> rule = keeper.finish()
    >>> rule.feasible, rule.task.score
    (True, 'logit')
    """

    def __init__(
        self,
        model: nn.Module,
        loss: GoalLoss | Goal | Expression | str,
        X_val: Any,
        y_val: Any = None,
        *,
        group: Any = None,
        weight: Any = None,
        task: Task | str | None = None,
        kind: str | None = None,
        by: str | None = None,
        every: int = 1,
        patience: int = PATIENCE,
        batch_size: int = 1024,
        device: torch.device | str | None = None,
        forward: Forward | None = None,
    ) -> None:
        if isinstance(loss, GoalLoss):
            if task is not None:
                raise KindError("the loss has a task already; leave task= out")
            self.goal, self.task, group_by = loss.goal, loss.task, loss.method.threshold_group
        else:
            self.goal, self.task, group_by = Goal.of(loss), Task.make(task), None
        check(self.goal, self.task)
        if self.task.kind == "ranking":
            raise KindError(
                f'"{self.goal}" is about rankings by query, which GoalKeeper does not evaluate; '
                "use sp.GoalClassifier, or keep weights by a metric of your own"
            )
        self.model = model.module if isinstance(model, DistributedDataParallel) else model
        self.kind, self.by = kind, by
        if kind is None and group_by is not None:  # the method trained thresholds for each group
            self.kind, self.by = "per-group", group_by
        self.every = whole("every", every, 1, error=KindError)
        self.patience = whole("patience", patience, 1, error=KindError)
        self._rows = ValidationRows(
            X_val,
            y_val,
            weight=weight,
            group=group,
            batch_size=whole("batch_size", batch_size, 1, error=KindError),
            forward=forward,
        )
        self._report = LossReport(loss if isinstance(loss, GoalLoss) else None)
        self._best = BestWeights(device)
        self._calls = 0
        self._stale = False  # calls since the last evaluation
        self.history: list[GoalCheck] = []
        self.rule: DecisionRule | None = None

    @property
    def stop(self) -> bool:
        """Whether ``patience`` evaluations have passed without a better one."""
        places = [i for i, check in enumerate(self.history) if check.best]
        return len(self.history) - 1 - (places[-1] if places else -1) >= self.patience

    @property
    def best(self) -> GoalCheck | None:
        """The evaluation of the best weights."""
        return next((check for check in reversed(self.history) if check.best), None)

    def step(self) -> GoalCheck | None:
        """Note that the model was trained on; every so often evaluate it and keep the best weights.

        Returns
        -------
        GoalCheck or None
            None where it was not yet time to evaluate.
        """
        self._calls += 1
        self._stale = True
        return self._evaluate() if self._calls % self.every == 0 else None

    def restore(self) -> nn.Module:
        """Load the best weights into the model, and give it back."""
        if self._best.state is None:
            raise KindError(
                "GoalKeeper has kept no weights yet: no evaluation gave finite outputs; call "
                "keeper.step() after each epoch"
            )
        self._best.restore(self.model)
        return self.model

    def finish(self) -> DecisionRule | None:
        """Load the best weights into the model, and tune its rule, for logits.

        What was trained since the last evaluation is evaluated first.

        Returns
        -------
        DecisionRule or None
            Kept as :attr:`rule`. None for goals on scores alone (auroc) and of regression, which
            have no operating point.
        """
        if self._stale:
            self._evaluate()
        self.restore()
        if self._has_rule:
            columns = self._columns(*self._rows.outputs(self.model, self.task))
            self.rule = tuned_rule(self.goal, columns, self.kind, self.by)
        return self.rule

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to end in the same bits, the best weights included."""
        return {
            "goal": str(self.goal),
            "calls": self._calls,
            "stale": self._stale,
            "best": self._best.state,
            "alarms": [list(self._report.told), list(self._report.standing)],
            "history": [{**vars(check)} for check in self.history],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`state_dict` gave."""
        if not isinstance(state, dict) or "goal" not in state or "history" not in state:
            raise FileError("this is not the state of a GoalKeeper: pass keeper.state_dict()")
        if state["goal"] != str(self.goal):
            raise FileError(
                f'this state was kept for "{state["goal"]}", and the goal is "{self.goal}"; start '
                "with a new GoalKeeper"
            )
        self._calls, self._stale = int(state["calls"]), bool(state["stale"])
        self._best.state = state["best"]
        self._report.told, self._report.standing = map(list, state["alarms"])
        self.history = [GoalCheck(**check) for check in state["history"]]

    # --- evaluating ------------------------------------------------------------------------------

    @property
    def _searched(self) -> bool:
        """Whether a rule has to be searched to see what the goal reads at its best."""
        if self.task.kind == "regression":
            return False
        return self.kind is not None or kind_for(self.goal, self.task.kind).asked_by(self.goal)

    @property
    def _has_rule(self) -> bool:
        """Whether a rule turns scores into decisions for this goal."""
        alone = self.goal.lowered.objective.needs() <= {"scores"} and not self.goal.constraints
        return self.task.kind != "regression" and (self._searched or not alone)

    def _evaluate(self) -> GoalCheck:
        self._stale = False
        # processes that evaluate the same rows may round otherwise: all follow the first
        point, tie = agreed(self._point())
        constraints = self.goal.lowered.constraints
        better, sides = False, (None,) * len(constraints)
        if point is not None:
            sides = point.sides
            better = self._best.offer(
                self.model, self._calls, goal_verdict(point, self.goal, "tie", tie)
            )
        result = GoalCheck(
            step=self._calls,
            objective=str(self.goal.objective),
            value=None if point is None else point.value,
            feasible=point is not None and point.feasible,
            constraints=dict(zip(map(str, constraints), sides, strict=False)),
            best=better,
        )
        self.history.append(result)
        logger.info("%s", result)
        self._report.figures()  # for its alarms
        return result

    def _point(self) -> tuple[Point | None, float]:
        """What the goal reads at its best operating point, and cross-entropy or squared error."""
        logits, target = self._rows.outputs(self.model, self.task)
        if not bool(logits.isfinite().all()):
            logger.warning(
                "the model's outputs on the validation rows are not finite (step %d): these "
                "weights are not kept; lower the learning rate",
                self._calls,
            )
            return None, math.nan
        columns = self._columns(logits, target)
        if self.task.kind == "regression":
            errors = (logits.double() - target.double()) ** 2
            point = GoalOnRows.ground(self.goal.lowered, columns).judge(columns)
            return point, float(errors.mean())
        weight = None if self._rows.weight is None else self._rows.weight.cpu()
        tie = entropy(logits, target, weight, self.task)
        if not self._searched:  # several classes by argmax, since their offsets take long
            return quick_point(self.goal, columns), tie
        rule = kind_for(self.goal, self.task.kind, self.kind)
        best = rule.search(self.goal, columns, RuleSearch(rule=rule, by=self.by))
        decided = best.rule.decided_columns(columns)
        return GoalOnRows.ground(best.goal, columns).judge(decided), tie

    def _columns(self, outputs: Tensor, target: Tensor) -> Columns:
        """The validation rows with these outputs."""
        rows, group = self._rows, in_group_values(self._rows.group, self.task)
        if self.task.kind != "regression":
            return scored(self.task, outputs, target, rows.weight, group, "logit")
        weight = None if rows.weight is None else rows.weight.cpu().numpy()
        columns = take_in(
            self.task, target, decisions=outputs, sample_weight=weight, group=group or None
        )
        return columns.on_host()
