"""The running loss: a program, the totals of the stream of batches, and one gradient per call.

Each call takes a batch of outputs and returns a scalar whose value is the goal at the running
totals and whose gradient is

    prices at the running totals  ×  ∂(totals of the batch)/∂(outputs).

The totals that price a batch do not hold the batch itself, so the gradient is unbiased at every
batch size, and a batch that comes in n parts gives the same gradient as the whole. They forget:
after ``memory`` further rows a row counts 1/e. A program that keeps something for each row says by
how much a batch changes the totals of all rows, and nothing is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from setpoint._core.arrays import assign, exponential, inverse, total, where
from setpoint._core.errors import KindError
from setpoint._core.options import number, whole
from setpoint.programs import GathersRows, KeepsRows, Priced, StreamProgram, TracksThresholds
from setpoint.programs.column_rules import ColumnWatch, check_columns, lies_on_host
from setpoint.training.distributed import Processes, gathered, summed, world_size

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

# A value and a gradient that were computed apart, as one scalar to go backward from.


def attached(outputs: Tensor, value: Any, gradient: Tensor) -> Tensor:
    """A scalar with this value, and with this gradient in the outputs."""
    if outputs.dtype != gradient.dtype or torch.compiler.is_compiling():
        return _Attach.apply(outputs, value, gradient)  # type: ignore[return-value]
    # ⟨gradient, outputs⟩ has that gradient, at the cost of one operation; its value is replaced.
    if outputs.ndim > 1:
        outputs, gradient = outputs.reshape(-1), gradient.view(-1)
    result = torch.dot(gradient, outputs)
    result.detach().fill_(value)
    return result


class _Attach(torch.autograd.Function):
    """The same for half precision, multiplied first and narrowed afterwards, and for graphs."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, value: Any, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.kind = outputs.dtype, outputs.shape
        return gradient.new_zeros(()) + value

    @staticmethod
    def backward(ctx: Any, *scale: Tensor) -> Any:
        dtype, shape = ctx.kind
        return (ctx.saved_tensors[0] * scale[0]).to(dtype).view(shape), None, None


logger = logging.getLogger("setpoint")

Groups = Tensor | Mapping[str, Tensor] | None  #: codes of the group columns, of one or by name
Buffers = dict[str, Tensor]
MOVING = ("totals", "prices", "multipliers")  #: the buffers that every step moves
#: calls before the totals are looked at: enough to know the share of batches without a class to a
#: few percent
CALLS_BEFORE_NOTICES = 100


def _autocast(outputs: Any) -> bool:
    """Whether operations on outputs are being narrowed."""
    on_host = getattr(outputs, "is_cpu", True)
    return torch.is_autocast_enabled("cpu" if on_host else outputs.device.type)


def _plain(outputs: Any) -> Any:
    """Outputs that ask for no gradient; what is no tensor is refused later."""
    return outputs.detach() if isinstance(outputs, Tensor) else outputs


def _gradients_allowed() -> AbstractContextManager[Any]:
    """Leave inference mode, in which prices that are gradients cannot be taken."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return nullcontext()
    return torch.inference_mode(False)


def check_options(program: StreamProgram, memory: float, accumulate: int) -> None:
    """Refuse options that the program cannot be run with."""
    if accumulate > 1 and not memory:
        raise KindError(
            f"accumulate={accumulate} needs running totals: a part of a batch cannot be priced at "
            "totals that are not there yet; leave memory as it is"
        )
    if accumulate > 1 and isinstance(program, TracksThresholds) and program.needs_whole_batch:
        raise KindError(
            f'accumulate={accumulate}: correction="soft" and pool=0 take thresholds from a '
            "whole batch; leave accumulate at 1, or correction and pool as they are"
        )
    if not isinstance(program, KeepsRows):
        return
    if not memory:
        raise KindError(
            "memory=0 prices each batch at its own totals, and a table knows those of all rows; "
            "leave memory as it is"
        )
    if accumulate > 1:
        raise KindError(
            f"accumulate={accumulate}: a table of rows moves with every call; leave accumulate at "
            '1 and take larger batches, or form="eliminated", which can wait'
        )


class LossWatch:
    """Calls so far, and what was noted down to be looked at. No part of the loss's state."""

    def __init__(self) -> None:
        self.calls = 0
        self.noted: tuple[Tensor, ...] = ()
        self.columns = ColumnWatch()  #: labels and weights on a device


class BatchTotals(NamedTuple):
    """A batch as measured: sums over its rows, of all processes where the loss is shared.

    ``totals`` Σ wᵢ c(zᵢ), ``base`` Σ wᵢ of the base loss, ``mass`` Σ wᵢ, ``count`` the number of
    rows, ``memory`` what ``pull`` wants to remember.
    """

    totals: Any
    base: Any
    mass: Any
    count: Any
    memory: Any


