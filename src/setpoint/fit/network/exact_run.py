"""One run of the exact problem: candidates come in, the best stays."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from setpoint._core.errors import DataError, FileError, KindError
from setpoint.fit.network.exact_verdict import (
    CROSS_ENTROPY_START,
    LAST_ITERATE,
    NEAR,
    Stand,
    Verdict,
    prices_of,
    read_verdict,
)
from setpoint.goals import Goal, Task
from setpoint.methods import Exact
from setpoint.methods.exact.exact import whole_form
from setpoint.methods.exact.hard_decisions import HardRows, Rank, walk
from setpoint.methods.exact.whole_problem import WholeProblem
from setpoint.methods.method import ready
from setpoint.solvers import ExactPenalty, FirstOrder, Round, Solution, Sqp
from setpoint.solvers.sqp.penalty_inner_solver import MOST
from setpoint.training.batches import TrainingRows, taken
from setpoint.training.checkpoint import digest, load_state, save_state
from setpoint.training.events import EpochDone, Listener, Started, Stopped
from setpoint.training.loop import interruptions
from setpoint.training.scored_rows import scored
from setpoint.training.validation_rows import evaluate_outputs

# The last linear layer of a network, and the features it is given.


CHUNK = 65536  #: rows that are put through at a time


@dataclass(frozen=True, eq=False)
class LastLayer:
    """A linear layer whose outputs are the model's, and its inputs on some rows.

    Attributes
    ----------
    layer : torch.nn.Linear
    features : numpy.ndarray
        (n, h) float64.
    """

    layer: nn.Linear
    features: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """(K, h + 1), the bias last."""
        both = torch.cat([self.layer.weight, self.layer.bias[:, None]], 1)
        return both.detach().double().cpu().numpy()

    def put(self, weights: np.ndarray) -> None:
        """Take weights over."""
        given = torch.as_tensor(weights).to(self.layer.weight)
        with torch.no_grad():
            self.layer.weight.copy_(given[:, :-1])
            self.layer.bias.copy_(given[:, -1])


def last_layer(model: nn.Module, inputs: Tensor) -> LastLayer | None:
    """The last linear layer, where what it gives is what the model gives; None otherwise."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    if not layers or layers[-1].bias is None:
        return None
    if not all(p.requires_grad for p in layers[-1].parameters()):  # it was frozen on purpose
        return None
    layer, seen = layers[-1], []
    hook = layer.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    try:
        with torch.no_grad():
            parts = [model(part) for part in inputs.split(CHUNK)]
    finally:
        hook.remove()
    same = len(seen) == len(parts) and all(
        given.ndim == 2
        and out.numel() == part.numel()
        and torch.equal(out.reshape(part.shape), part)
        for (given, out), part in zip(seen, parts, strict=True)
    )
    if not same:
        return None
    return LastLayer(layer, torch.cat([given for given, _ in seen]).double().cpu().numpy())


PHASE = "exact"
LINEAR, DEEP = 1e-2, 3e-3  #: learning rates of the weights
RATE_S = 0.05  #: and of the memberships
HAIR = 0.02  #: a constraint that decisions break by up to so much is asked more of
FINISH = 1  #: rounds of SQP after those of the penalty
TOLERANCE = 1e-3  #: what a tie or a constraint may be broken by before it gets dearer


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """A model trained on the exact problem.

    Attributes
    ----------
    model : torch.nn.Module
        The one that was given, with its new weights.
    threshold : float
        Of its outputs: decide where they are at least this. 0 of several classes, which are decided
        by the greatest.
    verdict : Verdict
        What the solution is worth, and how far it is one.
    history : list of dict
        A row for each round of the penalty.
    finished : bool
        False where it was interrupted.
    """

    model: nn.Module
    threshold: float
    verdict: Verdict
    history: list[dict[str, Any]]
    finished: bool = True


