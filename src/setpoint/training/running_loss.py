"""The running loss: a program, the totals of the stream of batches, and one gradient per call.

Each call takes a batch of outputs and returns a scalar whose value is the goal at the running
totals and whose gradient is

    prices at the running totals  ×  ∂(totals of the batch)/∂(outputs).

The totals that price a batch do not hold the batch itself, so the gradient is unbiased at every
batch size, and a batch that comes in n parts gives the same gradient as the whole. They forget:
after ``memory`` further rows a row counts 1/e. A program that keeps something for each row is
*exact*: it says by how much a batch changes the totals of all rows, and nothing is forgotten.
"""

from __future__ import annotations

import logging
import math
from operator import is_not
from typing import Any, cast

import torch
from torch import Tensor, nn

from setpoint._core.arrays import exponential, inverse, where, whole
from setpoint._core.errors import KindError
from setpoint._core.options import is_real
from setpoint.programs import Priced, StreamProgram
from setpoint.training.distributed import Processes, gathered, summed, world_size

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


# What a running loss refuses when it is made.


def check_options(program: StreamProgram, memory: Any, warmup: Any, accumulate: Any) -> None:
    """Refuse options that mean nothing, or that the program cannot be run with."""
    if not is_real(memory) or not 0 <= memory < math.inf:
        raise KindError(f"memory={memory!r}: a number of rows, 0 or more")
    if not is_real(warmup) or not 0 <= warmup < math.inf or warmup != int(warmup):
        raise KindError(f"warmup={warmup!r}: a whole number of steps, 0 or more")
    if not is_real(accumulate) or not 1 <= accumulate < math.inf or accumulate % 1:
        raise KindError(f"accumulate={accumulate!r}: a whole number, 1 or more")
    if accumulate > 1 and not memory:
        raise KindError(
            f"accumulate={accumulate} needs running totals: a part of a batch cannot be priced at "
            "totals that are not there yet; leave memory as it is"
        )
    if accumulate > 1 and program.together:
        raise KindError(
            f'accumulate={accumulate}: correction="soft" and pool=0 take thresholds from a '
            "whole batch; leave accumulate at 1, or correction and pool as they are"
        )
    if not program.exact:
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


logger = logging.getLogger("setpoint")

Held = dict[str, Tensor]
EVERY = 100  #: calls before the totals are looked at


class LossWatch:
    """Calls so far, and the totals once noted down to be looked at. No part of the loss's state."""

    def __init__(self) -> None:
        self.turn = 0
        self.noted: tuple[Tensor, ...] = ()


