"""A goal's program, guarded: it starts on evidence, is anchored, and takes bounded steps.

Around the program of a method stand

1. *evidence*   cross-entropy alone until :data:`FEW` rows of each class have been seen, the method
                in full from :data:`ENOUGH` on, a blend between
2. *a window*   the newest rows, and the operating point that they show (:mod:`operating_point`):
                a threshold θ of the logit, with a margin. The method reads logits less θ, so that
                it decides where the goal wants its decisions
3. *an anchor*  a share of plain cross-entropy: the logits stay near those of probabilities and the
                ranking cannot turn over
4. *prices*     multipliers at which the goal itself would choose θ: they are solved for at each
                reading and not integrated, so nothing winds up
5. *bounds*     prices are scaled so that the method pulls no row more than :data:`LOUDEST` times as
                hard as cross-entropy does; the gradient of a batch is at most :data:`STEEPEST`
                times plain cross-entropy's. Where this last one cuts (``bounded`` counts it), a
                batch in parts has no longer the gradient of the whole

Methods that move thresholds of their own read logits as they are and keep their prices; goals over
several classes or groups get evidence, anchor and bounds.

Tried and left: an anchor at logits moved towards θ, so that decisions at 0 become the goal's (a
slow linear model spends its steps on the move, and ranks .05 to .09 behind cross-entropy); bounds
on the whole alone (a price of 100 drowns the anchor); thresholds that follow the drift of the
newest scores (they lag behind its jitter).
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import is_tensor, square_root
from setpoint._core.errors import KindError
from setpoint._core.notes import Note, NoteCode
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.goal_program import GoalProgram, MixedProgram
from setpoint.methods.guard.alarms import scarce, window_alarms
from setpoint.methods.guard.graph_call import begin_step, numbered
from setpoint.methods.guard.loss_status import ConstraintStatus, LossPhase, LossStatus
from setpoint.methods.guard.operating_point import (
    LIMIT,
    ObservedPoint,
    intercept,
    operating_point,
    price_at,
)
from setpoint.methods.guard.recent_rows import ObservedRows, Pool, TrackedRows, rows_of
from setpoint.methods.guard.window_figures import block_cells, figures
from setpoint.methods.method import GoalStanding, Recovered, not_totals
from setpoint.programs import Exchange, Priced, StreamProgram, TracksThresholds

logger = logging.getLogger("setpoint")

Buffers = dict[str, Tensor]
SCALARS = ("threshold", "calibration", "margin")
WRITTEN = (*SCALARS, "dual", "price_now", "evidence", "calls")

FEW, ENOUGH = 10.0, 40.0  #: rows of each class: the method begins, and counts in full
# in trials without a margin, 2048, 4096 and 8192 rows kept 83, 86 and 92 of 100 constraints
WINDOW = 8192  #: rows
EVERY = 16  #: steps from one reading to the next: a reading takes as long as a step or two
# in trials with 4096 rows, margins of 0, ½ and 1 kept 86, 93 and 95 of 100 constraints
MARGIN = 1.5  #: standard errors
ANCHOR = 0.5  #: share of cross-entropy of a method that does not say
LOUDEST = 2.0  #: times cross-entropy's gradient on each row: the method's
STEEPEST = 5.0  #: times plain cross-entropy's gradient: the whole
FARTHEST = 12.0  #: logit of a threshold's probability, at most: 6e-6 or 1 − 6e-6
LOOK = 8  #: readings from one look at the alarms to the next


def guarded(inner: GoalProgram, goal: Goal, task: Task, parts: int = 1) -> GuardedProgram:
    """The program of a goal with its guard; the method's own share of cross-entropy anchors it."""
    mix = inner.mix if isinstance(inner, MixedProgram) else 0.0
    single = task.kind == "binary" and inner.cells.shape[0] == 1
    decides = single and not_totals(goal, task) is None
    judge = Lowered(goal.lowered, inner.cells) if decides else None
    return GuardedProgram(inner, mix or ANCHOR, judge, parts)


class WindowReading(NamedTuple):
    """What the window shows: the operating point, the intercept a, and the prices there."""

    point: ObservedPoint
    calibration: float
    prices: np.ndarray


