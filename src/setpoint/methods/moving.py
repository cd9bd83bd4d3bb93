"""Soft decisions at thresholds that move: cells, and how they change with the thresholds.

One class, T operating points, thresholds λ (T, L), one for each of L slots (groups or labels):

    m = σ(κ (s − λ)),     d = κ m (1 − m),     ∂C[a, 1]/∂λ = −Σ d,  ∂C[a, 0]/∂λ = +Σ d  over class a.

Several classes, one shift λ (K,) per class, decided by argmax (s − λ):

    m = softmax(κ (s − λ)),     ∂C[a, d]/∂λ_c = −κ (δ_dc C[a, c] − Σ m_c m_d  over class a).

So sums over rows say all: the cells and, beside them, the *densities* from which ∂C/∂λ follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import join, namespace
from setpoint.methods.batch import Batch, cross_entropy_pull


class Moving(nn.Module, ABC):
    """Fills cells at thresholds of its own, which whoever corrects them writes.

    Attributes
    ----------
    count : int
        T, operating points.
    slots : int
        L, thresholds of one point.
    cells, width : int
        Numbers of cells, and of all sums of a point.
    thresholds : torch.Tensor
        (T, L).
    """

    count: int
    slots: int
    cells: int
    width: int
    sharpness: float
    thresholds: Tensor

    @abstractmethod
    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(T, width) sums over the batch, and what ``pull`` needs."""

    @abstractmethod
    def slopes(self, totals: Any, prices: Any) -> Any:
        """∂/∂λ of a quantity with these prices ∂/∂cells (T, cells): (T, L)."""

    @abstractmethod
    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · Σ prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, weighed."""

    @abstractmethod
    def kernel(self, totals: Any) -> Any:
        """(T,) how many rows of a batch lie under the kernel: (Σ d)² / Σ d²."""


class Thresholds(Moving):
    """One class (or one per label) against the rest.

    Parameters
    ----------
    slot : tuple of int
        Of each table of the cells, the threshold that decides it.
    count : int
    sharpness : float
        κ, per unit of a logit.
    """

    def __init__(self, slot: tuple[int, ...], count: int, sharpness: float) -> None:
        super().__init__()
        self.slot, self.count, self.sharpness = slot, count, float(sharpness)
        self.slots, self.places = max(slot) + 1, 2 * len(slot)
        self.cells = 2 * self.places
        self.width = self.cells + self.places + 1
        self.dense = slice(self.cells, self.cells + self.places)
        self._slot = np.repeat(np.eye(self.slots)[list(slot)], 2, 0)  # (places, L)
        self.register_buffer("slot_of", torch.tensor(slot), persistent=False)
        self.register_buffer("slot_sum", torch.tensor(self._slot).float(), persistent=False)
        self.register_buffer("thresholds", torch.zeros(count, self.slots, dtype=torch.float64))

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        m, d = self.memberships(batch)
        if batch.table is None:
            if batch.flat:
                by = np.stack([batch.unit - batch.positive, batch.positive], 1)
                m_, d_ = m.numpy(), d.numpy()
            else:
                w = torch.ones_like(batch.logits) if batch.weight is None else batch.weight
                yes = w * batch.actual
                by, m_, d_ = torch.stack([w - yes, yes], 1), m, d
            mass, high, dense = by.sum(0), m_ @ by, d_ @ by  # (2,), (T, 2), (T, 2)
            square = (d_ * d_) @ by.sum(1, keepdims=True) if batch.flat else (d * d) @ by.sum(1, True)
        else:
            mass, high, dense, square = self._by_place(batch, m, d)
        xp = namespace(high)
        cells = xp.stack([mass - high, high], 2).reshape(self.count, -1)
        return join([cells, dense, square], 1), (m, d)

    def memberships(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(T, N) m and d."""
        where = self.thresholds.to(batch.logits.dtype)
        if self.slots > 1:
            where = where[:, self.slot_of[batch.table]]  # (T, N)
        m = ((batch.logits - where) * self.sharpness).sigmoid()
        return m, m * (1 - m) * self.sharpness

    def _by_place(self, batch: Batch, m: Tensor, d: Tensor) -> Any:
        place = torch.as_tensor(batch.place)
        w = batch.weight
        one = torch.ones_like(batch.logits) if w is None else w
        mass = one.new_zeros(self.places).index_add_(0, place, one)
        empty = one.new_zeros(self.count, self.places)
        high = empty.index_add(1, place, m if w is None else m * w)
        dense = empty.index_add(1, place, d if w is None else d * w)
        square = (d * d if w is None else d * d * w).sum(1, keepdim=True)
        found = mass, high, dense, square
        return tuple(x.numpy() for x in found) if batch.host else found

    def slopes(self, totals: Any, prices: Any) -> Any:
        dense = totals[:, self.dense]
        table = prices.reshape(self.count, self.places, 2)
        each = (table[:, :, 0] - table[:, :, 1]) * dense
        if self.slots == 1:
            return each.sum(1, keepdims=True) if isinstance(each, np.ndarray) else each.sum(1, True)
        return each @ (self._slot if isinstance(each, np.ndarray) else self.slot_sum.to(each))

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        _, d = memory
        table = torch.as_tensor(prices * share).to(d).reshape(self.count, self.places, 2)
        worth = table[:, :, 1] - table[:, :, 0]  # (T, places)
        if batch.table is None:
            no, yes = worth.T @ d  # (N,) each
            slope = torch.lerp(no, yes, batch.actual)
        else:
            slope = (worth[:, torch.as_tensor(batch.place).long()] * d).sum(0)
        if not isinstance(plain, float) or plain:
            slope = slope + plain * (batch.probability - batch.actual)
        return slope if batch.weight is None else slope * batch.weight

    def pull_dense(self, batch: Batch, memory: Any, prices: Any, share: Any) -> Tensor:
        """Share · Σ prices · ∂densities/∂logits; ∂d/∂s = κ d (1 − 2 m)."""
        m, d = memory
        bend = self.sharpness * d * (1 - 2 * m)
        worth = torch.as_tensor(prices * share).to(d)
        slope = (worth[:, torch.as_tensor(batch.place).long()] * bend).sum(0)
        return slope if batch.weight is None else slope * batch.weight

    def kernel(self, totals: Any) -> Any:
        dense = totals[:, self.dense].sum(1)
        square = totals[:, -1]
        return dense * dense / (square + (square <= 0))


