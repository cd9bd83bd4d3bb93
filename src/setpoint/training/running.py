"""The running loss: a program, the totals of the stream of batches, and one gradient per call.

Each call takes a batch of outputs and returns a scalar whose value is the goal at the running
totals and whose gradient is

    prices at the running totals  ×  ∂(totals of the batch)/∂(outputs).

The totals that price a batch do not hold the batch itself, so the gradient is unbiased at every
batch size, and a batch that comes in n parts gives the same gradient as the whole. They forget:
after ``memory`` further rows a row counts 1/e.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.arrays import both, exponential, inverse, plain_bool, where
from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint.programs import Priced, StreamProgram
from setpoint.training.distributed import gathered, summed, world_size

logger = logging.getLogger("setpoint")

EVERY = 100  #: calls before the totals are looked at


class RunningLoss(nn.Module):
    """A program run on a stream of batches.

    Parameters
    ----------
    program : StreamProgram
    memory : float
        Rows after which a row counts 1/e in the running totals. 0: every batch is priced at its own
        totals, which is biased for small batches.
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
        Running totals Σ wᵢ c(zᵢ), fading.
    multipliers : torch.Tensor
        One per constraint.
    steps : torch.Tensor
        Steps done.
    """

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
        _check(memory, warmup, accumulate)
        self.program = program
        self.memory, self.warmup, self.accumulate = float(memory), int(warmup), int(accumulate)
        self.process_group = process_group
        zero = torch.zeros(program.shape)
        self.register_buffer("totals", zero)
        self.register_buffer("prices", zero.clone())
        self.register_buffer("multipliers", program.start.clone())
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("seen", program.presence(zero), persistent=False)
        if self.accumulate > 1:
            self.register_buffer("pending", zero.clone())
            self.register_buffer("parts", torch.zeros(()))  # of this batch, so far
            self.register_buffer("size", torch.zeros(()))
        self.__dict__["_program"] = program  # found without the search through submodules
        self._constrained = program.start.numel() > 0
        self._turn = 0

    def forward(
        self, outputs: Tensor, target: Any, *, weight: Any = None, group: Any = None
    ) -> Tensor:
        """The loss on a batch: a scalar, finite for every finite input."""
        program, world = self._program, world_size(self.process_group)
        own = None
        with torch.no_grad():
            if world > 1 and program.gathers:
                own, (outputs_, target, weight) = gathered(
                    [outputs, target, weight], self.process_group
                )
                rows = program.rows(outputs_, target, weight, None)
            else:
                rows = program.rows(outputs, target, weight, group)
            if not torch.compiler.is_compiling():
                self._look(rows)
            value, gradient = self._advance(rows, world)
            if own is not None:
                gradient = gradient[own]
        return _attached(outputs, value, gradient)

    def _advance(self, rows: Any, world: int) -> tuple[Any, Tensor]:
        """Price the batch and move the totals; the loss and its gradient in the outputs."""
        program, small = self._program, rows.small
        totals, kept = program.measure(rows, self.steps)
        base = program.base(rows)
        mass, count = program.mass(rows)
        if world > 1 and not program.gathers:
            totals, base, mass, count = summed(
                [totals, base, mass, count], rows.logits, self.process_group
            )
        per_row = inverse(mass)
        steps = small(self.steps)
        if self.memory:
            on = (steps >= max(self.warmup, 1)) * 1.0
            prices = small(self.prices)
            gradient = program.pull(rows, kept, prices, on, self.steps, per_row * world)
            priced = self._renew(small, totals, count, on, steps)
        else:
            on = (steps >= self.warmup) * 1.0
            priced = program.price(totals * per_row, small(self.multipliers))
            gradient = program.pull(rows, kept, priced.prices, on, self.steps, per_row * world)
            self._keep(small, totals, priced, on, 1.0)
            _set(self.steps, steps + 1)
        if self._turn <= EVERY:
            _set(self.seen, small(self.seen) + program.presence(totals))
        return program.value(priced, base * per_row, on), gradient

    def _renew(self, small: Any, totals: Any, count: Any, on: Any, steps: Any) -> Priced:
        """Let the batch into the totals; price what comes next."""
        if self.accumulate == 1:
            fading = exponential(-count / self.memory)
            new = totals + small(self.totals) * fading
            priced = self._priced(small, new)
            self._keep(small, new, priced, on, 1 - fading)
            _set(self.steps, steps + 1)
            return priced
        parts, size = small(self.parts) + 1, small(self.size) + count
        last = parts >= self.accumulate
        pending = small(self.pending) + totals
        fading = exponential(-size / self.memory)
        new = pending + small(self.totals) * fading
        priced = self._priced(small, new)
        self._keep(small, new, priced, on, 1 - fading, last)
        going = 1.0 - last * 1.0
        for buffer, value in ((self.pending, pending), (self.parts, parts), (self.size, size)):
            _set(buffer, value * going)
        _set(self.steps, steps + last)
        return priced

    def _priced(self, small: Any, totals: Any) -> Priced:
        program = self._program
        return program.price(totals * inverse(program.whole(totals)), small(self.multipliers))

    def _keep(
        self, small: Any, totals: Any, priced: Priced, on: Any, share: Any, now: Any = True
    ) -> None:
        """Take totals, prices and multipliers over, unless the batch was not finite."""
        finite = priced.prices.sum()
        good = both(plain_bool(finite - finite == 0), now)
        _set(self.totals, where(good, totals, small(self.totals)))
        _set(self.prices, where(good, priced.prices, small(self.prices)))
        if self._constrained:
            old = small(self.multipliers)
            moved = self._program.ascend(old, priced.violations, share * on)
            _set(self.multipliers, where(good, moved, old))

    # --- what a user should know ------------------------------------------------------------------

    def _look(self, rows: Any) -> None:
        """Check the first batch's values; after some calls say once what the totals tell.

        The totals are copied to the host without waiting and read at a later call.
        """
        if self._turn == 0:
            self.program.check(rows)
        self._turn += 1
        if self._turn == EVERY + 1:
            self._noted = tuple(x.to("cpu", non_blocking=True) for x in (self.totals, self.seen))
        elif self._turn == 2 * EVERY:
            totals, seen = self._noted
            for sentence in self.program.notices(totals, 1 - seen / EVERY):
                logger.warning(sentence)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow the model to another device or type, but never below float32."""
        super()._apply(fn, recurse)
        for module in self.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.dtype in (torch.float16, torch.bfloat16):
                    module._buffers[name] = buffer.float()
        return self


