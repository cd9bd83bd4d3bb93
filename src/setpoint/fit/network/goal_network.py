"""Networks under a goal: from rows to trained weights.

cross-entropy   one run, or one per class weight, judged on the tune rows
soft-set        one run; several classes start with a quarter of cross-entropy
lagrangian      the same
costs           a run of cross-entropy, its threshold made ½ and its multipliers settled; then costs
implicit        a run of cross-entropy, then on thresholds that follow the scores; the better kept
exact           a run of cross-entropy, then all rows at once; of many rows, as for costs
pairwise        one run
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from setpoint._core.errors import GoalError, KindError
from setpoint.expressions import Columns
from setpoint.fit.network.exact_run import fit_exact
from setpoint.fit.network.exact_verdict import Verdict
from setpoint.goals import Goal, Task, lower
from setpoint.losses import GoalLoss
from setpoint.methods import Costs, CrossEntropy, Exact, Implicit, Lagrangian, Method, SoftSet
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.implicit.threshold_search import search_slots
from setpoint.methods.method import ready
from setpoint.methods.rate_targets import curve_of
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.one_threshold import best_threshold, quick_point
from setpoint.solvers import FirstOrder
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.checkpoint import digest
from setpoint.training.distributed import rank, world_size
from setpoint.training.events import Listener
from setpoint.training.loop import EpochVerdict, Trained, TrainingPlan, evaluate_outputs, train
from setpoint.training.scored_rows import scored

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
    goal, cells = lower(goal), Cells(task)
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


# Sizes of batches and weights of classes, from how many rows each class has.


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


def class_weights(target: Tensor, task: Task, power: float) -> tuple[float, ...]:
    """(1 / frequency)^power of each class; of a label, that of positives to negatives."""
    if task.kind == "multilabel":
        share = target.double().mean(0).clamp(1 / len(target), 1 - 1 / len(target))
        u = (1 - share) / share
    else:
        width = 2 if task.kind == "binary" else len(task.classes or ())
        u = 1 / torch.bincount(target.long(), minlength=width).clamp(min=1).double()
        u = u / u.mean()
    return tuple((u**power).tolist())


MEMORY, MANY = 8192, 400  #: rows that totals remember; rows of the rarest class, where hard ones
HARDENED = 0.8  #: share of the epochs in which the forms of exact for batches harden
WHOLE = 200_000  #: rows up to which the exact problem is solved over all of them at once
#: share of the steps that soft-set starts with cross-entropy, for several classes or constraints
WARMUP = 0.25
#: powers of the inverse class frequencies that a search of class weights tries
POWERS = (0.0, 0.5, 1.0)


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
    checkpoint: Any = None
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
    fit = _Fit(goal, task, build, rows, tune, settings)
    if isinstance(method, Implicit):
        method, fit.by = method.sized(goal, len(tune.target)), method.by
    if isinstance(method, CrossEntropy) and method.class_weight == "search":
        return fit.searched()
    if isinstance(method, Exact):
        method = fit.formed(method)
        if method.form == "whole":  # which refuses for itself
            return fit.whole(method)
    why = method.refusal(goal, task)
    if why is not None:
        raise GoalError(why)
    if isinstance(method, Costs | Implicit | Exact):
        return fit.second(method)
    return fit.alone(method)


class _Fit:
    """What the runs of one fit share."""

    def __init__(
        self,
        goal: Goal,
        task: Task,
        build: Callable[[], nn.Module],
        rows: TensorRows,
        tune: TensorRows,
        settings: NetworkSettings,
    ) -> None:
        self.goal, self.task, self.build = goal, task, build
        self.rows, self.tune, self.settings = rows, tune, settings
        self.by: str | None = None  #: the group column that thresholds differ by
        self.size = settings.batch_size or batch_size(rows.target, task)
        self.batches = InMemory(rows.rows(), self.size, (rank(), world_size()))
        if settings.steps is not None:
            steps = min(settings.steps, max(600, 15_000_000 // max(len(rows.target), 1)))
            epochs = max(4, round(steps / max(1, self.batches.count())))
            self.settings = replace(settings, epochs=epochs)

    def alone(self, method: Method) -> Fitted:
        """One run."""
        model, loss, run = self.run(self.build(), method, method.name, self._rate(method))
        notes = ()
        if run.best_epoch < loss.warmup // self.batches.count() and loss.warmup > 1:
            notes = (
                f"{method.name} was no better than its warm-up of cross-entropy, which is kept",
            )
        return Fitted(model, run.history, (run,), notes, loss, run.finished)

    def searched(self) -> Fitted:
        """One run for each power of the inverse class frequencies; the best on the tune rows."""
        tried = []
        for power in POWERS:
            weights = class_weights(self.rows.target, self.task, power)
            method = CrossEntropy(weights if power else None)
            phase = f"cross-entropy, weights^{power:g}"
            model, loss, run = self.run(self.build(), method, phase, self._rate(method))
            tried.append((model, loss, run, power))
            if not run.finished:
                break
        ranks = [run.verdict.rank if run.verdict else () for _, _, run, _ in tried]
        best = max(range(len(tried)), key=lambda i: ranks[i])
        model, loss, run, power = tried[best]
        runs = tuple(t[2] for t in tried)
        note = f"class weights: (1 / frequency)^{power:g} was best on the tune rows"
        history = [row for r in runs for row in r.history]
        return Fitted(model, history, runs, (note,), loss, all(r.finished for r in runs))

    def formed(self, method: Exact) -> Exact:
        """The method in the form that suits the rows."""
        n = len(self.rows.target)
        if method.form == "auto":
            few = n <= WHOLE and self.rows.inputs.ndim == 2 and world_size() == 1
            few = few and curve_of(self.goal) is None
            method = replace(method, form="whole" if few else "eliminated")
        steps = self.settings.epochs * self.batches.count()
        return replace(method, anneal=steps, rows=n if method.form == "table" else method.rows)

    def whole(self, method: Exact) -> Fitted:
        """Cross-entropy first; then the exact problem over all rows, judged on the tune rows."""
        ready(method, self.goal, self.task)  # before anything is trained
        plain = CrossEntropy()
        model, loss, first = self.run(self.build(), plain, "cross-entropy", self._rate(plain))
        if not first.finished:
            return Fitted(model, first.history, (first,), (), loss, False)
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
            method=method,
            judge=lambda model: self.judge(model).rank,
            seed=settings.seed,
            listener=settings.listener,
            checkpoint=self._place("exact"),
            fingerprint=self._fingerprint(method, 0.0, model),
        )
        notes = (f'method="exact": {solved.verdict.brief()}',)
        history = first.history + solved.history
        return Fitted(model, history, (first,), notes, loss, solved.finished, solved.verdict)

    def second(self, method: Costs | Implicit | Exact) -> Fitted:
        """Cross-entropy first; where it ends the method starts."""
        plain = CrossEntropy()
        model, loss, first = self.run(self.build(), plain, "cross-entropy", self._rate(plain))
        if not first.finished:
            return Fitted(model, first.history, (first,), (), loss, False)
        plain, notes, rate = copy.deepcopy(model.state_dict()), (), self._rate(method)
        if not isinstance(method, Implicit) and curve_of(self.goal) is None:
            rate = rate / 3 if isinstance(method, Costs) else rate
            threshold = self._threshold(model)
            if threshold is not None and self._shifted(model, threshold):
                notes = (f"the threshold of cross-entropy, {threshold:.3g}, was made ½",)
                method = self._settled(method, model, threshold)
        model, loss, second = self.run(model, method, method.name, rate, first, plain)
        kept = first.verdict is not None and second.verdict is not None
        if kept and second.verdict.rank <= first.verdict.rank:  # type: ignore[union-attr]
            what = f'method="{method.name}" was no better on the tune rows'
            notes += (f"{what}: cross-entropy's weights are kept",)
        history = first.history + second.history
        return Fitted(model, history, (first, second), notes, loss, second.finished)

    def run(
        self,
        model: nn.Module,
        method: Method,
        phase: str,
        rate: float,
        before: Trained | None = None,
        fallback: Any = None,
    ) -> tuple[nn.Module, GoalLoss, Trained]:
        """Train a model; with ``before``, only what is better is kept, else ``fallback``."""
        settings, start = self.settings, fallback or copy.deepcopy(model.state_dict())
        late = self.task.kind == "multiclass" or bool(lower(self.goal).constraints)
        soft = isinstance(method, SoftSet | Lagrangian)
        waits = int(WARMUP * settings.epochs) if late and soft else 0
        warmup = max(1, waits * self.batches.count())
        if isinstance(method, Exact):  # it hardens first, and is judged by what comes of it
            waits = int(HARDENED * settings.epochs)
        memory = MEMORY if not isinstance(method, Exact) else self._positives(MANY)
        loss = GoalLoss(self.goal, method, task=self.task, warmup=warmup, memory=memory)
        loss.to(self.rows.inputs.device)
        plan = TrainingPlan(
            solver=FirstOrder(rate, weight_decay=settings.weight_decay, final=settings.final),
            epochs=settings.epochs,
            patience=settings.patience,
            waits=waits,
            seed=settings.seed,
            phase=phase,
            checkpoint=self._place(phase),
            fingerprint=self._fingerprint(method, rate, model),
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
        entropy = _entropy(outputs, self.tune, self.task)
        if self.settings.by == "cross-entropy":
            return EpochVerdict((-entropy,), {"cross_entropy": entropy})
        columns = self._columns(outputs)
        point = (
            quick_point(self.goal, columns)
            if self.by is None
            else point_by_group(self.goal, columns, self.task, self.by, self.tune.codes)
        )
        shown = {"tune": point.value, "feasible": point.feasible, "cross_entropy": entropy}
        feasible, excess, merit = point.rank(self.goal.sign)
        return EpochVerdict((float(feasible), excess, merit, -entropy), shown)

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

    def _settled(self, method: Any, model: nn.Module, threshold: float) -> Any:
        """The method with multipliers that make the goal choose this threshold."""
        program: Any = Costs().lower(self.goal, self.task)  # in whose units the multipliers are
        if method.multipliers is not None or not program.start.numel():
            return method
        outputs = evaluate_outputs(model, self.tune.inputs).cpu()
        weight = None if self.tune.weight is None else self.tune.weight.cpu()
        rows = program.rows(outputs, self.tune.target.cpu(), weight, self._codes_on_host())
        totals, _ = program.measure(rows, torch.zeros(()))
        settled = program.multipliers_at(totals / program.whole(totals), threshold)
        return replace(method, multipliers=tuple(settled.tolist()))

    def _positives(self, count: int) -> int:
        """Rows that hold so many of the rarest class, and no fewer than usual."""
        if self.task.kind == "multilabel":
            return MEMORY
        seen = torch.unique(self.rows.target, return_counts=True)[1]
        return max(MEMORY, int(count * len(self.rows.target) / int(seen.min())))

    def _codes_on_host(self) -> dict[str, Tensor] | None:
        return {name: code.cpu() for name, code in self.tune.codes.items()} or None

    # --- settings --------------------------------------------------------------------------------

    def _rate(self, method: Method) -> float:
        if self.settings.learning_rate is not None:
            return self.settings.learning_rate
        fast = isinstance(method, SoftSet | Lagrangian | Exact)
        return (3e-3 if fast else 1e-3) * self.settings.pace

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


def shift(model: nn.Module, by: float) -> bool:
    """Add to the output of a network's last linear layer; False where it has none."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1]
    if not layers or layers[-1].bias is None:
        return False
    with torch.no_grad():
        layers[-1].bias.add_(by)
    return True


def _entropy(outputs: Tensor, part: TensorRows, task: Task) -> float:
    if task.kind == "multiclass":
        each = F.cross_entropy(outputs.double(), part.target.long(), reduction="none")
    else:
        y = part.target.double()
        outputs = outputs.reshape(y.shape)
        each = F.binary_cross_entropy_with_logits(outputs.double(), y, reduction="none")
        each = each if each.ndim == 1 else each.mean(1)
    if part.weight is None:
        return float(each.mean())
    return float((each * part.weight).sum() / part.weight.sum().clamp(min=1e-30))


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
