"""Gradients and hessians of a goal in the raw scores of boosted trees.

A booster fits each tree to gᵢ = ∂L/∂zᵢ with hᵢ > 0 in place of ∂²L/∂zᵢ², and a leaf gets the step
−Σ g / (Σ h + λ). A goal is no sum over rows, so its gradient comes in two parts, as for networks:

    renew   prices from the decisions (hard, or soft) that all rows' scores make now
    of      g and h of some rows at those prices, times the weights of the rows

Both are scaled so that prices cost 1 per row on average: learning rate, least hessian of a leaf and
λ mean what they mean with the library's own log loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from setpoint.boosting.tree_rows import TreeRows


class TreeGradients(ABC):
    """Gradients of one run of boosting; holds the run's prices.

    Parameters
    ----------
    width : int
        Number of classes.
    factor : float
        Of the hessian, where a library enlarges that of several classes.
    """

    def __init__(self, width: int, factor: float = 1.0) -> None:
        self.width, self.factor = width, factor
        self.turn = 0  #: renewals so far

    @abstractmethod
    def renew(self, rows: TreeRows) -> None:
        """Take prices from all training rows at their present scores."""

    @abstractmethod
    def of(self, rows: TreeRows) -> tuple[np.ndarray, np.ndarray]:
        """Give g and h of rows, shaped like their scores; h of log loss is factor w p (1 − p)."""

    @property
    @abstractmethod
    def prices(self) -> np.ndarray:
        """The present prices, (groups, actual, decided)."""


def coupled(rows: TreeRows, h: np.ndarray) -> np.ndarray:
    """The hessian of one row among its classes, (K, K), for a library that takes the whole of it.

    U (diag(p) − p pᵀ),  with U such that the trace is Σ h: for log loss exactly its hessian
    """
    p = rows.p[0]
    own = p * (1 - p)
    unit = h[0].sum() / max(own.sum(), 1e-300)
    return unit * (np.diag(p) - np.outer(p, p))