def _attached(outputs: Tensor, value: Any, gradient: Tensor) -> Tensor:
    """A scalar with this value, and with this gradient in the outputs."""
    if outputs.dtype != gradient.dtype or torch.compiler.is_compiling():
        return _Attach.apply(outputs, value, gradient)  # type: ignore[return-value]
    # ⟨gradient, outputs⟩ has that gradient, at the cost of one operation; its value is replaced.
    result = torch.dot(gradient.view(-1), outputs.reshape(-1))
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


def _set(buffer: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        buffer.copy_(value)
    elif buffer.ndim:
        buffer.numpy()[...] = value
    else:
        buffer.fill_(value)


def _check(memory: Any, warmup: Any, accumulate: Any) -> None:
    if not is_real(memory) or not 0 <= memory < math.inf:
        raise KindError(f"memory={memory!r}: a number of rows, 0 or more")
    if not is_real(warmup) or warmup < 0 or warmup != int(warmup):
        raise KindError(f"warmup={warmup!r}: a whole number of steps, 0 or more")
    if not is_real(accumulate) or accumulate < 1 or accumulate != int(accumulate):
        raise KindError(f"accumulate={accumulate!r}: a whole number, 1 or more")
    if accumulate > 1 and not memory:
        raise KindError(
            f"accumulate={accumulate} needs running totals: a part of a batch cannot be priced at "
            "totals that are not there yet; leave memory as it is"
        )
