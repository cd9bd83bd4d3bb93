"""Soft decisions at thresholds that move: cells, and how they change with the thresholds.

One class, T operating points, thresholds λ (T, L), one for each of L slots (groups or labels):

    m = σ(κ (s − λ)),   d = κ m (1 − m),   ∂C[a, 1]/∂λ = −Σ d,  ∂C[a, 0]/∂λ = +Σ d  over class a.

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

from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.surrogates.sigmoid import logistic


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
    def packed(self, prices: Any) -> Any:
        """Of prices (T, cells), what ``pull`` needs."""

    @abstractmethod
    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · Σ prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, weighed."""

    @abstractmethod
    def kernel(self, batch: Batch) -> Tensor:
        """(T,) how many rows of a batch lie under the kernel of a threshold: (Σ d)² / Σ d²."""


class Thresholds(Moving):
    """One class (or one per label) against the rest.

    Parameters
    ----------
    slot : tuple of int
        Of each table of the cells, the threshold that decides it.
    count : int
    sharpness : float
        κ, per unit of a logit.

    Notes
    -----
    Densities are kept without their factor κ.
    """

    slot_of: Tensor
    slot_sum: Tensor

    def __init__(self, slot: tuple[int, ...], count: int, sharpness: float) -> None:
        super().__init__()
        self.slot = slot
        self.count = count
        self.sharpness = float(sharpness)
        self.slots = max(slot) + 1
        self.places = 2 * len(slot)
        self.cells = 2 * self.places
        self.width = self.cells + self.places
        self._slot = np.repeat(np.eye(self.slots)[list(slot)], 2, 0)  # (places, L)
        self.register_buffer("slot_of", torch.tensor(slot), persistent=False)
        self.register_buffer("slot_sum", torch.tensor(self._slot).float(), persistent=False)
        start = torch.zeros(count, self.slots, dtype=torch.float64)
        self.register_buffer("thresholds", start)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        both = self.memberships(batch)
        if batch.table is not None:
            return self._by_place(batch, both), both
        if batch.flat:
            wide = both.numpy().reshape(2 * self.count, -1)
            yes, all_ = wide @ batch.positive, wide @ batch.unit
            p, n = float(batch.positive @ batch.unit), batch.mass
            if batch.w is not None:
                p = float(batch.positive.sum())
            no = all_ - yes
            t = self.count
            columns = n - p - no[:t], no[:t], p - yes[:t], yes[:t], no[t:], yes[t:]
            return np.stack(columns, 1), both
        w = torch.ones_like(batch.logits) if batch.weight is None else batch.weight
        by = torch.stack([w - w * batch.actual, w * batch.actual], 1)
        high, dense = both @ by  # (T, 2) each
        cells = torch.stack([by.sum(0) - high, high], 2).reshape(self.count, -1)
        return torch.cat([cells, dense], 1), both

    def memberships(self, batch: Batch) -> Tensor:
        """(2, T, N): m and m (1 − m)."""
        where = self.thresholds.to(batch.logits.dtype)
        if self.slots > 1:
            where = where[:, self.slot_of[batch.table]]  # (T, N)
        shape = 2, self.count, *batch.logits.shape
        both = torch.empty(shape, dtype=batch.logits.dtype, device=batch.logits.device)
        m = logistic(batch.logits - where, self.sharpness)
        # logistic_slope without its factor κ, in one pass: m − m² needs no tensor for 1 − m
        both[0], both[1] = m, torch.addcmul(m, m, m, value=-1)
        return both

    def _by_place(self, batch: Batch, both: Tensor) -> Any:
        place = torch.as_tensor(batch.place)
        one = torch.ones_like(batch.logits) if batch.weight is None else batch.weight
        mass = one.new_zeros(self.places).index_add_(0, place, one)
        empty = both.new_zeros(2, self.count, self.places)
        high, dense = empty.index_add_(2, place, both * one)
        cells = torch.stack([mass - high, high], 2).reshape(self.count, -1)
        return batch.small(torch.cat([cells, dense], 1))

    def slopes(self, totals: Any, prices: Any) -> Any:
        dense = totals[:, self.cells :] * self.sharpness
        each = -self.packed(prices) * dense
        if self.slots == 1:
            return each.sum(1)[:, None]
        return each @ (self._slot if isinstance(each, np.ndarray) else self.slot_sum.to(each))

    def packed(self, prices: Any) -> Any:
        table = prices.reshape(self.count, self.places, 2)
        return table[:, :, 1] - table[:, :, 0]  # (T, places): what deciding one more is worth

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        worth = prices[:, : self.places] * (share * self.sharpness)
        slope = self._spread(batch, worth, memory[1])
        if not isinstance(plain, float) or plain:
            slope = slope + plain * (batch.probability - batch.actual)
        return slope if batch.weight is None else slope * batch.weight

    def pull_dense(self, batch: Batch, memory: Any, prices: Any, share: Any) -> Tensor:
        """Share · Σ prices · ∂densities/∂logits; ∂(m − m²)/∂s = κ (m − m²)(1 − 2 m)."""
        m, d = memory
        bend = d * (1 - 2 * m)
        slope = self._spread(batch, prices * (share * self.sharpness), bend)
        return slope if batch.weight is None else slope * batch.weight

    def _spread(self, batch: Batch, worth: Any, amounts: Tensor) -> Tensor:
        """Σ_t worth[t, place of a row] · amounts[t, row]."""
        worth = torch.as_tensor(worth).to(amounts)
        if batch.table is None:
            no, yes = worth.T @ amounts
            return torch.lerp(no, yes, batch.actual)
        return (worth[:, torch.as_tensor(batch.place).long()] * amounts).sum(0)

    def kernel(self, batch: Batch) -> Tensor:
        d = self.memberships(batch)[1]
        return d.sum(1) ** 2 / (d * d).sum(1).clamp(min=1e-30)


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
        self.tables = tables
        self.side = side
        self.sharpness = float(sharpness)
        self.count = 1
        self.slots = side
        self.cells = tables * side * side
        self.width = self.cells * (1 + side)
        self.register_buffer("thresholds", torch.zeros(1, side, dtype=torch.float64))

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        del step
        m = self.memberships(batch)
        w = batch.weighed(m)
        rows = self.tables * self.side
        cells = m.new_zeros(rows, self.side).index_add_(0, batch.place, w)
        pairs = (w[:, :, None] * m[:, None, :]).flatten(1)  # (N, K · K)
        both = m.new_zeros(rows, self.side**2).index_add_(0, batch.place, pairs)
        return batch.small(torch.cat([cells.flatten(), both.flatten()])[None]), m

    def memberships(self, batch: Batch) -> Tensor:
        """(N, K) softmax of the shifted logits."""
        z = batch.logits
        return torch.softmax((z - self.thresholds[0].to(z.dtype)) * self.sharpness, 1)

    def slopes(self, totals: Any, prices: Any) -> Any:
        k = self.side
        cells = totals[0, : self.cells].reshape(-1, k)
        both = totals[0, self.cells :].reshape(-1, k, k)  # (tables · a, c, d)
        price = prices[0].reshape(-1, k)
        own = (price * cells).sum(0)
        return -self.sharpness * (own - (both * price[:, None, :]).sum(2).sum(0))[None]

    def packed(self, prices: Any) -> Any:
        return prices

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        m = memory
        worth = torch.as_tensor(prices[:, : self.cells] * share).to(m).reshape(-1, self.side)
        worth = worth.index_select(0, batch.place)
        slope = self.sharpness * m * (worth - (worth * m).sum(1, keepdim=True))
        if not isinstance(plain, float) or plain:
            slope = slope + plain * cross_entropy_pull(batch)
        return batch.weighed(slope)

    def kernel(self, batch: Batch) -> Tensor:
        m = self.memberships(batch)
        d = (m * (1 - m)).sum(1)
        return (d.sum() ** 2 / (d * d).sum().clamp(min=1e-30)).view(1)
