"""The loop: batches through a model, a loss and a solver; judged, interrupted and resumed.

Everything a run is made of (model, optimiser, loss with its totals and multipliers, best state,
generators, place in the epoch) is one nested state. Saved after any step and taken up again, the
run ends in the same weights as one that was never interrupted.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint._core.errors import DataError, FileError, KindError
from setpoint.solvers import FirstOrder
from setpoint.training.batches import Batches, TrainingRows, mixed
from setpoint.training.best_weights import BestWeights, EpochVerdict
from setpoint.training.checkpoint import (
    load_state,
    random_state,
    save_state,
    seed_generators,
    set_random_state,
)
from setpoint.training.distributed import agreed, rank, world_size
from setpoint.training.events import EpochDone, Listener, Started, Stepped, Stopped, TrainingEvent
from setpoint.training.running_loss import RunningLoss
from setpoint.training.validation_rows import evaluate_outputs

#: modules whose outputs differ from one reading to the next
CHANGEABLE = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.modules.batchnorm._BatchNorm)


Judge = Callable[[nn.Module], EpochVerdict]


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """How to train.

    Parameters
    ----------
    solver : FirstOrder
    epochs : int
        At most.
    patience : int
        Epochs without a better verdict before the run stops.
    waits : int
        First epoch that patience counts from.
    seed : int
        Of the order of rows and of dropout.
    phase : str
        A word for events and history.
    checkpoint : path, optional
        Where the run is kept; an existing one of the same run is taken up.
    every : int
        Epochs between two writes of the checkpoint.
    fingerprint : str
        What the run is about; a checkpoint of another run is refused.
    """

    solver: FirstOrder = field(default_factory=FirstOrder)
    epochs: int = 100
    patience: int = 20
    waits: int = 0
    seed: int = 0
    phase: str = "train"
    checkpoint: str | Path | None = None
    every: int = 5
    fingerprint: str = ""


@dataclass(frozen=True, eq=False)
class Trained:
    """How a run ended; the model holds its best weights.

    Attributes
    ----------
    reason : str
        A sentence.
    finished : bool
        False where it was interrupted.
    best_epoch : int
    verdict : EpochVerdict or None
        Of the best weights.
    history : list of dict
        One row per epoch: phase, epoch, loss, what the judge showed, whether it was the best.
    steps : int
    """

    reason: str
    finished: bool
    best_epoch: int
    verdict: EpochVerdict | None
    history: list[dict[str, Any]]
    steps: int


def train(
    model: nn.Module,
    loss: nn.Module,
    batches: Batches,
    plan: TrainingPlan,
    judge: Judge | None = None,
    listener: Listener | None = None,
) -> Trained:
    """Train a model on a loss; on return it holds the weights that were judged best.

    Under torch.distributed every process calls this with its own share of the rows; the model is
    wrapped in DistributedDataParallel, and all processes follow the judge of the first.

    Ctrl-C lets the step in hand finish, writes the checkpoint if there is to be one, restores the
    best weights, and returns with ``finished=False``; a second one interrupts at once.
    """
    return _Run(model, loss, batches, plan, judge, listener or _silent).run()


class _Run:
    """One run: the moving parts, and how they are saved."""

    def __init__(
        self,
        model: nn.Module,
        loss: nn.Module,
        batches: Batches,
        plan: TrainingPlan,
        judge: Judge | None,
        listener: Listener,
    ) -> None:
        self.model = model
        self.loss = loss
        self.batches = batches
        self.plan = plan
        self.judge = judge
        self.listener = listener
        self.device = next(model.parameters()).device
        self.outer = model
        if world_size() > 1:
            where = [self.device] if self.device.type == "cuda" else None
            self.outer = DistributedDataParallel(model, device_ids=where)
        odd = [type(m).__name__ for m in model.modules() if isinstance(m, CHANGEABLE)]
        self.running = loss if isinstance(loss, RunningLoss) else None
        if odd and self.running is not None and self.running.follows:
            raise KindError(
                f"follow=True reads a batch twice, and {odd[0]} makes the second reading another "
                "one; leave it out"
            )
        self.optimiser = plan.solver.start(model.parameters())
        self.epoch = self.place = self.step = 0
        self.losses: list[float | Tensor] = []
        self.best = BestWeights()
        self.history: list[dict[str, Any]] = []
        self.randomness: Any = None

    # --- state -----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything the rest of the run depends on."""
        return {
            "fingerprint": self.plan.fingerprint,
            "model": self.model.state_dict(),
            "loss": self.loss.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": random_state(self.device),
            "best": self.best.state,
            "place": [self.epoch, self.place, self.step],
            "losses": list(self.losses),
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take a run up."""
        if state.get("fingerprint") != self.plan.fingerprint:
            raise FileError(
                f'"{self.plan.checkpoint}" belongs to another run (other rows, goal, method or '
                "settings); give another path, or delete it to start anew"
            )
        self.model.load_state_dict(state["model"])
        self.loss.load_state_dict(state["loss"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best.state = state["best"]
        self.history = state["history"]
        self.epoch, self.place, self.step = state["place"]
        self.losses = list(state["losses"])
        self.randomness = state["random"]

    def save(self) -> None:
        """Write the checkpoint, on the first process only."""
        if self.plan.checkpoint is None:
            return
        whole = {}
        if self.running is not None and self.running.indexed:  # every process has a part of it
            whole = {"loss": self.running.whole_state()}
        if rank() == 0:
            save_state(self.plan.checkpoint, {**self.state(), **whole})

    # --- running ---------------------------------------------------------------------------------

    def run(self) -> Trained:
        path = self.plan.checkpoint
        resumed = path is not None and Path(path).exists()
        if path is not None and resumed:
            self.restore(load_state(path))
        plan = self.plan
        self.tell(Started(plan.phase, self.epoch, plan.epochs, self.batches.count(), resumed))
        cuda = [self.device] if self.device.type == "cuda" else []
        reason, finished = None, True
        with torch.random.fork_rng(devices=cuda), interruptions() as interrupted:
            while reason is None:
                reason = self.ended()
                if reason is None:
                    reason = self.one_epoch(interrupted)
                    finished = reason is None
        if finished:
            self.save()
        self.best.restore(self.model)
        best = self.best.epoch
        self.tell(Stopped(plan.phase, reason, self.epoch, best))
        return Trained(reason, finished, best, self.best.verdict, self.history, self.step)

    def ended(self) -> str | None:
        """Why there is no further epoch, or None."""
        if self.epoch >= self.plan.epochs:
            return f"all {self.plan.epochs} epochs were run"
        since = self.epoch - 1 - max(self.best.epoch, self.plan.waits)
        if self.judge is not None and since >= self.plan.patience:
            return f"no better for {since} epochs"
        return None

    def one_epoch(self, interrupted: Callable[[], bool]) -> str | None:
        """Run an epoch, or the rest of one; a reason if it was interrupted."""
        began = time.monotonic()
        self.model.train()
        if self.place == 0:
            self.losses = []
            seed_generators(mixed(self.plan.seed, self.epoch), self.device)
        elif self.randomness is not None:
            set_random_state(self.randomness, self.device)
        self.randomness = None
        if self.place == 0:
            self.refresh()
        for rows in self.batches.epoch(self.plan.seed, self.epoch, self.place):
            self.one_step(rows)
            if interrupted():
                self.save()
                return f"interrupted after step {self.step}"
        mean = _mean(self.losses)
        if not math.isfinite(mean):
            raise DataError(
                f"the loss became {mean} in epoch {self.epoch}: inputs may hold NaN or huge "
                "values, or the learning rate is too high"
            )
        self.verdict(mean, time.monotonic() - began)
        self.epoch = self.epoch + 1
        self.place = 0
        if self.epoch % self.plan.every == 0:
            self.save()
        return None

    def refresh(self) -> None:
        """Let the loss take its thresholds from all rows in memory, in evaluation mode."""
        rows = self.batches.in_memory()
        if rows is None or self.running is None or not self.running.refreshes:
            return
        outputs = evaluate_outputs(self.model, rows.inputs)
        self.running.refresh(outputs, rows.target, weight=rows.weight, group=rows.group)

    def one_step(self, rows: TrainingRows) -> None:
        running = self.running
        numbers = {"row": rows.index} if running is not None and running.indexed else {}
        value = self.loss(
            self.outer(rows.inputs), rows.target, weight=rows.weight, group=rows.group, **numbers
        )
        value.backward()
        steps = self.plan.epochs * self.batches.count()
        self.plan.solver.step(self.optimiser, self.step, steps)
        if running is not None and running.follows:
            with torch.no_grad():
                running.follow(self.model(rows.inputs))
        self.losses.append(value.detach())  # read when the epoch ends
        self.step += 1
        self.place += 1
        if self.place % 64 == 0:
            self.losses = [float(x) for x in self.losses]
        self.tell(Stepped(self.plan.phase, self.step, steps))

    def verdict(self, mean: float, seconds: float) -> None:
        """Judge the model and keep it if it is the best."""
        judged = None
        if self.judge is not None:
            self.model.eval()
            judged = agreed(self.judge(self.model) if rank() == 0 else None)
        better = self.best.offer(self.model, self.epoch, judged)
        shown = {} if judged is None else judged.shown
        if self.running is not None:
            shown = {**shown, **self.running.shown()}
        row = {"phase": self.plan.phase, "epoch": self.epoch, "loss": mean, **shown, "best": better}
        self.history.append(row)
        self.tell(EpochDone(self.plan.phase, self.epoch, mean, shown, better, seconds))

    def tell(self, event: TrainingEvent) -> None:
        if rank() == 0:
            self.listener(event)


def _mean(losses: Sequence[float | Tensor]) -> float:
    return math.fsum(float(x) for x in losses) / max(len(losses), 1)


def _silent(event: TrainingEvent) -> None:
    del event


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into an answer that can be asked for; the second raises."""
    caught = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # in the background, where Ctrl-C is not meant for us
        yield lambda: False
        return
    before = signal.SIG_DFL if before is None else before  # set by something other than Python

    def note(number: int, frame: object) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(caught)
    finally:
        signal.signal(signal.SIGINT, before)