class ExactRun:
    """One run: candidates come in, the best stays."""

    def __init__(
        self,
        goal: Goal,
        task: Task,
        model: nn.Module,
        rows: TrainingRows,
        method: Exact,
        judge: Callable[[nn.Module], tuple[float, ...]] | None,
        listener: Listener | None,
        seed: int,
    ) -> None:
        self.stated, self.goal, self.task = goal, ready(method, goal, task), task
        self.model, self.rows, self.method, self.judge = model, rows, method, judge
        self.listener, self.seed = listener or (lambda event: None), seed
        if method.solver == "sqp":
            self._small()
        model.eval()
        first = self.outputs()
        self.hard = HardRows(self.goal, task, first, rows.target, rows.weight, rows.group)
        self.names = [name for name, p in model.named_parameters() if p.requires_grad]
        self.start = copy.deepcopy(model.state_dict())
        self.threshold, rank = self._point(self.hard.scores(first))
        self.tau = self.threshold
        self.best: dict[str, Any] = {}
        self.judged: tuple[float, ...] = ()
        self.last: tuple[Rank, bool, float] = (rank, False, 0.0)
        self.began = time.monotonic()
        self.seen = 0  #: iterates that were judged
        self.offer(rank, CROSS_ENTROPY_START)
        self.whole = WholeProblem(
            self.goal,
            task,
            self._forward,
            len(self.names),
            first,
            rows.target,
            rows.weight,
            rows.group,
            regulariser=method.regulariser,
            relation=method.relation,
            trained=method.threshold == "trained",
        )

    def _small(self) -> None:
        """Refuse what SQP does not take."""
        rows = len(self.rows.target)
        if self.task.kind != "binary" or rows > MOST:
            raise DataError(
                f'solver="sqp" is for two classes and up to {MOST:,} rows, a constraint each; '
                f'these are {rows:,} rows of a {self.task.kind} task: take solver="penalty"'
            )
        if self.method.power != 1:
            raise KindError(f'solver="sqp" knows no power={self.method.power}; leave it at 1')

    # --- candidates ------------------------------------------------------------------------------

    def outputs(self) -> Tensor:
        """The model's outputs on all rows."""
        return evaluate_outputs(self.model, self.rows.inputs)

    def _forward(self, weights: tuple[Tensor, ...]) -> Tensor:
        return functional_call(
            self.model, dict(zip(self.names, weights, strict=True)), (self.rows.inputs,)
        )

    def _point(self, z: np.ndarray, fixed: float | None = None) -> tuple[float, Rank]:
        """The best threshold and how good it is there; a fixed one as it is."""
        if self.hard.several:
            return 0.0, self.hard.rank(z)
        if fixed is not None:
            return fixed, self.hard.rank(z - fixed)
        where, _ = self.hard.threshold(z)
        return where, self.hard.rank(z - where)

    def offer(self, rank: Rank, origin: str) -> bool:
        """Keep the model as it is, if it is better than all before."""
        merit = tuple(-x for x in rank)
        self.judged = judged = merit if self.judge is None else tuple(self.judge(self.model))
        if self.best and judged <= self.best["judged"]:
            return False
        state = copy.deepcopy(self.model.state_dict())
        self.best = {
            "judged": judged,
            "state": state,
            "threshold": self.threshold,
            "rank": rank,
            "origin": origin,
        }
        return True

    # --- running ---------------------------------------------------------------------------------

    def solve(self, tune: TrainingRows | None, checkpoint: Any, fingerprint: str) -> ExactSolution:
        with interruptions() as interrupted:
            solution, history, finished = self._penalty(checkpoint, fingerprint, interrupted)
            if finished:
                self._walks(solution.x, interrupted)
                finished = not interrupted()
        self.model.load_state_dict(self.start)
        start = self._stand(self.hard, self.outputs(), self.tau)
        self.model.load_state_dict(self.best["state"])
        verdict = self._verdict(solution, start, tune)
        reason = "all rounds were run" if finished else "interrupted"
        self.listener(Stopped(PHASE, reason, len(history), self.best.get("round", 0)))
        return ExactSolution(self.model, self.best["threshold"], verdict, history, finished)

    def _penalty(
        self, checkpoint: Any, fingerprint: str, interrupted: Callable[[], bool]
    ) -> tuple[Solution, list[dict[str, Any]], bool]:
        """Round by round, so that it can be interrupted and taken up between two of them."""
        method, solver = self.method, self._solver()
        fingerprint = "" if checkpoint is None else self._about(fingerprint)
        problem, x = self.whole.problem(), self._first()
        weights, state, history, r = self.whole.weights(method.price, method.tie), None, [], 0
        if checkpoint is not None and Path(checkpoint).exists():
            kept = load_state(checkpoint)
            if kept.get("fingerprint") != fingerprint:
                raise FileError(
                    f'"{checkpoint}" belongs to another run (other rows, goal, method or '
                    "settings); give another path, or delete it to start anew"
                )
            state, history, r = kept["solver"], list(kept["history"]), len(kept["history"])
            self.start, self.tau, self.seen = kept["start"], float(kept["tau"]), r + 1
            self.whole.margin.copy_(kept["margin"])
            self.best = {**kept["best"], "rank": Rank(*kept["best"]["rank"])}
            self.best["judged"] = tuple(self.best["judged"])
        self.listener(Started(PHASE, r, method.rounds, 1, r > 0))
        self.began = time.monotonic()

        def told(record: Round) -> bool:
            history.append(self._round(record))
            stop = interrupted()
            if checkpoint is not None and (record.round % 5 == 0 or stop):
                best = {**self.best, "rank": list(self.best["rank"])}
                kept = {"solver": record.state, "history": history, "best": best}
                kept |= {"start": self.start, "tau": self.tau, "margin": self.whole.margin}
                save_state(checkpoint, {"fingerprint": fingerprint, **kept})
            return stop

        solution = solver.solve(
            problem,
            x,
            weights=weights,
            resume=state,
            settle=self._settled if self.hard.several else None,
            judge=self._judged,
            chosen_as=LAST_ITERATE,
            listener=told,
        )
        if method.solver == "sqp" and not interrupted():
            done = len(history)

            def finished(record: Round) -> bool:
                history.append(self._round(replace(record, round=done + record.round)))
                return interrupted()

            last = self._finish(solver)
            solution = last.solve(
                problem,
                solution.x,
                weights=weights,
                judge=self._judged,
                chosen_as=LAST_ITERATE,
                listener=finished,
            )
        return solution, history, not interrupted()

    def _finish(self, solver: ExactPenalty) -> ExactPenalty:
        """Rounds of SQP, which solve the ties that gradient steps leave open by a little."""
        cap = solver.strength_cap
        return replace(solver, primal=Sqp(feasibility=TOLERANCE / 10), rounds=FINISH, strength=cap)

    def _about(self, more: str) -> str:
        """What a checkpoint must agree in to be taken up: goal, task, method, seed and rows."""
        group = self.rows.group
        columns = [*group.values()] if isinstance(group, Mapping) else [group]
        parts = [self.stated, self.task.to_json(), repr(self.method), self.seed, more]
        return digest(parts, [self.rows.inputs, self.rows.target, self.rows.weight, *columns])

    def _solver(self) -> ExactPenalty:
        method = self.method
        linear = sum(isinstance(m, nn.Linear) for m in self.model.modules()) == 1
        rate = method.rate or (LINEAR if linear else DEEP)
        tau = 1.0 if method.threshold == "trained" else 0.0
        return ExactPenalty(
            primal=FirstOrder(rate, "adam", weight_decay=0.0, clip=math.inf, final=0.1),
            rates=(*(1.0,) * len(self.names), (method.rate_s or RATE_S) / rate, tau),
            power=method.power,
            weight=1.0,  # what each constraint weighs is given to it
            weight_growth=method.growth,
            strength=method.confidence,
            strength_growth=method.growth,
            strength_cap=max(method.confidence, method.confidence_cap),
            rounds=method.rounds,
            steps=method.steps,
            patience=method.steps,
            tolerance=TOLERANCE,
        )

    def _first(self) -> tuple[Tensor, ...]:
        """Weights as they are, every row its own label, the threshold of iterate 0."""
        weights = [p.detach() for p in self._weights()]
        tau = torch.tensor(self.tau, dtype=self.whole.unit.dtype, device=self.whole.unit.device)
        return (*weights, self.whole.right.clone(), tau)

    def _put(self, x: tuple[Tensor, ...]) -> None:
        with torch.no_grad():
            for own, part in zip(self._weights(), x[:-2], strict=True):
                own.copy_(part)

    def _weights(self) -> list[nn.Parameter]:
        own = dict(self.model.named_parameters())
        return [own[name] for name in self.names]

    def _settled(self, x: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Rows of several classes that were given up take the membership of their decision.

        Left alone, what leaves the right class is shared among the wrong ones, where no tie pulls.
        """
        s, chosen = x[-2], self.whole.margins(x).argmax(1)
        kept = (s * self.whole.right).sum(1, keepdim=True) >= 0.5
        decided = nn.functional.one_hot(chosen, s.shape[1]).to(s)
        return (*x[:-2], torch.where(kept, s, decided), x[-1])

    def _judged(self, x: tuple[Tensor, ...]) -> tuple[float, ...]:
        """How good an iterate's hard decisions are; the best one is kept."""
        self._put(x)
        z = self.hard.scores(self.outputs())
        own = float(x[-1])
        self.threshold, rank = self._point(z, own if self.method.threshold == "fixed" else None)
        better = self.offer(rank, "the penalty")
        near = self.whole.near(torch.as_tensor(z if self.hard.several else z - own), NEAR)
        self.last = rank, better, near / max(len(self.hard.place), 1)
        self._hold(z if self.hard.several else z - own)
        self.seen += 1
        return (float(self.seen),)  # the solver's best is its last, which the verdict speaks of

    def _hold(self, z: np.ndarray) -> None:
        """Ask more of a constraint that memberships keep and decisions break by a hair."""
        if self.seen < self.method.rounds // 2:
            return
        values, _ = self.whole.lowered.read(self.hard.decided(z))
        lack = torch.as_tensor(values[0, 1:]).to(self.whole.margin).clamp(min=0)
        hair = self.whole.kept & (lack <= HAIR)
        self.whole.margin.add_(torch.where(hair, lack / 2, 0)).clamp_(max=2 * HAIR)

    def _round(self, record: Round) -> dict[str, Any]:
        """What a round came to."""
        rank, better, near = self.last
        if better:
            self.best["round"] = record.round
        shown = {"train": self._value(rank), "feasible": rank.feasible, "near": near}
        shown["violation"] = record.violation
        seconds, self.began = time.monotonic() - self.began, time.monotonic()
        epoch, loss = record.round - 1, record.objective
        self.listener(EpochDone(PHASE, epoch, loss, shown, better, seconds))
        return {"phase": PHASE, "epoch": epoch, "loss": loss, **shown, "best": better}

    def _value(self, rank: Rank) -> float:
        """The objective in the goal's own units."""
        return -self.goal.sign * rank.objective

    def _walks(self, last: tuple[Tensor, ...], interrupted: Callable[[], bool]) -> None:
        """Line searches of the last layer: from iterate 0, the best, the last one, at random.

        The last iterate is often the best but for a hair that a constraint is broken by.
        """
        if not self.method.walks:
            return
        self._put(last)
        end = copy.deepcopy(self.model.state_dict())
        starts = [(CROSS_ENTROPY_START, self.start, self.tau)]
        if self.best["origin"] != CROSS_ENTROPY_START:
            starts.append((self.best["origin"], self.best["state"], self.best["threshold"]))
        starts.append(("the last round", end, float(last[-1])))
        rng = np.random.default_rng(self.seed)
        for k, (origin, state, threshold) in enumerate(starts):
            self.model.load_state_dict(state)
            layer = last_layer(self.model, self.rows.inputs)
            if layer is None or interrupted():
                return
            weights = layer.weights
            if not self.hard.several:
                weights[:, -1] -= threshold
            random = range(self.method.starts if k == 0 else 0)
            tried = [(weights, f"a walk from {origin}")]
            tried += [
                (rng.normal(size=weights.shape), "a walk from a random start") for _ in random
            ]
            for given, words in tried:
                seed = int(rng.integers(2**31))
                moved, _ = walk(
                    self.hard, layer.features, given, self.method.walks, seed, interrupted
                )
                fixed = None if self.method.threshold == "trained" else self.tau
                moved[:, -1] += fixed or 0.0
                layer.put(moved)
                # as float32 decides; where rounding moved a row, the best threshold mends it
                self.threshold, rank = self._point(self.hard.scores(self.outputs()), fixed)
                self.offer(rank, words)

    def _verdict(self, solution: Solution, start: Stand, tune: TrainingRows | None) -> Verdict:
        outputs, threshold = self.outputs(), self.best["threshold"]
        train = self._stand(self.hard, outputs, threshold)
        other = None
        if tune is not None:
            there = evaluate_outputs(self.model, tune.inputs)
            hard = HardRows(self.goal, self.task, there, tune.target, tune.weight, tune.group)
            other = self._stand(hard, there, threshold)
        weights = [p.detach() for p in self._weights()]
        x = (*weights, solution.best[-2], outputs.new_tensor(threshold))
        with torch.no_grad():
            margins = self.whole.margins(x)
        origin = self.best["origin"]
        said = ()
        if train.feasible:
            columns = scored(self.task, outputs, self.rows.target, self.rows.weight, self._groups())
            said = prices_of(self.goal, columns)
        return read_verdict(self.whole, solution, start, origin, (train, other), margins, said)

    def _groups(self) -> dict[str, np.ndarray]:
        """The values of the group columns that the codes stand for."""
        given, known = self.rows.group, self.task.groups
        if given is None or not known:
            return {}
        named = given if isinstance(given, Mapping) else {known[0][0]: given}
        return {name: np.array(values)[named[name].cpu().numpy()] for name, values in known}

    def _stand(self, hard: HardRows, outputs: Tensor, threshold: float) -> Stand:
        z = hard.scores(outputs)
        return Stand.at(hard, z if hard.several else z - threshold)


# The exact reformulation on all rows at once: from a trained model to the goal's own optimum.
#
# 1. Iterate 0: the model as it is given (trained on cross-entropy), at its best threshold here.
# 2. The penalty (``solvers.ExactPenalty`` on ``methods.exact_whole``), weak at first. Every iterate
#    is judged by its hard decisions at the best threshold, which is the exact minimum over
#    memberships and threshold for its weights.
# 3. Exact line searches of the last layer on the hard goal, from iterate 0, the best and the last.
#
# The best of all of them is returned: on the rows it is judged on, never worse than iterate 0.


def fit_exact(
    goal: Any,
    model: nn.Module,
    X: Tensor,
    y: Tensor,
    *,
    task: Task | str | None = None,
    weight: Tensor | None = None,
    group: Any = None,
    tune: Any = None,
    method: Exact | None = None,
    judge: Callable[[nn.Module], tuple[float, ...]] | None = None,
    seed: int = 0,
    listener: Listener | None = None,
    checkpoint: Any = None,
    fingerprint: str = "",
) -> ExactSolution:
    """Train a model on a goal's hard decisions, from where it is.

    Parameters
    ----------
    goal : Goal, str or Expression
    model : torch.nn.Module
        Trained on cross-entropy; its weights are changed in place. It is run in evaluation mode.
    X, y, weight, group
        All rows, as for a loss.
    task : Task or str, optional
        Binary by default.
    tune : tuple, optional
        (X, y) or (X, y, weight, group) of other rows, which the verdict speaks of as well.
    method : Exact, optional
    judge : callable, optional
        model -> tuple of numbers, greater is better: what the best iterate is chosen by. The goal
        on these rows by default, at the model's best threshold.
    seed : int
        Of the walk's directions and of random starts.
    listener : callable, optional
        Told the events of ``setpoint.training.events``.
    checkpoint : path, optional
        Where the run is kept; an existing one of the same run is taken up.
    fingerprint : str
        What else the run is about, beside goal, method and rows; a checkpoint of another run is
        refused.

    Raises
    ------
    GoalError
        The goal is no function of totals of decisions.
    DataError, KindError
        Rows or options that no problem can be made of.
    FileError
        The checkpoint belongs to another run.

    Examples
    --------
    >>> import torch
    >>> X = torch.tensor([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> y = torch.tensor([0, 0, 1, 0, 1])
    >>> solved = fit_exact("maximize f1", torch.nn.Linear(1, 1), X, y)
    >>> solved.verdict.train.value
    0.8
    """
    chosen = whole_form(method)
    stated, kind = Goal.of(goal), Task.make(task)
    rows, other = _taken(TrainingRows(X, y, weight, group), kind), None
    if tune is not None:
        other = _taken(TrainingRows(*tune), kind)
    run = ExactRun(stated, kind, model, rows, chosen, judge, listener, seed)
    return run.solve(other, checkpoint, fingerprint)


def _taken(rows: TrainingRows, task: Task) -> TrainingRows:
    """Rows as tensors, without those that weigh nothing."""
    for name, x in (("X", rows.inputs), ("y", rows.target)):
        if not isinstance(x, Tensor):
            raise KindError(f"{name} must be a tensor; got {type(x).__name__}")
    if len(rows.inputs) != len(rows.target) or not len(rows.target):
        raise DataError(f"X has {len(rows.inputs)} rows and y {len(rows.target)}: one label each")
    if task.kind != "multilabel" and rows.target.ndim > 1:
        rows = rows._replace(target=rows.target.reshape(len(rows.target)))
    if rows.weight is None or not bool((rows.weight == 0).any()):
        return rows
    left = (rows.weight != 0).nonzero().reshape(-1)
    if not len(left):
        raise DataError("every row has the weight 0: nothing is left to train on")
    return TrainingRows(*(taken(column, left) for column in rows))
