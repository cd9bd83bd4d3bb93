"""Networks under a goal: from rows to trained weights, by the phases that the method states.

A phase starts from the network as it was built, or from a run of cross-entropy, whose best
threshold may become ½ first; it goes through batches, or settles its solution over all rows at
once. Every epoch is judged by the goal on the tune rows, and the best one is kept, be it of
cross-entropy. Of several phases the best one is kept.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import GoalError, KindError
from setpoint.expressions import Columns
from setpoint.fit.network.exact_run import fit_exact
from setpoint.fit.network.exact_verdict import Verdict
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import CrossEntropy, Method
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.exact.exact import Exact
from setpoint.methods.implicit.threshold_search import search_slots
from setpoint.methods.method import LabelledOutputs, ready
from setpoint.methods.training_hints import FitSize, Phase, Start
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.one_threshold import best_threshold, quick_point
from setpoint.solvers import FirstOrder
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.best_weights import EpochVerdict
from setpoint.training.checkpoint import digest
from setpoint.training.distributed import rank, world_size
from setpoint.training.events import Listener
from setpoint.training.loop import Trained, TrainingPlan, train
from setpoint.training.scored_rows import entropy, scored
from setpoint.training.validation_rows import evaluate_outputs
from setpoint.validation import goal_verdict

# The goal at a threshold for each group, read quickly: by it a network in training is judged.


STEP = 0.01  #: how far beyond the outermost probabilities the outer candidates lie


def point_by_group(
    goal: Goal, columns: Columns, task: Task, by: str, codes: Mapping[str, Tensor]
) -> Point:
    """What the goal reads at the best thresholds of a coarse mesh, one for each group.

    Parameters
    ----------
    goal : Goal
    columns : Columns
        With scores, on the host.
    task : Task
        With the values of its group columns.
    by : str
        The column that thresholds differ by.
    codes : mapping of str to torch.Tensor
        The code of each row in each group column.
    """
    goal, cells = goal.lowered, Cells(task)
    at = [name for name, _ in task.groups].index(by)
    values = dict(task.groups)[by]
    slot = np.repeat([values.index(group[at]) for group in cells.groups], 2)
    scores = np.asarray(columns.scores)
    code = np.zeros(len(scores), int)
    for name, several in task.groups:
        code = code * len(several) + codes[name].cpu().numpy()
    place = 2 * code + np.asarray(columns.actual)
    weight = np.ones(len(code)) if columns.weight is None else np.asarray(columns.weight)
    cuts, *_ = search_slots(Lowered(goal, cells), slot, scores, place, weight, STEP)
    known = replace(columns, task=replace(columns.task, groups=task.groups))
    decided = scores >= cuts[slot[place]]
    return GoalOnRows.meet(goal, known).judge(replace(known, decided=decided))


# The size of batches, from how many rows each class has.


def batch_size(target: Tensor, task: Task) -> int:
    """A sixteenth of the rows between 32 and 1024, and enough for ten of the rarest class."""
    n = len(target)
    size = min(max(n // 16, 32), 1024)
    if task.kind == "binary":
        rarest = float(min(target.float().mean(), 1 - target.float().mean()))
    elif task.kind == "multiclass":
        counts = torch.bincount(target.long(), minlength=len(task.classes or ()))
        rarest = float(counts[counts > 0].min()) / n
    else:
        rarest = float(target.float().mean(0).clamp(min=1 / n).min())
    return max(1, min(n, max(size, min(int(10 / max(rarest, 1e-9)), 4096))))


@dataclass(frozen=True, eq=False)
class NetworkSettings:
    """How networks are trained; None is chosen by the method and the number of rows."""

    epochs: int = 100
    steps: int | None = None  #: about so many steps instead, fewer from 10,000 rows on
    patience: int = 15
    batch_size: int | None = None
    learning_rate: float | None = None
    pace: float = 1.0  #: factor of the default learning rate
    weight_decay: float = 1e-4
    final: float = 1.0  #: share of the learning rate that is left at the last epoch
    by: str = "goal"  #: what the best epoch is judged by, "goal" or "cross-entropy"
    seed: int = 0
    checkpoint: str | os.PathLike[str] | None = None
    listener: Listener | None = None


@dataclass(frozen=True, eq=False)
class TensorRows:
    """The rows of one job, as tensors, with their labels in the task's own terms."""

    inputs: Tensor
    target: Tensor
    weight: Tensor | None = None
    codes: dict[str, Tensor] = field(default_factory=dict)
    groups: dict[str, np.ndarray] = field(default_factory=dict)

    def rows(self) -> TrainingRows:
        """For batches."""
        return TrainingRows(self.inputs, self.target, self.weight, self.codes or None)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how it came about."""

    model: nn.Module
    history: list[dict[str, Any]]
    runs: tuple[Trained, ...]
    notes: tuple[str, ...]
    loss: GoalLoss
    finished: bool
    verdict: Verdict | None = None  #: on the exact problem, where it was solved


def fit_network(
    goal: Goal,
    task: Task,
    method: Method,
    build: Callable[[], nn.Module],
    rows: TensorRows,
    tune: TensorRows,
    settings: NetworkSettings,
) -> Fitted:
    """Train a network on a goal by a method, judged after every epoch on the tune rows."""
    fit = _NetworkFit(goal, task, build, rows, tune, settings, method.threshold_group)
    phases = method.schedule(goal, task, fit.fit_size())
    for phase in phases:  # what cannot be trained is refused before anything is
        if phase.on_all_rows:
            ready(phase.method, goal, task)
            continue
        why = phase.method.refusal(goal, task)
        if why is not None:
            raise GoalError(why)
    return fit.best_of(phases)


class _NetworkFit:
    """What the runs of one fit share."""

    def __init__(
        self,
        goal: Goal,
        task: Task,
        build: Callable[[], nn.Module],
        rows: TensorRows,
        tune: TensorRows,
        settings: NetworkSettings,
        threshold_group: str | None,
    ) -> None:
        self.goal, self.task, self.build = goal, task, build
        self.rows, self.tune, self.settings = rows, tune, settings
        self.threshold_group = threshold_group
        self.size = settings.batch_size or batch_size(rows.target, task)
        self.batches = InMemory(rows.rows(), self.size, (rank(), world_size()))
        if settings.steps is not None:
            steps = min(settings.steps, max(600, 15_000_000 // max(len(rows.target), 1)))
            epochs = max(4, round(steps / max(1, self.batches.count())))
            self.settings = replace(settings, epochs=epochs)

    def fit_size(self) -> FitSize:
        """The size of the fit, by which a method chooses its phases."""
        target = self.rows.target
        if self.task.kind == "multilabel":
            counts = target.sum(0)
        else:
            width = 2 if self.task.kind == "binary" else len(self.task.classes or ())
            counts = torch.bincount(target.long(), minlength=width)
        return FitSize(
            rows=len(target),
            tune_rows=len(self.tune.target),
            class_rows=tuple(int(n) for n in counts),
            steps=self.settings.epochs * self.batches.count(),
            tabular=self.rows.inputs.ndim == 2,
            processes=world_size(),
        )

    def best_of(self, phases: tuple[Phase, ...]) -> Fitted:
        """Go through the phases; the best on the tune rows, the first of several as good."""
        tried: list[tuple[Phase, Fitted]] = []
        for phase in phases:
            fitted = self.fresh(phase) if phase.hints.start is Start.FRESH else self.second(phase)
            tried.append((phase, fitted))
            if not fitted.finished:
                break
        if len(tried) == 1:
            return tried[0][1]
        phase, best = max(tried, key=lambda pair: _rank(pair[1].runs[-1]))
        return replace(
            best,
            history=[row for _, fitted in tried for row in fitted.history],
            runs=tuple(run for _, fitted in tried for run in fitted.runs),
            notes=(*best.notes, *([phase.note] if phase.note else [])),
            finished=all(fitted.finished for _, fitted in tried),
        )

    def fresh(self, phase: Phase) -> Fitted:
        """One run from the network as it was built."""
        model, loss, run = self.run(self.build(), phase, self._rate(phase))
        notes = ()
        if run.best_epoch < loss.warmup // self.batches.count() and loss.warmup > 1:
            notes = (
                f"{phase.name} was no better than its warm-up of cross-entropy, which is kept",
            )
        return Fitted(model, run.history, (run,), notes, loss, run.finished)

    def second(self, phase: Phase) -> Fitted:
        """Cross-entropy first; where it ends the phase starts."""
        entropy = CrossEntropy()
        before = Phase(method=entropy, name=entropy.name, hints=entropy.hints)
        model, loss, first = self.run(self.build(), before, self._rate(before))
        if not first.finished:
            return Fitted(model, first.history, (first,), (), loss, False)
        if phase.on_all_rows:
            return self._on_all_rows(phase, model, loss, first)
        plain, notes = copy.deepcopy(model.state_dict()), ()
        if phase.hints.half_threshold:
            threshold = self._threshold(model)
            if threshold is not None and self._shifted(model, threshold):
                notes = (f"the threshold of cross-entropy, {threshold:.3g}, was made ½",)
                outputs = self._tune_outputs(model)
                settled = phase.method.at_threshold(self.goal, self.task, outputs, threshold)
                phase = replace(phase, method=settled)
        rate = self._rate(phase) / phase.hints.rate_divisor
        model, loss, second = self.run(model, phase, rate, first, plain)
        kept = first.verdict is not None and second.verdict is not None
        if kept and second.verdict.rank <= first.verdict.rank:  # type: ignore[union-attr]
            what = f'method="{phase.name}" was no better on the tune rows'
            notes += (f"{what}: cross-entropy's weights are kept",)
        history = first.history + second.history
        return Fitted(model, history, (first, second), notes, loss, second.finished)

    def _on_all_rows(
        self, phase: Phase, model: nn.Module, loss: GoalLoss, first: Trained
    ) -> Fitted:
        """The problem over all rows at once, from where cross-entropy ended."""
        rows, tune, settings = self.rows, self.tune, self.settings
        solved = fit_exact(
            self.goal,
            model,
            rows.inputs,
            rows.target,
            task=self.task,
            weight=rows.weight,
            group=rows.codes or None,
            tune=(tune.inputs, tune.target, tune.weight, tune.codes or None),
            method=cast("Exact", phase.method),  # the only one with such phases
            judge=lambda model: self.judge(model).rank,
            seed=settings.seed,
            listener=settings.listener,
            checkpoint=self._place(phase.name),
            fingerprint=self._fingerprint(phase.method, 0.0, model),
        )
        notes = (f'method="{phase.name}": {solved.verdict.brief()}',)
        history = first.history + solved.history
        return Fitted(model, history, (first,), notes, loss, solved.finished, solved.verdict)

    def run(
        self,
        model: nn.Module,
        phase: Phase,
        rate: float,
        before: Trained | None = None,
        fallback: Any = None,
    ) -> tuple[nn.Module, GoalLoss, Trained]:
        """Train a model; with ``before``, only what is better is kept, else ``fallback``."""
        settings, hints = self.settings, phase.hints
        start = fallback or copy.deepcopy(model.state_dict())
        warm = int(hints.warmup * settings.epochs)
        loss = GoalLoss(
            self.goal,
            phase.method,
            task=self.task,
            warmup=max(1, warm * self.batches.count()),
            memory=hints.memory,
            guard=False,  # its batches are large, and it keeps the best of its epochs
        )
        loss.to(self.rows.inputs.device)
        plan = TrainingPlan(
            solver=FirstOrder(rate, weight_decay=settings.weight_decay, final=settings.final),
            epochs=settings.epochs,
            patience=settings.patience,
            waits=max(warm, int(hints.hardening * settings.epochs)),
            seed=settings.seed,
            phase=phase.name,
            checkpoint=self._place(phase.name),
            fingerprint=self._fingerprint(phase.method, rate, model),
        )
        run = train(model, loss, self.batches, plan, self.judge, settings.listener)
        known = None if before is None or before.verdict is None else before.verdict.rank
        if known is not None and (run.verdict is None or run.verdict.rank <= known):
            model.load_state_dict(start)
        return model, loss, run

    # --- judging ---------------------------------------------------------------------------------

    def judge(self, model: nn.Module) -> EpochVerdict:
        """The goal on the tune rows at the best operating point; ties by cross-entropy."""
        outputs = evaluate_outputs(model, self.tune.inputs)
        tie = entropy(outputs, self.tune.target, self.tune.weight, self.task)
        if self.settings.by == "cross-entropy":
            return EpochVerdict((-tie,), {"cross_entropy": tie})
        columns = self._columns(outputs)
        point = (
            quick_point(self.goal, columns)
            if self.threshold_group is None
            else point_by_group(
                self.goal, columns, self.task, self.threshold_group, self.tune.codes
            )
        )
        return goal_verdict(point, self.goal, "cross_entropy", tie)

    def _columns(self, outputs: Tensor) -> Any:
        tune = self.tune
        return scored(self.task, outputs, tune.target, tune.weight, tune.groups)

    def _threshold(self, model: nn.Module) -> float | None:
        """The best threshold of a binary task on the tune rows, if it is one."""
        if self.task.kind != "binary":
            return None
        columns = self._columns(evaluate_outputs(model, self.tune.inputs))
        _, threshold = best_threshold(GoalOnRows.meet(self.goal, columns))
        return threshold if 1e-4 < threshold < 1 - 1e-4 else None

    def _shifted(self, model: nn.Module, threshold: float) -> bool:
        """Make a threshold ½ by the last bias; undone where that does not move every output so."""
        by, state = -math.log(threshold / (1 - threshold)), copy.deepcopy(model.state_dict())
        before = evaluate_outputs(model, self.tune.inputs)
        if not shift(model, by):
            return False
        moved = evaluate_outputs(model, self.tune.inputs) - before
        if float((moved - by).abs().max()) <= 1e-3 * (1 + abs(by)):
            return True
        model.load_state_dict(state)
        return False

    def _tune_outputs(self, model: nn.Module) -> LabelledOutputs:
        """The model's outputs on the tune rows, on the host."""
        tune = self.tune
        return LabelledOutputs(
            evaluate_outputs(model, tune.inputs).cpu(),
            tune.target.cpu(),
            None if tune.weight is None else tune.weight.cpu(),
            {name: code.cpu() for name, code in tune.codes.items()} or None,
        )

    # --- settings --------------------------------------------------------------------------------

    def _rate(self, phase: Phase) -> float:
        if self.settings.learning_rate is not None:
            return self.settings.learning_rate
        return phase.hints.learning_rate * self.settings.pace

    def _place(self, phase: str) -> Path | None:
        if self.settings.checkpoint is None:
            return None
        name = "".join(c if c.isalnum() else "-" for c in phase)
        folder = Path(self.settings.checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.safetensors"

    def _fingerprint(self, method: Method, rate: float, model: nn.Module) -> str:
        """What a checkpoint must agree in to be taken up: rows, goal, model, every setting."""
        settings = replace(self.settings, checkpoint=None, listener=None)
        plain = {f.name: getattr(settings, f.name) for f in fields(settings)}
        parts = [str(self.goal), str(self.task.to_json()), repr(method), f"{rate:.6g}"]
        parts += [str(self.size), repr(plain), repr(model)]
        tensors = [x for x in model.state_dict().values() if isinstance(x, Tensor)]
        for part in (self.rows, self.tune):
            tensors += [part.inputs, part.target, part.weight, *part.codes.values()]
        return digest(parts, tensors)


def _rank(run: Trained) -> tuple[float, ...]:
    return run.verdict.rank if run.verdict else ()


def shift(model: nn.Module, by: float) -> bool:
    """Add to the output of a network's last linear layer; False where it has none."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1]
    if not layers or layers[-1].bias is None:
        return False
    with torch.no_grad():
        layers[-1].bias.add_(by)
    return True


def device_of(name: str) -> torch.device:
    """A device by name; "auto" is the first GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise KindError(
            f'device={name!r} cannot be used here ({error}): "auto", "cpu", "cuda" or "cuda:0"'
        ) from error
    return device
