"""Soft decisions about one class: cells filled by a surrogate of the step, at any thresholds.

With H piecewise linear, H_τ(p) = α + β p on the piece that p falls into, so the soft cells at all
thresholds follow from two histograms over pieces, Σ w and Σ w p, and the gradient is one look-up:
the cost does not grow with the number of thresholds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import namespace
from setpoint.methods.batch import Batch, cross_entropy_pull
from setpoint.surrogates import PiecewiseLinear, Schedule, Surrogate


class SoftSteps(nn.Module):
    """Cells of a binary or multilabel batch under H at each threshold.

    Parameters
    ----------
    surrogate : Surrogate
    thresholds : tuple of float
    tables : int
        Number of 2 × 2 tables.
    temperature : Schedule
    """

    def __init__(
        self,
        surrogate: Surrogate,
        thresholds: tuple[float, ...],
        tables: int,
        temperature: Schedule,
    ) -> None:
        super().__init__()
        self.steps = [surrogate.at(t) for t in thresholds]
        self.count = len(self.steps)
        self.tables = tables
        self.temperature = temperature
        self.pieces = isinstance(surrogate, PiecewiseLinear)
        if self.pieces:
            pieces = self._pieces(torch.empty(0, dtype=torch.float64), 0)
            for name, part in zip(("borders", "alpha", "beta"), pieces, strict=True):
                self.register_buffer(name, part.float(), persistent=False)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(T, cells) sums over the batch, and what ``pull`` needs."""
        if not self.pieces:
            return self._dense(batch, step)
        borders, alpha, beta = self._at(batch, step)
        p = batch.probability
        piece = torch.bucketize(p, borders, out_int32=True, right=True)
        if self.count > 1:
            return self._histogram(batch, piece, alpha, beta)
        slope = beta[0].index_select(0, piece)
        high = torch.addcmul(alpha[0].index_select(0, piece), slope, p)
        return table_cells(batch, [high], self.tables), [slope]

    def _histogram(self, batch: Batch, piece: Tensor, alpha: Tensor, beta: Tensor) -> Any:
        pieces = alpha.shape[1]
        bin_ = torch.add(piece, batch.place, alpha=pieces)
        p, weight = batch.probability, batch.weight
        empty = p.new_zeros(self.tables * 2 * pieces)
        mass = empty.index_add(0, bin_, torch.ones_like(p) if weight is None else weight)
        first = empty.index_add_(0, bin_, batch.weighed(p))
        mass, first = (batch.small(x.view(-1, pieces)) for x in (mass, first))  # (tables · 2, J)
        alpha, beta = batch.small(alpha), batch.small(beta)
        high = alpha @ mass.T + beta @ first.T  # (T, tables · 2)
        cells = namespace(high).stack([mass.sum(1) - high, high], 2)  # (T, tables · 2, 2)
        return cells.reshape(self.count, -1), (bin_, beta)

    def pull(self, batch: Batch, memory: Any, prices: Any, plain: Any) -> Tensor:
        """Σ_T prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, (N,), weights included."""
        worth = prices.reshape(self.count, -1, 2)
        worth = worth[:, :, 1] - worth[:, :, 0]  # (T, tables · 2): of one more unit decided
        p = batch.probability
        if isinstance(memory, tuple):
            bin_, beta = memory
            slope = torch.as_tensor(worth.T @ beta).to(p).flatten().index_select(0, bin_)
        else:
            slope = by_class(batch, worth[0]).mul_(memory[0])
            for w, h in zip(worth[1:], memory[1:], strict=True):
                slope += by_class(batch, w).mul_(h)
        rest = cross_entropy_pull(batch).mul_(plain)
        return batch.weighed(rest.addcmul_(slope, torch.addcmul(p, p, p, value=-1)))

    def _dense(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        sharp, p = self._sharp(step), batch.probability
        cells = table_cells(batch, [h.value(p) for h in sharp], self.tables)
        return cells, [h.derivative(p) for h in sharp]

    def _sharp(self, step: Tensor) -> list[Surrogate]:
        if not self.temperature.moves and self.temperature.at(0) == 1:
            return self.steps
        return [h.limit(self.temperature.at(step)) for h in self.steps]

    def _at(self, batch: Batch, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.temperature.moves or batch.logits.dtype != torch.float32:
            return self._pieces(batch.logits, step)
        return self.borders, self.alpha, self.beta

    def _pieces(self, like: Tensor, step: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Borders of all thresholds together, and α, β of each threshold on each piece (T, J)."""
        temperature = self.temperature.at(step)
        parts = [h.pieces(like, temperature) for h in self.steps]  # type: ignore[attr-defined]
        if len(parts) == 1:
            borders, alpha, beta = parts[0]
            return borders, alpha[None], beta[None]
        borders = torch.cat([b for b, _, _ in parts]).sort().values
        ends = torch.cat([borders.new_zeros(1), borders, borders.new_ones(1)])
        middle = (ends[1:] + ends[:-1]) / 2
        where = [torch.bucketize(middle, b, right=True) for b, _, _ in parts]
        alpha = torch.stack([a[w] for (_, a, _), w in zip(parts, where, strict=True)])
        beta = torch.stack([b[w] for (_, _, b), w in zip(parts, where, strict=True)])
        return borders, alpha, beta


class HardSteps(nn.Module):
    """Cells of a binary or multilabel batch decided where logit >= 0."""

    count = 1

    def __init__(self, tables: int) -> None:
        super().__init__()
        self.tables = tables

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch."""
        del step
        decided = (batch.logits >= 0).to(batch.logits.dtype)
        return table_cells(batch, [decided], self.tables), None


def by_class(batch: Batch, amounts: Any) -> Tensor:
    """The amount of each row, by its table and class: amounts (tables · 2,) to (N,)."""
    if batch.table is not None:
        return torch.as_tensor(amounts).to(batch.logits).index_select(0, batch.place)
    if batch.host:
        no, yes = amounts.tolist()
        return batch.actual.mul(yes - no).add_(no)
    return batch.actual * (amounts[1] - amounts[0]) + amounts[0]


def table_cells(batch: Batch, high: list[Tensor], tables: int) -> Any:
    """(T, cells) from memberships (N,) at each of T thresholds."""
    small, weight = batch.small, batch.weight
    if batch.table is None:
        positive = batch.actual if weight is None else batch.actual * weight
        tp = [small(torch.dot(h, positive)) for h in high]
        decided = [small(h.sum() if weight is None else torch.dot(h, weight)) for h in high]
        p = small(positive.sum())
        n = (batch.rows if weight is None else small(weight.sum())) - p
        rows = [[n - d + t, d - t, p - t, t] for d, t in zip(decided, tp, strict=True)]
        return np.array(rows) if batch.host else torch.stack([torch.stack(row) for row in rows])
    place = batch.place
    empty = batch.logits.new_zeros(tables * 2)
    ones = torch.ones_like(batch.logits) if weight is None else weight
    whole = empty.index_add(0, place, ones)
    yes = [empty.index_add(0, place, h if weight is None else h * weight) for h in high]
    return small(torch.stack([torch.stack([whole - y, y], 1).flatten() for y in yes]))
