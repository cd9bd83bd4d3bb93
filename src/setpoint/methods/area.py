"""The area under the ROC curve through a few soft points, with both end points."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.arrays import is_tensor
from setpoint.goals import Goal
from setpoint.methods.confusion.confusion_cells import Cells


class Area(nn.Module):
    """−Σ ½ (TPRₖ + TPRₖ₊₁)(FPRₖ₊₁ − FPRₖ) over (0, 0), (FPR_τ, TPR_τ) by falling τ, (1, 1).

    Stands in for ``Lowered`` where the objective is auroc: the same readings, of the curve that the
    soft cells at several thresholds draw. A perfect ranking reaches 1 only with both end points in.
    """

    def __init__(self, goal: Goal, cells: Cells) -> None:
        super().__init__()
        self.goal, self.cells, self.offset = goal, cells, 1.0
        self.constraints: list[str] = []

    def read(self, cells: Any) -> tuple[Any, Any]:
        """(1, 1) minus the area; ``cells`` (T, 4) by rising τ."""
        fpr, tpr, _ = self._curve(torch.as_tensor(cells))
        area = -torch.trapezoid(tpr, fpr).view(1, 1)
        return (area if is_tensor(cells) else area.numpy()), None

    def prices(self, cells: Any, memory: Any, weights: Any) -> Any:
        """Weights · ∂(minus area)/∂cells, (T, 4)."""
        del memory
        pulled = self._pulled(torch.as_tensor(cells), torch.as_tensor(weights))
        return pulled if is_tensor(cells) else pulled.numpy()

    def _pulled(self, cells: Tensor, weights: Tensor) -> Tensor:
        fpr, tpr, (n, p) = self._curve(cells)
        up = (fpr[2:] - fpr[:-2]) / 2  # ∂area/∂TPRₖ
        right = (tpr[:-2] - tpr[2:]) / 2  # ∂area/∂FPRₖ
        left, rise = (right / n).flip(0), (up / p).flip(0)
        # TPR = c₃ / (c₂ + c₃): ∂/∂c₃ = (1 − TPR)/P, ∂/∂c₂ = −TPR/P, and FPR alike
        f, t = fpr[1:-1].flip(0), tpr[1:-1].flip(0)
        return -weights * torch.stack([-f * left, (1 - f) * left, -t * rise, (1 - t) * rise], 1)

    @staticmethod
    def _curve(cells: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        n, p = cells[:, :2].sum(1), cells[:, 2:].sum(1)
        n, p = (torch.where(x > 0, x, 1.0) for x in (n, p))
        zero, one = cells.new_zeros(1), cells.new_ones(1)
        fpr, tpr = (cells[:, 1] / n).flip(0), (cells[:, 3] / p).flip(0)
        fpr, tpr = (torch.cat([zero, x, one]) for x in (fpr, tpr))
        return fpr, tpr, (n.flip(0), p.flip(0))