class RunningLoss(nn.Module):
    """A program run on a stream of batches.

    In evaluation mode (``loss.eval()``) nothing is remembered: a batch is read at its own totals.

    Parameters
    ----------
    program : StreamProgram
    memory : float
        Rows after which a row counts 1/e in the running totals. 0: every batch is priced at its own
        totals, which is biased for small batches. Not used where the program keeps rows.
    warmup : int
        Steps of the program's base loss alone, while totals are gathered; at least the first step
        is one unless ``memory`` is 0.
    accumulate : int
        Number of parts in which a batch comes; totals and multipliers move after the last.
    process_group : torch.distributed.ProcessGroup, optional
        The processes whose rows are one batch; gradients are taken to be averaged over them, as
        DistributedDataParallel and fully_shard do.

    Attributes
    ----------
    totals : torch.Tensor
        Running totals Σ wᵢ c(zᵢ), fading; float64 and of all rows where the program keeps rows.
    multipliers : torch.Tensor
        One per constraint.
    steps : torch.Tensor
        Steps done.
    """

    program: StreamProgram
    totals: Tensor
    prices: Tensor
    multipliers: Tensor
    steps: Tensor
    seen: Tensor
    _program: StreamProgram
    _tracker: TracksThresholds | None
    _row_keeper: KeepsRows | None

    def __init__(
        self,
        program: StreamProgram,
        *,
        memory: float = 8192,
        warmup: int = 1,
        accumulate: int = 1,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        self.memory = number("memory", memory, 0, error=KindError)
        self.warmup = whole("warmup", warmup, 0, floats=True, error=KindError)
        self.accumulate = whole("accumulate", accumulate, 1, floats=True, error=KindError)
        check_options(program, self.memory, self.accumulate)
        self.process_group = process_group
        self._take(program)
        zero = torch.zeros(program.shape)
        self.register_buffer("totals", zero.double() if self._row_keeper else zero)
        self.register_buffer("prices", zero.clone())
        self.register_buffer("multipliers", program.start.clone())
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("seen", program.presence(zero), persistent=False)
        if self.accumulate > 1:
            self.register_buffer("pending", zero.clone())
            self.register_buffer("parts", torch.zeros((), dtype=torch.long))  # so far
            self.register_buffer("size", torch.zeros((), dtype=torch.long))  # their rows
        self._constrained = program.start.numel() > 0
        self._watch = LossWatch()
        self._views: Any = [], []

    def _take(self, program: StreamProgram) -> None:
        self.program = program
        # found without the search through submodules
        self.__dict__["_program"] = program
        self.__dict__["_tracker"] = program if isinstance(program, TracksThresholds) else None
        self.__dict__["_row_keeper"] = program if isinstance(program, KeepsRows) else None

    def forward(
        self,
        outputs: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        group: Groups = None,
        row: Tensor | None = None,
    ) -> Tensor:
        """The loss on a batch: a scalar, finite for every finite input.

        Outputs that no gradient is asked for move nothing: they are read as in evaluation mode,
        under ``no_grad`` and ``inference_mode`` and where they were detached. :meth:`observe` takes
        such a batch in.

        ``row`` holds the number of each row among all rows; only losses that are ``indexed`` ask
        for it.
        """
        if not torch.is_grad_enabled() or not getattr(outputs, "requires_grad", True):
            return self._read(outputs, target, weight, group, row)
        if _autocast(outputs):
            return self._wide(outputs, target, weight, group, row)
        return self._loss(outputs, target, weight, group, row)

    def observe(
        self,
        outputs: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        group: Groups = None,
        row: Tensor | None = None,
    ) -> Tensor:
        """Take a batch in that no gradient is asked for; its loss.

        Totals, prices, thresholds and steps move as in a step of training: to fill the totals
        before the first step, or to follow a model that something else trains.

        Raises
        ------
        KindError
            In evaluation mode, where nothing is remembered.
        """
        if not self.training:
            raise KindError(
                "the loss is in evaluation mode, where it remembers nothing: call loss.train() "
                "before loss.observe(…)"
            )
        with _gradients_allowed():
            return self._wide(_plain(outputs), target, weight, group, row)

    def _read(
        self, outputs: Tensor, target: Tensor, weight: Tensor | None, group: Groups, row: Any
    ) -> Tensor:
        """The loss in evaluation mode: nothing is learned, as in validation between two steps."""
        was = self.training
        self.eval()
        try:
            with _gradients_allowed():
                return self._wide(_plain(outputs), target, weight, group, row)
        finally:
            self.train(was)

    def _wide(
        self, outputs: Tensor, target: Tensor, weight: Tensor | None, group: Groups, row: Any
    ) -> Tensor:
        """The loss outside autocast: sums and prices are never narrowed."""
        if not _autocast(outputs):
            return self._loss(outputs, target, weight, group, row)
        with torch.autocast(outputs.device.type, enabled=False):
            return self._loss(outputs, target, weight, group, row)

    def _loss(
        self,
        outputs: Tensor,
        target: Tensor,
        weight: Tensor | None,
        group: Groups,
        row: Tensor | None,
    ) -> Tensor:
        if getattr(outputs, "ndim", 1) > 2:
            outputs, target, weight, group, row = self._flat(outputs, target, weight, group, row)
        program, world = self._program, world_size(self.process_group)
        own = None  # where this process's rows lie among those of all
        if world > 1 and isinstance(program, GathersRows):
            columns = [outputs, target, weight]
            own, (everyone, target, weight) = gathered(columns, self.process_group)
            rows = program.rows(everyone, target, weight, None)
        else:
            rows = program.rows(outputs, target, weight, group)
        if not torch.compiler.is_compiling():
            self._look(rows)
        if self.training and self._row_keeper is not None:
            on = self.steps >= max(self.warmup, 1)
            self._row_keeper.place(rows, row, self._exchange(), self.prices, on)
        if self.training and self._tracker is not None:
            self._tracker.settle(rows, self.steps, self._exchange(), not self.memory)
        value, gradient = self._step(rows, world)
        return attached(outputs, value, gradient if own is None else gradient[own])

    def _flat(
        self, outputs: Tensor, target: Any, weight: Any, group: Any, row: Any
    ) -> tuple[Tensor, Any, Any, Any, Any]:
        """Outputs of more than two dimensions as rows, where a loss knows how."""
        return outputs, target, weight, group, row

    def _exchange(self) -> Processes | None:
        return Processes(self.process_group) if world_size(self.process_group) > 1 else None

    # --- what a program keeps beside the totals ---------------------------------------------------

    @property
    def indexed(self) -> bool:
        """Whether it keeps something for each row and asks for ``row``."""
        return self._row_keeper is not None

    def whole_state(self) -> dict[str, Any]:
        """``state_dict``, with what is shared out over processes put together.

        Every process must call it at once. It can be loaded by any number of processes.
        """
        if self._row_keeper is None:
            return self.state_dict()
        rest = self._row_keeper.gathered(self._exchange())
        return {**self.state_dict(), **{f"program.{name}": x for name, x in rest.items()}}

    @property
    def refreshes(self) -> bool:
        """Whether ``refresh`` has something to do."""
        return self._tracker is not None and self._tracker.refreshes

    @property
    def follows(self) -> bool:
        """Whether ``follow`` wants the last batch's outputs after each step."""
        return self._tracker is not None and self._tracker.follows

    def refresh(
        self,
        outputs: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        group: Groups = None,
    ) -> None:
        """Set thresholds anew from many rows at once, by outputs of a model in evaluation mode."""
        if self._tracker is not None:
            if outputs.ndim > 2:
                outputs, target, weight, group, _ = self._flat(outputs, target, weight, group, None)
            rows = self._program.rows(outputs.detach(), target, weight, group)
            self._tracker.refresh(rows, self._exchange())

    def follow(self, outputs: Tensor) -> None:
        """Move thresholds by what the optimiser's step did to the last batch's outputs."""
        if self._tracker is not None:
            self._tracker.follow(outputs, self._exchange())

    def shown(self) -> dict[str, Any]:
        """What a history should show beside the loss, such as thresholds."""
        return {} if self._tracker is None else self._tracker.shown()

    # --- one step: measure, price, pull, keep -----------------------------------------------------

    def _step(self, rows: Any, world: int) -> tuple[Any, Tensor]:
        """Price the batch and move the totals; the loss and its gradient in the outputs."""
        # buffers are taken from their dictionary, since a module's attributes are slow to find;
        # on the host ``small`` gives an array that shares the buffer's memory
        program, small, buffers = self._program, rows.small, cast(Buffers, self._buffers)
        batch = self._measure(rows, world)
        per_row = inverse(batch.mass)
        step = buffers["steps"]
        steps = small(step)
        state = self._state(rows.host)
        totals, prices, multipliers = state
        if self.training and self.memory:
            on = (steps >= max(self.warmup, 1)) * 1.0
            totals_now, fading, complete = self._joined(batch, totals, steps, small)
            at = totals_now * inverse(program.whole(totals_now))
            if self._row_keeper is not None and not rows.host:
                at = at.to(rows.logits.dtype)
            priced = program.price(at, multipliers)
        else:  # at the batch's own totals, which price itself
            on = (steps >= self.warmup) * 1.0 if self.training else 1.0 + 0 * per_row
            totals_now, fading, complete = batch.totals, 0.0, True
            priced = program.price(batch.totals * per_row, multipliers)
            prices = priced.prices
        gradient = program.pull(rows, batch.memory, prices, on, step, per_row * world)
        if self.training:
            share = on * (1 - fading)
            self._keep(state, totals_now, priced, share, complete, batch.base)
            assign(step, steps + complete)
            if self._watch.calls <= CALLS_BEFORE_NOTICES:
                assign(buffers["seen"], small(buffers["seen"]) + program.presence(batch.totals))
        return program.value(priced, batch.base * per_row, on), gradient

    def _measure(self, rows: Any, world: int) -> BatchTotals:
        """The sums of a batch, over all processes."""
        program = self._program
        totals, memory = program.measure(rows, cast(Buffers, self._buffers)["steps"])
        base = program.base(rows)
        mass, count = program.mass(rows)
        if world > 1 and not isinstance(program, GathersRows):
            totals, base, mass, count = summed(
                [totals, base, mass, count], rows.logits, self.process_group
            )
        return BatchTotals(totals, base, mass, count, memory)

    def _state(self, host: bool) -> list[Any]:
        """Totals, prices and multipliers; on the host as arrays that share the buffers' memory."""
        buffers = [cast(Buffers, self._buffers)[name] for name in MOVING]
        if not host:
            return buffers
        seen, views = self._views
        if len(seen) != len(buffers) or any(map(is_not, seen, buffers)):
            views = [buffer.numpy() for buffer in buffers]
            self._views = buffers, views
        return views

    def __getstate__(self) -> dict[str, Any]:
        """A copy takes arrays of its own buffers."""
        return {**self.__dict__, "_views": ([], [])}

    def _joined(
        self, batch: BatchTotals, totals: Any, steps: Any, small: Callable[[Any], Any]
    ) -> tuple[Any, Any, Any]:
        """Running totals with the batch, what is left of the old ones, and whether to move."""
        if self._row_keeper is not None:  # nothing is forgotten
            return batch.totals + totals, self._row_keeper.fading(steps, batch.count), True
        if self.accumulate == 1:
            fading = exponential(-batch.count / self.memory)
            return batch.totals + totals * fading, fading, True
        buffers = cast(Buffers, self._buffers)
        finite = total(batch.totals)
        good = finite - finite == 0  # a part that is not finite counts as a part without rows
        pending = small(buffers["pending"]) + where(good, batch.totals, 0.0)
        parts = small(buffers["parts"]) + 1
        size = small(buffers["size"]) + where(good, batch.count, 0.0)
        complete = parts >= self.accumulate
        going = 1 - complete * 1
        for name, value in (("pending", pending), ("parts", parts), ("size", size)):
            assign(buffers[name], value * going)
        fading = exponential(-size / (0 * pending.sum() + self.memory))
        return pending + totals * fading, fading, complete

    def _keep(
        self, state: list[Any], totals: Any, priced: Priced, share: Any, complete: Any, base: Any
    ) -> None:
        """Take totals, prices and multipliers over, unless the batch was not finite."""
        finite = total(priced.prices)
        if self._row_keeper is None:  # whose totals are finite, and must follow what it keeps
            finite = finite + 0 * base
        good = (finite - finite == 0) & complete
        new = [totals, priced.prices]
        if self._constrained:
            new.append(self._program.ascend(state[2], priced.violations, share))
        if isinstance(good, Tensor):
            new = [torch.where(good, x, y) for x, y in zip(new, state, strict=False)]
        elif not good:
            return
        for buffer, value in zip(state, new, strict=False):  # no multipliers, nothing to move
            buffer[...] = value

    # --- what a user should know ------------------------------------------------------------------

    def _look(self, rows: Any) -> None:
        """Check labels and weights, of the first batch all values; later say what totals tell.

        Nobody waits for a device after the first batch: faults of labels and the totals are copied
        to the host and read at a later call.
        """
        watch = self._watch
        if watch.calls == 0:
            self._program.check(rows)
        elif lies_on_host(rows.logits):
            check_columns(rows.checked)
        else:
            watch.columns.see(rows.checked)
        if not self.training:
            return
        watch.calls += 1
        if watch.calls == CALLS_BEFORE_NOTICES + 1:
            watch.noted = tuple(x.to("cpu", non_blocking=True) for x in (self.totals, self.seen))
        elif watch.calls == 2 * CALLS_BEFORE_NOTICES:
            totals, seen = watch.noted
            for sentence in self.program.notices(totals, 1 - seen / CALLS_BEFORE_NOTICES):
                logger.warning(sentence)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow the model to another device or type, but never below float32."""
        before = [(module, dict(module._buffers)) for module in self.modules()]
        super()._apply(fn, recurse)
        for module, buffers in before:
            for name, old in buffers.items():
                new = module._buffers[name]
                if new is None:
                    continue
                exact = module is self and name == "totals" and self._row_keeper is not None
                if new.dtype in (torch.float16, torch.bfloat16) or exact:
                    module._buffers[name] = cast(Tensor, old).to(new.device)
        return self
