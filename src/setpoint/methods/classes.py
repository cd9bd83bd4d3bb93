"""Soft decisions among several classes: the d × d soft confusion matrix.

Membership of a row in class k, either
    softmax    s = softmax(z / T), or
    dynamic    s_k = H(p_k; τ) / Σⱼ H(pⱼ; τ), p = softmax(z), τ midway between the row's two
               largest probabilities, H linear with its width and δ scaled by T.
Both become the one-hot argmax, and the matrix the hard confusion matrix, as T → 0.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.surrogates import Linear, Schedule


class SoftClasses(nn.Module):
    """Cells of a multiclass batch under soft memberships.

    Parameters
    ----------
    tables, side : int
        Number of tables and of classes.
    membership : {"softmax", "dynamic"}
    shape : Linear
        δ and width of the dynamic step.
    temperature : Schedule
    """

    count = 1

    def __init__(
        self, tables: int, side: int, membership: str, shape: Linear, temperature: Schedule
    ) -> None:
        super().__init__()
        self.tables, self.side = tables, side
        self.membership, self.linear, self.temperature = membership, shape, temperature

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch, and what ``pull`` needs."""
        t = self.temperature.at(step)
        if self.membership == "softmax":
            plain = not self.temperature.moves and t == 1
            s = batch.probability if plain else F.softmax(batch.logits / t, 1)
            return self.cells(batch, s), (s, t, None)
        p = batch.probability
        best = p.topk(2, 1).values
        tau = best.mean(1, keepdim=True)
        raw, slope = linear_step(p, tau, self.linear.delta * t, self.linear.width * t)
        whole = raw.sum(1, keepdim=True)
        s = raw / whole
        return self.cells(batch, s), (s, t, slope / whole)

    def cells(self, batch: Batch, membership: Tensor) -> Any:
        """Cells from memberships (N, K)."""
        empty = membership.new_zeros(self.tables * self.side, self.side)
        return batch.small(empty.index_add_(0, batch.place, batch.weighed(membership)).view(1, -1))

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, (N, K), weighed."""
        s, t, slope = memory
        worth = torch.as_tensor(prices * share).to(s).view(-1, self.side)
        worth = worth.index_select(0, batch.place)  # (N, K)
        apart = worth - (worth * s).sum(1, keepdim=True)
        rest = cross_entropy_pull(batch).mul_(plain)
        if slope is None:
            return batch.weighed(rest.add_(s * apart / t))
        p, toward = batch.probability, apart * slope
        return batch.weighed(rest.add_(p * (toward - (p * toward).sum(1, keepdim=True))))


class HardClasses(nn.Module):
    """Cells of a multiclass batch decided by argmax."""

    count = 1

    def __init__(self, tables: int, side: int) -> None:
        super().__init__()
        self.tables, self.side = tables, side

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch."""
        del step
        n = self.tables * self.side * self.side
        cell = batch.place * self.side + batch.logits.argmax(1)
        ones = torch.ones_like(batch.logits[:, 0]) if batch.weight is None else batch.weight
        return batch.small(ones.new_zeros(n).index_add_(0, cell, ones).view(1, -1)), None


def linear_step(p: Tensor, tau: Tensor, delta: Any, width: Any) -> tuple[Tensor, Tensor]:
    """Value and slope of ``Linear`` at thresholds that differ by row; τ is held fixed.

    p (N, K), tau (N, 1).
    """
    w = width * torch.minimum(tau, 1 - tau)
    tiny = torch.finfo(p.dtype).tiny
    low, high = tau - w, tau + w
    first = delta / low.clamp(min=tiny)
    last = delta / (1 - high).clamp(min=tiny)
    middle = (1 - 2 * delta) / (2 * w).clamp(min=tiny)
    below, above = p < low, p >= high
    value = torch.where(
        below,
        first * p,
        torch.where(above, 1 - last * (1 - p), delta + middle * (p - low)),
    )
    slope = torch.where(below, first, torch.where(above, last, middle))
    return value, slope
