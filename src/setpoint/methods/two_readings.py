"""Two readings of one batch: soft cells for the weights, exact cells for the multipliers.

    soft   H(z − θ), the logistic function of k (z − θ) or a surrogate of the step on probabilities
    exact  1{z >= θ}
    slope  H′(z − θ): by how much the soft cells fall as θ rises

Both are sums over rows, so both are kept as running totals and added up over processes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.arrays import cast, join
from setpoint.methods.classes import HardClasses, SoftClasses
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.soft_decisions import by_class, table_cells
from setpoint.surrogates import Constant, Linear, Surrogate


class TwoSteps(nn.Module):
    """Cells of a binary or multilabel batch, soft and exact, at thresholds of the logit.

    Parameters
    ----------
    tables : int
        Number of 2 × 2 tables.
    surrogate : Surrogate or None
        H on probabilities, at ½; None is the logistic function of the logit.
    sharpness : float
        k of the logistic function.
    points : int
        Number of thresholds, all 0 to start with.
    moves : bool
        Whether thresholds are trained: then the slopes are summed too.
    """

    thresholds: Tensor

    def __init__(
        self, tables: int, surrogate: Surrogate | None, sharpness: float, points: int, moves: bool
    ) -> None:
        super().__init__()
        self.tables, self.surrogate, self.sharpness = tables, surrogate, sharpness
        self.points, self.moves = points, moves
        self.count = points * (3 if moves else 2)  #: soft, exact and, if they move, slopes
        self.register_buffer("thresholds", torch.zeros(points), persistent=moves)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(count, cells) sums over the batch, and the slopes (N,) at each threshold."""
        del step
        z, at = batch.logits, self.thresholds
        apart = [z - at[t] for t in range(self.points)] if self.moves else [z]
        soft, slopes = zip(*(self._step(x) for x in apart), strict=True)
        exact = [cast(batch.of(x) >= 0, batch.z) for x in apart]
        soft, slopes = ([batch.of(x) for x in several] for several in (soft, slopes))
        every = [*soft, *exact, *(slopes if self.moves else ())]
        return table_cells(batch, every, self.tables), slopes

    def _step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """H and H′ at distances from the threshold."""
        if self.surrogate is None:
            h = torch.sigmoid(self.sharpness * x)
            return h, self.sharpness * h * (1 - h)
        p = torch.sigmoid(x)
        return self.surrogate.value(p), self.surrogate.derivative(p) * p * (1 - p)

    def pull(self, batch: Batch, slopes: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · Σ prices · ∂(soft cells)/∂logits + plain · ∂cross-entropy/∂logits, weighed."""
        worth = prices[: self.points].reshape(self.points, -1, 2)
        worth = (worth[:, :, 1] - worth[:, :, 0]) * share  # (T, tables · 2)
        whole = by_class(batch, worth[0], slopes[0])
        for amounts, slope in zip(worth[1:], slopes[1:], strict=True):
            whole += by_class(batch, amounts, slope)
        whole += (batch.p - batch.y) * plain
        return batch.gradient(whole)


class TwoClasses(nn.Module):
    """Cells of a multiclass batch, soft and exact.

    Parameters
    ----------
    tables, side : int
        Number of tables and of classes.
    sharpness : float
        k: memberships are softmax(k z).
    """

    count, points, moves = 2, 1, False

    def __init__(self, tables: int, side: int, sharpness: float) -> None:
        super().__init__()
        self.soft = SoftClasses(tables, side, "softmax", Linear(), Constant(1 / sharpness))
        self.exact = HardClasses(tables, side)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(2, cells) sums over the batch, and what ``pull`` needs."""
        soft, memory = self.soft.read(batch, step)
        return join([soft, self.exact.read(batch, step)[0]], 0), memory

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · prices · ∂(soft cells)/∂logits + plain · ∂cross-entropy/∂logits, weighed."""
        return self.soft.pull(batch, memory, prices[:1], share, plain)
