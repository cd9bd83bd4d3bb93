"""Corrections of the thresholds of an implicit program on unrelaxed rates of pooled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import KindError
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.recent_rows import TrackedRows, rows_of
from setpoint.methods.implicit.level_thresholds import best_threshold, level_thresholds, tail
from setpoint.methods.implicit.moving_thresholds import Moving, Shifts, Thresholds
from setpoint.methods.implicit.shared_pool import SharedPool
from setpoint.methods.implicit.threshold_search import as_arrays, search_shifts, search_slots
from setpoint.methods.rate_targets import Aim
from setpoint.programs import Exchange

if TYPE_CHECKING:
    from setpoint.methods.implicit.implicit import Implicit


# A pool: the newest rows' scores, from which thresholds are taken.
#
# Few rows of a batch lie beyond an extreme operating point: a threshold at fpr 1 % from 50
# negatives has an fpr of 2 % in the mean. So rows are pooled, newest first, until the tail holds
# :data:`ENOUGH` of them.


ENOUGH = 25.0  #: rows wanted in the tail beyond a threshold
LEAST, LARGEST = 8192, 65536  #: rows of a pool


def pool_size(tail: float) -> int:
    """Rows of a pool whose thresholds cut off this share of a class that has a quarter of them."""
    return int(min(max(4 * ENOUGH / max(tail, 1e-9), LEAST), LARGEST))


TAIL = 0.01  #: share of a class beyond the threshold of a goal that does not say


class ThresholdTracker(nn.Module):
    """Moves the thresholds of ``moving``, and knows which constraints stop them.

    Attributes
    ----------
    binds, broken : torch.Tensor
        (m,) 1 for the constraints that stop the thresholds, and for those that hold nowhere.
    kernel : torch.Tensor
        (T,) rows under the kernel of a threshold, at the last correction.
    calls, last : torch.Tensor
        Steps seen, and the number of the last.
    """

    binds: Tensor
    broken: Tensor
    kernel: Tensor
    calls: Tensor
    last: Tensor
    yes: Tensor
    corrected: Tensor
    levels: Tensor

    def __init__(self, lowered: Lowered, moving: Moving, aim: Aim, method: Implicit) -> None:
        super().__init__()
        self.lowered = lowered
        self.moving = moving
        self.aim = aim
        self.method = method
        self.step_width = 1 / moving.sharpness  #: of the soft step, in units of a score
        m = len(lowered.constraints)
        self.register_buffer("binds", torch.ones(m) if aim.levels else torch.zeros(m))
        self.register_buffer("broken", torch.zeros(m))
        self.register_buffer("corrected", torch.zeros(()))
        self.register_buffer("kernel", torch.zeros(moving.count))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("last", torch.full((), -1))
        self.register_buffer("yes", torch.ones((), dtype=torch.bool), persistent=False)
        self.register_buffer("levels", torch.tensor(aim.levels, dtype=torch.float64), False)
        ends = [min(level, 1 - level) for level in aim.levels]
        size = pool_size(min(ends, default=TAIL)) if method.pool is None else int(method.pool)
        self.pool = SharedPool(size, lowered.cells.side if isinstance(moving, Shifts) else 0)

    def settle(
        self, rows: Batch, step: Tensor, exchange: Exchange | None, alone: bool = False
    ) -> None:
        """Every so often correct the thresholds, then pool the rows of the batch.

        The rows before the batch are looked at, so that a batch in parts is treated as the whole;
        or its own, where it is taken ``alone`` or is larger than the pool. So the first batch is
        read at thresholds of 0, unless they were refreshed.
        """
        own = rows_of(rows)
        alone = alone or not self.pool.size or (exchange is None and self._fills(own, None))
        fresh = step != self.last
        due = fresh & ((self.calls % self.method.every == 0) | (self.corrected == 0))
        # asking a device whether it is due would make the host wait for it
        if torch.compiler.is_compiling() or not due.is_cpu or bool(due):
            if alone or (exchange is not None and self._fills(own, exchange)):
                self._correct(own, due, exchange)
            else:
                self._correct(self.pool.newest(self.calls, exchange), due, exchange)
            kernel = self.moving.kernel(rows).to(self.kernel)
            self.kernel.copy_(torch.where(due & kernel.isfinite(), kernel, self.kernel))
        self.calls.add_(fresh)
        if not alone:
            self.pool.take(own, self.calls)
        self.last.copy_(step)

    def refresh(self, rows: Batch, exchange: Exchange | None) -> None:
        """Thresholds anew from all of these rows, which also fill the pool."""
        own, n = rows_of(rows), len(rows.actual)
        size = self.pool.size // (1 if exchange is None else exchange.world)
        if size:  # evenly, since rows may be sorted
            some = torch.arange(min(n, size), device=own.weight.device) * n // min(n, size)
            self.pool.take(TrackedRows(*(x[some] for x in own)), self.calls)
        self._correct(own, self.yes, exchange)

    def refuse_soft(self, exchange: Exchange | None) -> None:
        """A soft solution is found by one process."""
        if exchange is not None or torch.compiler.is_compiling():
            raise KindError('correction="soft" solves on one process, uncompiled; take "exact"')

    def counted(self, rows: Batch) -> Any:
        """Weights of the rows whose share a level is."""
        y = rows.actual
        kind = {"all": 1.0 + 0 * y, "positive": y, "negative": 1 - y}[self.aim.condition]
        return kind if rows.weight is None else kind * rows.weight

    def _fills(self, own: TrackedRows, exchange: Exchange | None) -> bool:
        """Whether a batch, of all processes, is as large as the pool."""
        n = len(own.weight)
        if exchange is not None:
            n = int(exchange.summed(torch.tensor(n, device=own.weight.device)))
        return n >= self.pool.size

    def _correct(self, rows: TrackedRows, due: Tensor, exchange: Exchange | None) -> None:
        thresholds = self.moving.thresholds
        if self.aim.levels:
            new, binds, broken = self._at_levels(rows, exchange)[:, None], self.binds, self.broken
        else:
            new, binds, broken = self._best(rows, exchange)
        there = rows.weight.sum()
        if exchange is not None:
            there = exchange.summed(there)
        due = due & (there > 0)
        keep = self.method.smooth * self.corrected
        new = keep * thresholds + (1 - keep) * new.to(thresholds)
        good = due & new.isfinite().all()
        for old, now in ((thresholds, new), (self.binds, binds), (self.broken, broken)):
            old.copy_(torch.where(good, now.to(old), old))
        self.corrected.copy_(torch.where(good, 1.0, self.corrected))

    def _at_levels(self, rows: TrackedRows, exchange: Exchange | None) -> Tensor:
        aim, (scores, place, weight) = self.aim, rows
        if exchange is None and scores.is_cpu and not torch.compiler.is_compiling():
            return self._on_host(scores.numpy(), place.numpy(), weight.numpy())
        weight = weight.double()
        if aim.condition != "all":
            weight = weight * (place % 2 == int(aim.condition == "positive"))
        mass = weight.sum()
        if exchange is not None:
            mass = exchange.summed(mass)
            end = min(aim.levels) if aim.at_least else max(aim.levels)
            scores, weight = exchange.rows(*tail(scores, weight, mass, end, aim.at_least))
        thresholds = level_thresholds(
            scores, weight, mass, self.levels, aim.at_least, self.step_width
        )
        return torch.where(mass > 0, thresholds.double(), self.moving.thresholds[:, 0])

    def _on_host(self, scores: np.ndarray, place: np.ndarray, weight: np.ndarray) -> Tensor:
        """The same in numpy, which sorts several times faster, and only as many as it must."""
        aim, thresholds = self.aim, self.moving.thresholds.numpy()
        if aim.condition != "all":
            weight = weight * ((place & 1) == (aim.condition == "positive"))
        mass = float(weight.sum(dtype=np.float64))
        if mass <= 0:
            return self.moving.thresholds[:, 0]
        levels = self.levels.numpy()
        # one end of the rows matters, and where it was is nearly where it is
        if aim.at_least:
            end, share = scores < thresholds.max() + self.step_width, 1 - levels.min()
        else:
            end, share = scores > thresholds.min() - self.step_width, levels.max()
        end &= weight > 0
        some = np.flatnonzero(end)
        part = weight[some].astype(np.float64)
        if part.sum() > share * mass * 1.001:
            scores, weight = scores[some], part
        else:
            weight = weight.astype(np.float64)
        at_levels = level_thresholds(scores, weight, mass, levels, aim.at_least, self.step_width)
        return torch.from_numpy(at_levels.astype(np.float64))

    def _best(self, rows: TrackedRows, exchange: Exchange | None) -> tuple[Tensor, Tensor, Tensor]:
        if exchange is not None:
            rows = TrackedRows(*exchange.rows(*rows))
        moving, like = self.moving, self.moving.thresholds
        if moving.slots == 1:
            settled = best_threshold(self.lowered, *rows, self.step_width)
            return settled.threshold.view(1, 1), settled.binds, settled.broken
        if torch.compiler.is_compiling():
            raise KindError("several thresholds are searched on the host: do not compile this loss")
        there = rows.weight > 0
        scores, place, weight = as_arrays(*(x[there] for x in rows))
        if not len(weight):
            return like, self.binds, self.broken
        if isinstance(moving, Thresholds):
            slot = np.repeat(moving.slot, 2)
            several = search_slots(self.lowered, slot, scores, place, weight, self.step_width)
        else:
            start = like[0].cpu().numpy()
            several = search_shifts(self.lowered, scores, place, weight, start, self.step_width)
        new, binds, broken = (torch.as_tensor(x, device=like.device) for x in several)
        return new.view(1, -1), binds, broken