class RunningLoss(nn.Module):
    """A program run on a stream of batches.

    In evaluation mode (``loss.eval()``) nothing is remembered: a batch is read at its own totals.

    Parameters
    ----------
    program : StreamProgram
    memory : float
        Rows after which a row counts 1/e in the running totals. 0: every batch is priced at its own
        totals, which is biased for small batches. Of no account where the program is exact.
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
        Running totals Σ wᵢ c(zᵢ), fading; float64 and of all rows where the program is exact.
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

    def __init__(
        self,
        program: StreamProgram,
        *,
        memory: float = 8192,
        warmup: int = 1,
        accumulate: int = 1,
        process_group: Any = None,
    ) -> None:
        super().__init__()
        check_options(program, memory, warmup, accumulate)
        self.program = program
        self.memory, self.warmup, self.accumulate = float(memory), int(warmup), int(accumulate)
        self.process_group = process_group
        zero = torch.zeros(program.shape)
        self.register_buffer("totals", zero.double() if program.exact else zero)
        self.register_buffer("prices", zero.clone())
        self.register_buffer("multipliers", program.start.clone())
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("seen", program.presence(zero), persistent=False)
        if self.accumulate > 1:
            self.register_buffer("pending", zero.clone())
            self.register_buffer("parts", torch.zeros((), dtype=torch.long))  # so far
            self.register_buffer("size", torch.zeros((), dtype=torch.long))  # their rows
        self.__dict__["_program"] = program  # found without the search through submodules
        self._constrained = program.start.numel() > 0
        self._kept = ("totals", "prices", "multipliers")[: 3 if self._constrained else 2]
        self._watch = LossWatch()
        self._views: Any = [], []

    def forward(
        self,
        outputs: Tensor,
        target: Any,
        *,
        weight: Any = None,
        group: Any = None,
        row: Any = None,
    ) -> Tensor:
        """The loss on a batch: a scalar, finite for every finite input.

        ``row`` holds the number of each row among all rows; only losses that are ``indexed`` ask
        for it.
        """
        kind = outputs.device.type if isinstance(outputs, Tensor) else "cpu"
        if torch.is_autocast_enabled(kind):  # sums and prices are never narrowed
            with torch.autocast(kind, enabled=False):
                return self._loss(outputs, target, weight, group, row)
        return self._loss(outputs, target, weight, group, row)

    def _loss(
        self, outputs: Tensor, target: Any, weight: Any, group: Any, row: Any = None
    ) -> Tensor:
        program, world = self._program, world_size(self.process_group)
        if world > 1 and program.gathers:
            own, (everyone, target, weight) = gathered(
                [outputs, target, weight], self.process_group
            )
            rows = program.rows(everyone, target, weight, None)
        else:
            own, rows = None, program.rows(outputs, target, weight, group)
        if not torch.compiler.is_compiling():
            self._look(rows)
        if program.indexed and self.training:
            on = self.steps >= max(self.warmup, 1)
            program.place(rows, row, self._exchange(), self.prices, on)
        if program.settles and self.training:
            program.settle(rows, self.steps, self._exchange(), not self.memory)
        value, gradient = self._advance(rows, world)
        return attached(outputs, value, gradient if own is None else gradient[own])

    def _exchange(self) -> Processes | None:
        return Processes(self.process_group) if world_size(self.process_group) > 1 else None

    @property
    def indexed(self) -> bool:
        """Whether it keeps something for each row and asks for ``row``."""
        return self._program.indexed

    def whole_state(self) -> dict[str, Any]:
        """``state_dict``, with what is shared out over processes put together.

        Every process must call it at once. It can be loaded by any number of processes.
        """
        more = self._program.gathered(self._exchange()) if self._program.indexed else {}
        return {**self.state_dict(), **{f"program.{name}": x for name, x in more.items()}}

    @property
    def settles(self) -> bool:
        """Whether thresholds follow the rows, and ``shown`` has something to show."""
        return self._program.settles

    @property
    def refreshes(self) -> bool:
        """Whether ``refresh`` has something to do."""
        return self._program.refreshes

    @property
    def follows(self) -> bool:
        """Whether ``follow`` wants the last batch's outputs after each step."""
        return self._program.follows

    def refresh(
        self, outputs: Tensor, target: Any, *, weight: Any = None, group: Any = None
    ) -> None:
        """Set thresholds anew from many rows at once, by outputs of a model in evaluation mode."""
        rows = self._program.rows(outputs.detach(), target, weight, group)
        self._program.refresh(rows, self._exchange())

    def follow(self, outputs: Tensor) -> None:
        """Move thresholds by what the optimiser's step did to the last batch's outputs."""
        self._program.follow(outputs, self._exchange())

    def shown(self) -> dict[str, Any]:
        """What a history should show beside the loss, such as thresholds."""
        return self._program.shown(self.totals)

    def _advance(self, rows: Any, world: int) -> tuple[Any, Tensor]:
        """Price the batch and move the totals; the loss and its gradient in the outputs."""
        # buffers are taken from their dictionary, since a module's attributes are slow to find;
        # on the host ``small`` gives an array that shares the buffer's memory
        program, small, held = self._program, rows.small, cast(Held, self._buffers)
        step = held["steps"]
        totals, kept = program.measure(rows, step)
        base = program.base(rows)
        mass, count = program.mass(rows)
        if world > 1 and not program.gathers:
            totals, base, mass, count = summed(
                [totals, base, mass, count], rows.logits, self.process_group
            )
        per_row = inverse(mass)
        steps = small(step)
        old = self._state(rows.host)
        multipliers = old[2] if self._constrained else old[0][0, :0]
        if not self.training:
            on = 1.0 + 0 * per_row
            priced = program.price(totals * per_row, multipliers)
            gradient = program.pull(rows, kept, priced.prices, on, step, per_row * world)
            return program.value(priced, base * per_row, on), gradient
        if self.memory:
            on = (steps >= max(self.warmup, 1)) * 1.0
            gradient = program.pull(rows, kept, old[1], on, step, per_row * world)
            if program.exact:  # multipliers rest while rows come by for the first time
                known = (steps * count >= program.population) * 1.0
                fading, last = 1 - known * count / program.population, True
                new = totals + old[0]
            elif self.accumulate == 1:
                fading, last = exponential(-count / self.memory), True
                new = totals + old[0] * fading
            else:
                new, fading, last = self._joined(small, totals, old[0], count)
            at = new * inverse(program.whole(new))
            if program.exact and not rows.host:
                at = at.to(rows.logits.dtype)
            priced = program.price(at, multipliers)
        else:
            on = (steps >= self.warmup) * 1.0
            priced = program.price(totals * per_row, multipliers)
            gradient = program.pull(rows, kept, priced.prices, on, step, per_row * world)
            new, fading, last = totals, 0.0, True
        self._keep(old, new, priced, on * (1 - fading), last, base)
        _set(step, steps + last)
        if self._watch.turn <= EVERY:
            _set(held["seen"], small(held["seen"]) + program.presence(totals))
        return program.value(priced, base * per_row, on), gradient

    def _state(self, host: bool) -> Any:
        """Totals, prices and multipliers; on the host as arrays that share the buffers' memory."""
        held = cast(Held, self._buffers)
        buffers = [held[name] for name in self._kept]
        if not host:
            return buffers
        known, views = self._views
        if len(known) != len(buffers) or any(map(is_not, known, buffers)):
            views = [buffer.numpy() for buffer in buffers]
            self._views = buffers, views
        return views

    def __getstate__(self) -> dict[str, Any]:
        """A copy takes arrays of its own buffers."""
        return {**self.__dict__, "_views": ([], [])}

    def _joined(self, small: Any, totals: Any, old: Any, count: Any) -> tuple[Any, Any, Any]:
        """The totals with the parts so far, what is left of the old ones, and whether to move."""
        held = cast(Held, self._buffers)
        pending, parts, size = (held[name] for name in ("pending", "parts", "size"))
        finite = whole(totals)
        good = finite - finite == 0  # a part that is not finite counts as a part without rows
        batch = small(pending) + where(good, totals, 0.0)
        part, rows = small(parts) + 1, small(size) + where(good, count, 0.0)
        last = part >= self.accumulate
        going = 1 - last * 1
        for buffer, value in ((pending, batch), (parts, part), (size, rows)):
            _set(buffer, value * going)
        fading = exponential(-rows / (0 * batch.sum() + self.memory))
        return batch + old * fading, fading, last

    def _keep(
        self, old: Any, totals: Any, priced: Priced, share: Any, last: Any, base: Any
    ) -> None:
        """Take totals, prices and multipliers over, unless the batch was not finite."""
        finite = whole(priced.prices)
        if not self._program.exact:  # whose totals are finite, and must follow what it keeps
            finite = finite + 0 * base
        good = (finite - finite == 0) & last
        new = [totals, priced.prices]
        if self._constrained:
            new.append(self._program.ascend(old[2], priced.violations, share))
        if isinstance(good, Tensor):
            new = [torch.where(good, x, y) for x, y in zip(new, old, strict=True)]
        elif not good:
            return
        for buffer, value in zip(old, new, strict=True):
            buffer[...] = value

    # --- what a user should know ------------------------------------------------------------------

    def _look(self, rows: Any) -> None:
        """Check the first batch's values; after some calls say once what the totals tell.

        The totals are copied to the host without waiting and read at a later call.
        """
        watch = self._watch
        if watch.turn == 0:
            self._program.check(rows)
        if not self.training:
            return
        watch.turn += 1
        if watch.turn == EVERY + 1:
            watch.noted = tuple(x.to("cpu", non_blocking=True) for x in (self.totals, self.seen))
        elif watch.turn == 2 * EVERY:
            totals, seen = watch.noted
            for sentence in self.program.notices(totals, 1 - seen / EVERY):
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
                kept = module is self and name == "totals" and self._program.exact
                if new.dtype in (torch.float16, torch.bfloat16) or kept:
                    module._buffers[name] = cast(Tensor, old).to(new.device)
        return self


def _set(buffer: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        buffer.copy_(value)
    else:
        buffer.numpy()[...] = value
