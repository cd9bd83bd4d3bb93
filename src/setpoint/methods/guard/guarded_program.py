"""A goal's program, guarded: it starts on evidence, is anchored, and takes bounded steps.

Around the program of a method stand

1. *evidence*   cross-entropy alone until :data:`FEW` rows of each class have been seen, the method
                in full from :data:`ENOUGH` on, a blend between
2. *a window*   the newest rows, and the operating point that they show (:mod:`operating_point`):
                a threshold θ of the logit, with a margin. The method reads logits less θ, so that
                it decides where the goal wants its decisions
3. *an anchor*  a share of plain cross-entropy: the logits stay near those of probabilities, and
                the ranking has turned over in none of 1,500 runs
4. *prices*     multipliers at which the goal itself would choose θ: they are solved for at each
                reading and not integrated, so nothing winds up
5. *bounds*     prices are scaled so that the method pulls no row more than :data:`LOUDEST` times as
                hard as cross-entropy at θ does; the gradient of a batch is at most
                :data:`STEEPEST` times plain cross-entropy's. Where this last one cuts (``bounded``
                counts it), a batch in parts no longer has the gradient of the whole

Over groups one threshold decides all of them, and constraints that compare groups are priced by
control (:mod:`price_control`): the method reads logits less the threshold that is best at those
prices, which follow the constraints' violations there. Of several classes and labels the window
holds the decisions as they are (the largest logit, logits >= 0), and every price is controlled.
Methods that move thresholds of their own read logits as they are and keep their prices.

Tried and left: an anchor at logits moved towards θ, so that decisions at 0 become the goal's (a
slow linear model spends its steps on the move, and ranks .05 to .09 behind cross-entropy); bounds
on the whole alone (a price of 100 drowns the anchor); thresholds that follow the drift of the
newest scores (they lag behind its jitter).
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import is_tensor, square_root
from setpoint._core.errors import KindError
from setpoint._core.notes import NoteCode
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.methods.goal_program import GoalProgram, MixedProgram
from setpoint.methods.guard.alarms import like_probabilities, scarce
from setpoint.methods.guard.graph_call import begin_step, numbered
from setpoint.methods.guard.loss_status import LossPhase, LossStatus
from setpoint.methods.guard.operating_point import ObservedPoint, followed
from setpoint.methods.guard.price_control import TURN, controlled, observed_constraints
from setpoint.methods.guard.recent_rows import ObservedRows, Pool, TrackedRows, no_rows, rows_of
from setpoint.methods.guard.window_decisions import (
    JudgedGoal,
    cell_mass,
    controlled_constraints,
    row_count,
)
from setpoint.methods.guard.window_reading import FEW, WindowReader, WindowReading
from setpoint.methods.method import GoalStanding, Method, Recovered, not_totals
from setpoint.programs import Exchange, Priced, StreamProgram, TracksThresholds

logger = logging.getLogger("setpoint")

Buffers = dict[str, Tensor]
SCALARS = ("threshold", "shift", "calibration", "margin", "pulls")
WRITTEN = (*SCALARS, "dual", "price_now", "integrals", "evidence", "calls")

ENOUGH = 40.0  #: rows of each class from which the method counts in full; it begins at FEW
# in trials without a margin, 2048, 4096 and 8192 rows kept 83, 86 and 92 of 100 constraints
WINDOW = 8192  #: rows
EVERY = 16  #: steps from one reading to the next: a reading takes as long as a step or two
ANCHOR = 0.5  #: share of cross-entropy of a method that does not say
LOUDEST = 2.0  #: times cross-entropy's gradient on each row, at logits less θ: the method's
STEEPEST = 5.0  #: times plain cross-entropy's gradient: the whole
EARLY = 500  #: steps before alarms are raised: at first every model ranks and decides badly
LOOK = 8  #: readings from one look at the alarms to the next
# prices that followed the whole window went round: it is half as old as the model takes to answer
NEWEST = 2048  #: rows that controlled prices follow
LABELS = 8  #: of several labels the window holds this many times as many decisions, at most


def guarded(
    inner: GoalProgram, method: Method, goal: Goal, task: Task, parts: int = 1
) -> GuardedProgram:
    """The program of a goal with its guard; the method's own share of cross-entropy anchors it.

    A gap is divided into pairs: a price on |a − b| would turn round with the sign of a − b.
    """
    mix = inner.mix if isinstance(inner, MixedProgram) else 0.0
    judge = JudgedGoal(goal.lowered, inner.cells) if not_totals(goal, task) is None else None
    if judge is None or not judge.divides or isinstance(inner, TracksThresholds):
        return GuardedProgram(inner, mix or ANCHOR, judge, parts)
    own = method.lower(judge.goal, task)
    assert isinstance(own, GoalProgram)
    program = GuardedProgram(own, mix or ANCHOR, judge, parts)
    object.__setattr__(program, "undivided", inner)
    return program


class GuardedProgram(TracksThresholds, StreamProgram):
    """The program of a method with evidence, window, anchor, prices and bounds.

    Parameters
    ----------
    inner : GoalProgram
    anchor : float
        Share of cross-entropy.
    judge : JudgedGoal or None
        The goal as it was stated, where decisions are judged; by it the window is read.
    parts : int
        Calls that make up one step.

    Attributes
    ----------
    threshold, calibration : torch.Tensor
        θ and a; 0 until the window has been read.
    shift : torch.Tensor
        The threshold that the method decides at: θ, or the best one at controlled prices.
    integrals : torch.Tensor
        Of the controlled prices, in equal pulls.
    pulls : torch.Tensor
        The dearest controlled price, in equal pulls; the anchor, part of the objective, gives way.
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
    process : torch.Tensor
        The number of the process whose rows the window holds, and how many there are.
    """

    inner: GoalProgram
    judge: JudgedGoal | None
    window: Pool | None
    searches: bool  #: whether one threshold decides and is searched
    controls: np.ndarray  #: (m,) whether a price is controlled; else it is solved for
    _inner: GoalProgram
    _tracker: TracksThresholds | None
    threshold: Tensor
    shift: Tensor
    integrals: Tensor
    pulls: Tensor
    calibration: Tensor
    margin: Tensor
    dual: Tensor
    price_now: Tensor
    evidence: Tensor
    bounded: Tensor
    calls: Tensor
    process: Tensor
    start: Tensor

    def __init__(
        self, inner: GoalProgram, anchor: float, judge: JudgedGoal | None, parts: int
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
        several = min(self.cells.labels, LABELS)
        self.window = None if judge is None else Pool(WINDOW * several)
        self.searches = judge is not None and self.cells.kind == "binary"
        self.controls = controlled_constraints(judge)
        self.reader = None if judge is None else WindowReader(judge, self.controls)
        self._controlled = self.steers and bool(self.controls.any())
        inner.charges_held = self._controlled
        classes = len(inner.presence(torch.zeros(inner.shape)))
        self.register_buffer("start", inner.start.clone(), False)
        self.register_buffer("dual", inner.start.clone())
        constraints = 0 if judge is None else len(judge.owner)
        self.register_buffer("price_now", torch.ones(constraints, dtype=torch.float64))
        self.register_buffer("integrals", torch.ones(constraints, dtype=torch.float64))
        for name in SCALARS:
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))
        self.register_buffer("evidence", torch.zeros(2, classes))
        self.register_buffer("bounded", torch.zeros((), dtype=torch.long))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("process", torch.tensor([0, 1]))
        self._mirror()
        self._number = numbered(self)
        self._batch = 0  # rows of the current call
        self._seen_by_all: ObservedRows | None = None  # of the last reading of several processes
        # what has been logged, no part of the state
        self._looks, self._found, self._said = 0, set[NoteCode](), set[NoteCode]()

    def bare(self) -> GoalProgram:
        """The method's own program, with its own share of cross-entropy."""
        inner = self.__dict__.get("undivided", self.inner)
        if isinstance(inner, MixedProgram):
            inner.mix = self.own_mix
        inner.charges_held = False
        return inner

    # --- what the method itself says -------------------------------------------------------------

    def rows(self, outputs: Tensor, target: Tensor, weight: Tensor | None, group: Any) -> Batch:
        return self._inner.rows(outputs, target, weight, group)

    def mass(self, rows: Batch) -> tuple[Any, int]:
        return self._inner.mass(rows)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        """At logits less θ, where the method decides at 0."""
        if self.steers and self.searches:
            rows = rows.less(self._shift if rows.host else self.shift.to(rows.logits))
        totals, memory = self._inner.measure(rows, step)
        return totals, (rows, memory)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        """The value is a mean of objective and violations, weighed as they are priced."""
        priced = self._inner.price(totals, multipliers)
        if not self.steers:
            return priced
        host = not is_tensor(totals)
        dearness = self._dearness if host else 1 + self.price_now.abs().sum().to(totals)
        return priced._replace(value=priced.value / dearness)

    def base(self, rows: Batch) -> Any:
        return self._inner.base(rows)

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self._anchor(not is_tensor(base)))
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
        return {**own, "threshold": float(self.threshold)} if self.searches else own

    # --- evidence and window ---------------------------------------------------------------------

    def settle(self, rows: Batch, step: Tensor, exchange: Exchange | None, alone: bool) -> None:
        """Read the window every so often, before the batch; then take the batch's rows in.

        A batch that comes in parts is read at what stood before its first part.
        """
        if self._tracker is not None:
            self._tracker.settle(rows, step, exchange, alone)
        self._batch = rows.rows
        if exchange is not None and self._world != exchange.world:
            self._world = exchange.world
            self.process.copy_(torch.tensor([exchange.rank, exchange.world]))
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
        if own.scores.ndim == 2:  # the class that is decided is all that the window keeps
            own = own._replace(scores=own.scores.argmax(1).to(own.weight.dtype))
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
        size = WINDOW if self.window is None else self.window.size
        return size // (1 if exchange is None else exchange.world)

    def begin(self, exchange: Exchange | None = None) -> None:
        """What comes before a step: evidence is passed on, the window read where it is time."""
        self._call += 1
        buffers = cast(Buffers, self._buffers)
        calls, evidence = buffers["calls"], buffers["evidence"]
        calls.fill_(self._call)
        step, part = divmod(self._call - 1, self.parts)
        if part:
            return
        if not evidence.is_cpu:
            evidence[0].copy_(evidence[1])
        else:
            evidence.numpy()[0] = evidence.numpy()[1]
            if self._share < 1:  # asking a device would make the host wait
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

    def observed(self, exchange: Exchange | None = None, newest: int | None = None) -> ObservedRows:
        """The window's rows, or the newest of them; those of one process the oldest first."""
        if self.window is None:
            return no_rows()
        world = 1 if exchange is None else exchange.world
        rows = self.window.in_order(self._size(exchange))
        if newest is not None:
            rows = TrackedRows(*(x[-(newest // world) :] for x in rows))
        if exchange is not None:
            rows = TrackedRows(*exchange.rows(*rows))
        weight = rows.weight.double().cpu().numpy()
        there = weight > 0
        scores, place = rows.scores.double().cpu().numpy()[there], rows.place.cpu().numpy()[there]
        side = self.cells.side
        if self.cells.shape[0] == 1:  # divisions of thousands of numbers take as long as a search
            table = np.broadcast_to(np.intp(0), place.shape)
            return ObservedRows(scores, place.astype(float), weight[there], table)
        return ObservedRows(scores, (place % side).astype(float), weight[there], place // side)

    def reading(self, rows: ObservedRows) -> WindowReading | None:
        """What the window shows; None while it holds too few rows (of a class)."""
        assert self.reader is not None
        return self.reader.reading(rows, self._calibration, self.price_now.cpu().numpy())

    def _read(self, exchange: Exchange | None) -> None:
        rows = self.observed(exchange)
        read = self.reading(rows)
        if read is None:
            return
        shift, prices = read.point.threshold, read.prices
        if self._controlled and self._share > 0:
            shift, prices = self._control(rows, read, exchange)
        self._calibration = read.calibration
        self._shift = shift
        self.threshold.fill_(read.point.threshold)
        self.shift.fill_(shift)
        self.calibration.fill_(read.calibration)
        self.margin.fill_(read.point.share)
        self._dearness = 1 + float(np.abs(prices).sum())
        self.price_now.copy_(torch.as_tensor(prices))
        state = self._inner.dual_state(prices) if self.steers else None
        if state is not None:
            self.dual.copy_(torch.as_tensor(state))
        self._seen_by_all = None if exchange is None else rows
        self._warn(rows, read._replace(prices=prices))

    def _control(
        self, rows: ObservedRows, read: WindowReading, exchange: Exchange | None
    ) -> tuple[float, np.ndarray]:
        """The threshold that is best without controlled constraints, and the prices moved there."""
        assert self.judge is not None
        assert self.reader is not None
        point = self.reader.steered(rows) if self.searches else read.point
        renewed = EVERY / TURN
        if exchange is None:  # processes may have batches of different sizes, and must agree
            rows_since = EVERY * self.parts * self._batch
            renewed = min(renewed, rows_since * self.cells.labels / self._size(None))
        recent = self.observed(exchange, NEWEST * min(self.cells.labels, LABELS))
        cells = cell_mass(self.cells, recent, point.threshold)
        seen = observed_constraints(self.judge, cells, row_count(self.cells, recent))
        moved = controlled(self.integrals.cpu().numpy(), seen, renewed)
        self.integrals.copy_(torch.as_tensor(moved.integrals))
        pulls = np.abs(moved.prices / seen.units)[self.controls].max()
        self._pulls = max(1.0, float(pulls))
        self.pulls.fill_(self._pulls)
        if not self.searches:
            return 0.0, moved.prices
        charges = np.where(self.controls, moved.prices, np.nan)
        return point.threshold, self.reader.solved(rows, point, read.calibration, charges)

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
        own = share * (1 - self._anchor(rows.host))
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

    def _anchor(self, host: bool) -> Any:
        """Share of cross-entropy: in proportion to what the objective weighs beside constraints."""
        if not self._controlled:
            return self.anchor
        if host:
            return self.anchor * 2 / (1 + self._pulls)
        return self.anchor * 2 / (1 + self.pulls.clamp(min=1).to(self.start))

    def _loudness(self, prices: Any) -> Any:
        """By what the method's gradient is multiplied, so that no row is pulled too hard.

        Its prices times its steepest step are at most :data:`LOUDEST`: row by row, that many times
        the gradient of cross-entropy at logits less θ. It depends on prices alone, so that a batch
        in parts has the gradient of the whole.
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
        """How the goal stands on the window, decided as the loss decides.

        ``alone`` says that the window holds the rows of all processes, so that it is read anew.
        Else it is as at the last reading, which all processes have made together.
        """
        assert self.reader is not None
        rows, read = self._now(alone)
        if read is None:
            at = ObservedPoint(float(self.threshold), float(self.margin), np.zeros(0))
            read = WindowReading(at, self._calibration, self.price_now.cpu().numpy())
        blend = float(self.blend())
        phase = LossPhase.EVIDENCE if not blend else LossPhase.BLEND
        known = {
            "step": step,
            "phase": LossPhase.GOAL if blend == 1 else phase,
            "seen": tuple(int(n) for n in self.evidence[1].tolist()),
        }
        status = self.reader.status(rows, read, known)
        if not len(rows.y):
            return status
        alarms = () if int(self.calls) < EARLY * self.parts else status.alarms
        if self.searches:
            alarms = (*like_probabilities(rows, int(self.calls)), *alarms)
        seen, classes = self.evidence[1].cpu().numpy(), self.cells.columns.classes
        return replace(status, alarms=(*alarms, *scarce(seen, int(self.calls), classes)))

    def decided_at(self, alone: bool = True) -> float:
        """The threshold of the logit, as the window shows it now; 0 of classes and labels."""
        if not self.searches:
            return 0.0
        _, read = self._now(alone)
        return float(self.threshold) if read is None else read.point.threshold

    def _now(self, alone: bool) -> tuple[ObservedRows, WindowReading | None]:
        """The window's rows and what they show now, or those of the last common reading."""
        if not alone:
            return self._seen_by_all or no_rows(), None
        rows = self.observed()
        read = self.reading(rows)
        if read is None or not self.searches:
            return rows, read
        point = replace(read.point, threshold=followed(read.point.threshold, rows.scores))
        return rows, read._replace(point=point)

    @property
    def _early(self) -> bool:
        """Whether what goes wrong may still be that training has just begun."""
        return (self._share < 1 and self.evidence.is_cpu) or self._call < EARLY * self.parts

    def _warn(self, rows: ObservedRows, read: WindowReading) -> None:
        """Log an alarm once, when two looks in a row have found it."""
        self._looks += 1
        if self._looks % LOOK or self.judge is None or self._early:
            return
        assert self.reader is not None
        alarms = self.reader.alarms(rows, read)
        for alarm in alarms:
            if alarm.code in self._found and alarm.code not in self._said:
                self._said.add(alarm.code)
                logger.warning("%s: %s", self.judge.whole_goal, alarm.text)
        self._found = {alarm.code for alarm in alarms}

    def recovered(self, own: Recovered, alone: bool = True) -> Recovered:
        """What the method recovered, with the window's hard figures where it reads the window."""
        if self.judge is None:
            return own
        rows, read = self._now(alone)
        threshold = float(self.threshold) if read is None else read.point.threshold
        if not len(rows.y):
            thresholds = (threshold,) if self.searches else own.thresholds
            return replace(own, thresholds=thresholds)
        value, *excess = self.judge.stated(cell_mass(self.cells, rows, threshold)[None])
        prices = (self.price_now if read is None else read.prices).tolist()
        found: dict[str, GoalStanding] = {}
        for name, by, price in zip(self.judge.constraints, excess, prices, strict=True):
            # the pairs of a gap share a name
            old = found.get(name, GoalStanding(name, -math.inf, 0.0))
            found[name] = GoalStanding(name, max(old.excess, float(by)), old.multiplier + price)
        objective = -self.judge.goal.sign * float(value)
        thresholds = (threshold,) if self.searches else own.thresholds
        return Recovered(objective, tuple(found.values()), thresholds)

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
        self._world = int(self.process[1])
        self._shift = float(self.shift)
        self._pulls = max(1.0, float(self.pulls))
        self._calibration = float(self.calibration)
        self._dearness = 1 + float(self.price_now.abs().sum())
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
