"""The baseline by order statistics: the threshold is a score of the batch, and carries gradient.

The threshold of an operating point is the score of one row, an order statistic; the gradient of the
metric flows through that row alone (Mackey, Luo and Elad-Eddine, Constrained classification and
ranking via quantiles, 2018). The metric's other indicators are the sigmoids of the implicit method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


def misses_at(rates: Sequence[float], sharpness: float) -> Loss:
    """Mean over the false positive rates b of mean σ(k (λ_b − s)) over the positives."""

    def loss(z: Tensor, y: Tensor) -> Tensor:
        positive, negative = z[y == 1], z[y == 0]
        if not len(positive) or not len(negative):
            return z.sum() * 0
        thresholds = _largest(negative, [math.floor(b * len(negative)) + 1 for b in rates])
        return torch.sigmoid(sharpness * (thresholds[:, None] - positive)).mean()

    return loss


def imprecision_at(recalls: Sequence[float], sharpness: float) -> Loss:
    """1 − mean over the recalls r of rP / (rP + Σ σ(k (s − λ_r)) over the negatives)."""

    def loss(z: Tensor, y: Tensor) -> Tensor:
        positive, negative = z[y == 1], z[y == 0]
        if not len(positive) or not len(negative):
            return z.sum() * 0
        thresholds = _largest(positive, [math.ceil(r * len(positive)) for r in recalls])
        wrong = torch.sigmoid(sharpness * (negative - thresholds[:, None])).sum(1)
        right = torch.tensor(recalls, device=z.device) * len(positive)
        return 1 - (right / (right + wrong)).mean()

    return loss


def midpoints(low: float, high: float, points: int) -> list[float]:
    """Of ``points`` bins of one width."""
    return [low + (i + 0.5) * (high - low) / points for i in range(points)]


def _largest(x: Tensor, ranks: Sequence[int]) -> Tensor:
    """The k-th largest of each rank, from 1; ranks beyond the end are the last."""
    ordered = x.sort(descending=True).values
    return ordered[[min(k, len(x)) - 1 for k in ranks]]