class Shifts(Moving):
    """Several classes, each with a shift of its own.

    Parameters
    ----------
    tables, side : int
        Tables of the cells (groups), and classes.
    sharpness : float
        κ.
    """

    def __init__(self, tables: int, side: int, sharpness: float) -> None:
        super().__init__()
        self.tables, self.side, self.sharpness = tables, side, float(sharpness)
        self.count, self.slots = 1, side
        self.cells = tables * side * side
        self.width = self.cells * (1 + side) + 2
        self.register_buffer("thresholds", torch.zeros(1, side, dtype=torch.float64))

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        z = batch.logits
        m = torch.softmax((z - self.thresholds[0].to(z.dtype)) * self.sharpness, 1)
        w = batch.weighed(m)
        rows = self.tables * self.side
        cells = m.new_zeros(rows, self.side).index_add_(0, batch.place, w)
        pairs = (w[:, :, None] * m[:, None, :]).flatten(1)  # (N, K · K)
        both = m.new_zeros(rows, self.side**2).index_add_(0, batch.place, pairs)
        d = m * (1 - m)
        spread = torch.stack([batch.weighed(d).sum(), batch.weighed(d * d).sum()])
        return batch.small(torch.cat([cells.flatten(), both.flatten(), spread])[None]), m

    def slopes(self, totals: Any, prices: Any) -> Any:
        k = self.side
        cells = totals[0, : self.cells].reshape(-1, k)
        both = totals[0, self.cells : -2].reshape(-1, k, k)  # (tables · a, c, d)
        price = prices[0].reshape(-1, k)
        own = (price * cells).sum(0)
        return -self.sharpness * (own - (both * price[:, None, :]).sum(2).sum(0))[None]

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        m = memory
        worth = torch.as_tensor(prices * share).to(m).reshape(-1, self.side)
        worth = worth.index_select(0, batch.place)
        slope = self.sharpness * m * (worth - (worth * m).sum(1, keepdim=True))
        if not isinstance(plain, float) or plain:
            slope = slope + plain * cross_entropy_pull(batch)
        return batch.weighed(slope)

    def kernel(self, totals: Any) -> Any:
        dense, square = totals[:, -2], totals[:, -1]
        return dense * dense / (square + (square <= 0))
