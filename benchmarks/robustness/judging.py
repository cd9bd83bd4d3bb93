"""One criterion for everybody: numpy and torch only, float64.

A point is clipped to [0, 1]; it is a success where the margin max_{j≠y} z_j − z_y is ≥ 0 and, in
the max-loss form, its distance is at most ε (1 + 1e-6). A radius is that of a success, else ∞.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.robustness import models

NORMS = {"l2": 2.0, "linf": float("inf"), "l1": 1.0}
EPS = {
    "digits": {"l2": 0.6, "linf": 0.15, "l1": 2.0, "perceptual": 0.15},
    "mnist": {"l2": 1.2, "linf": 0.08, "l1": 8.0, "perceptual": 0.15},
}
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Case:
    """A network and the images of a table."""

    table: str
    net: nn.Module
    x: Tensor
    y: Tensor

    def margin(self, x: Tensor) -> Tensor:
        """(B, …) -> (B,), ≥ 0 where misclassified; a tie is."""
        return margin(self.net(x), self.y)


def case(table: str, count: int = 200) -> Case:
    """Images that the network gets right."""
    return Case(table, models.model(table), *models.images(table, count))


def margin(logits: Tensor, y: Tensor) -> Tensor:
    """max_{j≠y} z_j − z_y."""
    own = logits.gather(1, y[:, None])[:, 0]
    return logits.scatter(1, y[:, None], -torch.inf).amax(1) - own


def length(x: Tensor, other: Tensor, norm: str) -> Tensor:
    """‖x − x'‖_p of each row."""
    return torch.linalg.vector_norm((x - other).flatten(1), NORMS[norm], dim=1)


@torch.no_grad()
def judged(held: Case, moved: Tensor, distance: str) -> tuple[np.ndarray, np.ndarray]:
    """Margins and distances of what an attack gave, after clipping; NaN is no success."""
    point = moved.detach().to(held.x).clamp(0, 1)
    if distance == "perceptual":
        far = models.perceptual(held.table)(held.x, point)
    else:
        far = length(held.x, point, distance)
    return held.margin(point).nan_to_num(-torch.inf).numpy(), far.nan_to_num(torch.inf).numpy()


def succeeds(margins: np.ndarray, far: np.ndarray, eps: float) -> np.ndarray:
    """Max-loss."""
    return (margins >= 0) & (far <= eps * (1 + SLACK))


def radii(margins: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Min-radius."""
    return np.where(margins >= 0, far, np.inf)