class GuardedProgram(TracksThresholds, StreamProgram):
    """The program of a method with evidence, window, anchor, prices and bounds.

    Parameters
    ----------
    inner : GoalProgram
    anchor : float
        Share of cross-entropy.
    judge : Lowered or None
        The goal as it was stated, where one threshold decides; by it the window is read.
    parts : int
        Calls that make up one step.

    Attributes
    ----------
    threshold, calibration : torch.Tensor
        θ and a; 0 until the window has been read.
    margin : torch.Tensor
        Share of the margin that θ keeps; −1 where a constraint is broken at every threshold.
    price_now, dual : torch.Tensor
        Prices of the constraints at the last reading, in units of the objective, and as the
        multipliers of the method.
    evidence : torch.Tensor
        (2, classes) rows of each class before the current step, and with it.
    bounded : torch.Tensor
        Calls whose gradient was cut.
    calls : torch.Tensor
        Calls so far.
    """

    inner: GoalProgram
    judge: Lowered | None
    window: Pool | None
    _inner: GoalProgram
    _tracker: TracksThresholds | None
    threshold: Tensor
    calibration: Tensor
    margin: Tensor
    dual: Tensor
    price_now: Tensor
    evidence: Tensor
    bounded: Tensor
    calls: Tensor
    start: Tensor

    def __init__(
        self, inner: GoalProgram, anchor: float, judge: Lowered | None, parts: int
    ) -> None:
        super().__init__()
        self.inner = inner
        self.anchor = float(anchor)
        self.parts = parts
        self.own_mix = 0.0
        if isinstance(inner, MixedProgram):
            self.own_mix, inner.mix = inner.mix, 0.0  # the anchor takes its place
        tracker = inner if isinstance(inner, TracksThresholds) else None
        # found without the search through submodules, which costs as much as a small sum
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_tracker", tracker)
        if tracker is not None:
            self.follows, self.refreshes = tracker.follows, tracker.refreshes
            self.needs_whole_batch = tracker.needs_whole_batch
        self.cells, self.judge, self.shape = inner.cells, judge, inner.shape
        self._cells = int(np.prod(self.cells.shape))
        self.steers = judge is not None and tracker is None  # moves prices and anchor too
        self.window = None if judge is None else Pool(WINDOW)
        classes = len(inner.presence(torch.zeros(inner.shape)))
        self.register_buffer("start", inner.start.clone(), False)
        self.register_buffer("dual", inner.start.clone())
        constraints = 0 if judge is None else len(judge.constraints)
        self.register_buffer("price_now", torch.ones(constraints, dtype=torch.float64))
        for name in SCALARS:
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))
        self.register_buffer("evidence", torch.zeros(2, classes))
        self.register_buffer("bounded", torch.zeros((), dtype=torch.long))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self._mirror()
        self._number = numbered(self)
        # what has been logged, no part of the state
        self._looks, self._found, self._said = 0, set[NoteCode](), set[NoteCode]()

    def bare(self) -> GoalProgram:
        """The method's own program, with its own share of cross-entropy."""
        if isinstance(self.inner, MixedProgram):
            self.inner.mix = self.own_mix
        return self.inner

    # --- what the method itself says -------------------------------------------------------------

    def rows(self, outputs: Tensor, target: Tensor, weight: Tensor | None, group: Any) -> Batch:
        return self._inner.rows(outputs, target, weight, group)

    def mass(self, rows: Batch) -> tuple[Any, int]:
        return self._inner.mass(rows)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        """At logits less θ, where the method decides at 0."""
        if self.steers:
            rows = rows.less(self._threshold if rows.host else self.threshold.to(rows.logits))
        totals, memory = self._inner.measure(rows, step)
        return totals, (rows, memory)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        """The value is a mean of objective and violations, weighed as they are priced."""
        priced = self._inner.price(totals, multipliers)
        if not self.steers:
            return priced
        host = not is_tensor(totals)
        dearness = self._dearness if host else 1 + self.price_now.sum().to(totals)
        return priced._replace(value=priced.value / dearness)

    def base(self, rows: Batch) -> Any:
        return self._inner.base(rows)

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self.anchor)
        if self.training:
            share = share * (self._share if not is_tensor(base) else self.blend())
        return share * priced.value + (1 - share) * base

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        return self._inner.notices(totals, unseen)

    def check(self, rows: Batch) -> None:
        self._inner.check(rows)

    def whole(self, totals: Any) -> Any:
        return self._inner.whole(totals)

    def presence(self, totals: Any) -> Any:
        return self._inner.presence(totals)

    def refresh(self, rows: Batch, exchange: Exchange | None) -> None:
        if self._tracker is not None:
            self._tracker.refresh(rows, exchange)

    def follow(self, outputs: Tensor, exchange: Exchange | None) -> None:
        if self._tracker is not None:
            self._tracker.follow(outputs, exchange)

    def shown(self) -> dict[str, Any]:
        own = {} if self._tracker is None else self._tracker.shown()
        return {**own, "threshold": float(self.threshold)} if self.window is not None else own

    # --- evidence and window ---------------------------------------------------------------------

    def settle(self, rows: Batch, step: Tensor, exchange: Exchange | None, alone: bool) -> None:
        """Read the window every so often, before the batch; then take the batch's rows in.

        A batch that comes in parts is read at what stood before its first part.
        """
        if self._tracker is not None:
            self._tracker.settle(rows, step, exchange, alone)
        if not torch.compiler.is_compiling():
            self.begin(exchange)
        elif exchange is None:
            begin_step(self._number, list(self.written()))
        else:
            raise KindError(
                "a guarded loss of several processes cannot be compiled: compile the model alone, "
                "or say guard=False"
            )
        own = rows_of(rows)
        counts = self._counts(rows, own.weight)
        if exchange is not None:
            counts = exchange.summed(torch.as_tensor(counts))
        seen = cast(Buffers, self._buffers)["evidence"]
        if is_tensor(counts):
            seen[1].add_(counts.to(seen))
        else:
            seen.numpy()[1] += counts
        if self.window is not None:
            self.window.push(own, self._size(exchange))

    def _size(self, exchange: Exchange | None) -> int:
        return WINDOW // (1 if exchange is None else exchange.world)

    def begin(self, exchange: Exchange | None = None) -> None:
        """What comes before a step: evidence is passed on, the window read where it is time."""
        self._call += 1
        buffers = cast(Buffers, self._buffers)
        buffers["calls"].fill_(self._call)
        step, part = divmod(self._call - 1, self.parts)
        if part:
            return
        if self._share < 1:  # asking a device for the counts would make the host wait
            buffers["evidence"][0].copy_(buffers["evidence"][1])
            if buffers["evidence"].is_cpu:
                self._share = float(self.blend())
        if self.judge is not None and step % EVERY == EVERY - 1:
            self._read(exchange)

    def written(self) -> tuple[Tensor, ...]:
        """The buffers that the beginning of a step writes."""
        return tuple(map(cast(Buffers, self._buffers).__getitem__, WRITTEN))

    def _counts(self, rows: Batch, weight: Tensor) -> Any:
        """Rows of each class in a batch; of each label, positive rows."""
        if rows.flat and rows.w is None and not self.cells.several:
            positive = float(weight.numpy() @ rows.y)
            return len(rows.y) - positive, positive
        there = (weight > 0).to(rows.logits.dtype)
        if rows.logits.ndim == 2:
            return torch.bincount(rows.actual, there, minlength=self.cells.side)
        if rows.table is not None and self.cells.several:
            label = rows.table % self.cells.labels
            return torch.bincount(label, there * rows.actual, minlength=self.cells.labels)
        positive = there @ rows.actual
        return torch.stack([there.sum() - positive, positive])

    def observed(self, exchange: Exchange | None = None) -> ObservedRows:
        """The window's rows; those of one process the oldest first."""
        if self.window is None:
            return ObservedRows(np.zeros(0), np.zeros(0), np.zeros(0))
        if exchange is None:
            rows = self.window.in_order(WINDOW)
        else:
            rows = TrackedRows(*exchange.rows(*self.window.rows(self._size(exchange))))
        weight = rows.weight.double().cpu().numpy()
        there = weight > 0
        scores, y = (x.double().cpu().numpy()[there] for x in (rows.scores, rows.place % 2))
        return ObservedRows(scores, y, weight[there])

    def reading(self, rows: ObservedRows) -> WindowReading | None:
        """What the window shows; None while it holds too few rows of a class."""
        assert self.judge is not None
        scores, y, weight = rows
        if min(y.sum(), len(y) - y.sum()) < FEW:
            return None
        point = operating_point(self.judge, scores, y, weight, MARGIN)
        calibration = intercept(scores, y, weight, self._calibration)
        offset = float(np.clip(calibration + point.threshold, -FARTHEST, FARTHEST))
        prices = price_at(self.judge, point.cells, 1 / (1 + math.exp(-offset)), LIMIT)
        return WindowReading(point, calibration, prices)

    def _read(self, exchange: Exchange | None) -> None:
        rows = self.observed(exchange)
        read = self.reading(rows)
        if read is None:
            return
        self._threshold, self._calibration = read.point.threshold, read.calibration
        self.threshold.fill_(read.point.threshold)
        self.calibration.fill_(read.calibration)
        self.margin.fill_(read.point.share)
        self._dearness = 1 + float(read.prices.sum())
        self.price_now.copy_(torch.as_tensor(read.prices))
        state = self._inner.dual_state(read.prices) if self.steers else None
        if state is not None:
            self.dual.copy_(torch.as_tensor(state))
        self._warn(rows, read)

    # --- one step --------------------------------------------------------------------------------

    def blend(self) -> Tensor:
        """Share of the step that is the method's; 0 until each class has been seen a few times."""
        return ((self.evidence[0].amin() - FEW) / (ENOUGH - FEW)).clamp(0, 1)

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        each = scale / self.cells.labels
        pull = cross_entropy_pull(rows) if rows.logits.ndim == 2 else rows.p - rows.y
        plain = rows.weighed(pull * each)
        share = on
        if self.training:
            share = on * (self._share if rows.host else self.blend())
        if rows.host and not share:
            return torch.as_tensor(plain)
        at_goal, memory = memory
        gradient = rows.of(self._inner.pull(at_goal, memory, prices, on, step, scale))
        own = share * (1 - self.anchor)
        gradient = gradient.reshape(plain.shape) * (own * self._loudness(prices))
        gradient += plain * (1 - own)
        cut = at_most(squared(gradient), STEEPEST**2 * squared(plain))
        if self.training:
            bounded = cast(Buffers, self._buffers)["bounded"]
            if not rows.host:
                bounded.add_((cut < 1).to(bounded))
            elif cut < 1:
                bounded.add_(1)
        return torch.as_tensor(
            gradient * square_root(cut) if not rows.host or cut < 1 else gradient
        )

    def _loudness(self, prices: Any) -> Any:
        """By what the method's gradient is multiplied, so that no row is pulled too hard.

        Its prices times its steepest step are at most :data:`LOUDEST`: row by row, that many times
        cross-entropy's gradient. It depends on prices alone, so that a batch in parts has the
        gradient of the whole.
        """
        worth = prices[:, : self._cells].reshape(-1, self.cells.side)
        if is_tensor(worth):
            apart = (worth.amax(1) - worth.amin(1)).amax()
        else:
            apart = max(max(row) - min(row) for row in worth.tolist())
        return at_most(apart * self._inner.steepness, LOUDEST)

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        if not self.steers or self._inner.dual_state(violations) is None:
            return self._inner.ascend(multipliers, violations, share)
        return self.dual if is_tensor(multipliers) else self.dual.numpy()

    # --- how it stands ---------------------------------------------------------------------------

    def status(self, step: int, alone: bool = True) -> LossStatus:
        """How the goal stands on the window, decided at the threshold.

        ``alone`` says that the window holds the rows of all processes, so that it is read anew.
        """
        assert self.judge is not None
        rows = self.observed()
        read = self.reading(rows) if alone else None
        threshold = float(self.threshold) if read is None else read.point.threshold
        blend = float(self.blend())
        phase = LossPhase.EVIDENCE if not blend else LossPhase.BLEND
        known = {
            "step": step,
            "phase": LossPhase.GOAL if blend == 1 else phase,
            "threshold": threshold,
            "rows": len(rows.y),
            "seen": tuple(int(n) for n in self.evidence[1].tolist()),
        }
        if not len(rows.y):
            return LossStatus(**known, decided=math.nan, objective=None, constraints=())
        decided = rows.scores >= threshold
        blocks = block_cells((2 * rows.y + decided).astype(np.intp), rows.weight, 4)
        objective, constraints = figures(self.judge, blocks, len(rows.y))
        prices = (self.price_now if read is None else read.prices).tolist()
        standings = tuple(
            ConstraintStatus(**vars(c.figure), bound=c.bound, held=c.held, price=price)
            for c, price in zip(constraints, prices, strict=True)
        )
        share = float(self.margin) if read is None else read.point.share
        return LossStatus(
            **known,
            decided=float(rows.weight @ decided / rows.weight.sum()),
            objective=objective,
            constraints=standings,
            alarms=(*window_alarms(self.judge, rows, threshold, share, prices), *self._scarce()),
        )

    def decided_at(self, alone: bool = True) -> float:
        """The threshold of the logit, as the window shows it now."""
        read = self.reading(self.observed()) if alone else None
        return float(self.threshold) if read is None else read.point.threshold

    def _scarce(self) -> tuple[Note, ...]:
        """What to say where many batches hold no row of a class."""
        return scarce(self.evidence[1].cpu().numpy(), int(self.calls), self.cells.columns.classes)

    def _warn(self, rows: ObservedRows, read: WindowReading) -> None:
        """Log an alarm once, when two looks in a row have found it."""
        self._looks += 1
        if self._looks % LOOK or self.judge is None or self._share < 1:
            return
        prices = read.prices.tolist()
        alarms = window_alarms(self.judge, rows, read.point.threshold, read.point.share, prices)
        for alarm in alarms:
            if alarm.code in self._found and alarm.code not in self._said:
                self._said.add(alarm.code)
                logger.warning("%s: %s", self.judge.goal, alarm.text)
        self._found = {alarm.code for alarm in alarms}

    def recovered(self, own: Recovered, alone: bool = True) -> Recovered:
        """What the method recovered, with the window's hard figures where it reads the window."""
        if self.judge is None:
            return own
        rows = self.observed()
        read = self.reading(rows) if alone else None
        threshold = float(self.threshold) if read is None else read.point.threshold
        if not len(rows.y):
            return replace(own, thresholds=(threshold,))
        place = (2 * rows.y + (rows.scores >= threshold)).astype(np.intp)
        cells = np.bincount(place, rows.weight, minlength=4) / rows.weight.sum()
        value, *excess = self.judge.stated(cells[None])
        prices = (self.price_now if read is None else read.prices).tolist()
        names = self.judge.constraints
        standings = tuple(map(GoalStanding, names, map(float, excess), prices))
        return Recovered(-self.judge.goal.sign * float(value), standings, (threshold,))

    # --- state -----------------------------------------------------------------------------------

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *more)
        self._mirror()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._number = numbered(self)  # a copy is not the program it was copied from

    def _mirror(self) -> None:
        """Numbers of the buffers on the host, where a step reads them without a look-up."""
        self._call = int(self.calls)
        self._threshold = float(self.threshold)
        self._calibration = float(self.calibration)
        self._dearness = 1 + float(self.price_now.sum())
        self._share = float(self.blend())


def at_most(size: Any, most: Any) -> Any:
    """By what something of this size is multiplied to be no larger than ``most``; at most 1."""
    if is_tensor(size):
        return (most / size.clamp(min=1e-30)).clamp(max=1.0)
    return most / size if size > most else 1.0


def squared(gradient: Any) -> Any:
    """Its squared norm: a number on the host."""
    if is_tensor(gradient):
        return (gradient * gradient).sum()
    return float(gradient @ gradient)
