"""Rows as a boosting library hands them over, and the scores it starts from.

Scores are raw, sums of leaves on top of a start score:

    binary       z (n,),     p = 1 / (1 + exp(−z))
    multiclass   z (n, K),   p = softmax(z)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from setpoint._core.errors import DataError

TINY = 1e-15  #: least share of a class in a start score, as LightGBM takes it


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Scores of rows, what the rows are, and what they count.

    Attributes
    ----------
    scores : numpy.ndarray
        (n,) or (n, K), raw: logits, the start score among them.
    codes : numpy.ndarray
        (n,) 0 and 1, or the place of the class.
    weight : numpy.ndarray or None
        (n,).
    table : numpy.ndarray or None
        (n,) the group of each row, where the goal speaks of groups.
    p : numpy.ndarray
        (n,) or (n, K), the probabilities of the scores.
    """

    scores: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None = None
    table: np.ndarray | None = None
    p: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        p = expit(self.scores) if self.scores.ndim == 1 else softmax(self.scores, 1)
        object.__setattr__(self, "p", p)

    @property
    def constant(self) -> bool:
        """Whether all rows have the same scores, as they do before the first tree."""
        return bool((self.scores == self.scores[:1]).all())

    @property
    def mass(self) -> float:
        """Σ wᵢ."""
        return float(len(self.codes) if self.weight is None else self.weight.sum())

    def weighed(self, amounts: np.ndarray) -> np.ndarray:
        """wᵢ · amountᵢ, of (n,) or (n, K)."""
        if self.weight is None:
            return amounts
        return amounts * (self.weight if amounts.ndim == 1 else self.weight[:, None])

    def place(self, side: int) -> np.ndarray:
        """(n,) index of (group, class), flattened; ``side`` is the number of classes."""
        return self.codes if self.table is None else self.table * side + self.codes

    def cells(self, decided: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
        """(1, cells) the confusion table of decisions (n,), in weights per unit of mass."""
        side = shape[1]
        sums = np.bincount(self.place(side) * side + decided, self.weight, int(np.prod(shape)))
        return sums[None] / max(self.mass, 1e-300)


def tree_rows(
    width: int, scores: Any, label: Any, weight: Any = None, table: np.ndarray | None = None
) -> TreeRows:
    """Check labels and weights and bring rows into one form.

    Parameters
    ----------
    width : int
        Number of classes.
    scores : array-like
        (n,) of two classes, else (n, K).
    label : array-like
        (n,) codes 0 … width − 1, as floats or not.
    weight : array-like, optional
        None, or empty, where all rows count alike.
    """
    z = np.asarray(scores, dtype=np.float64)
    n = len(z)
    if z.shape != ((n,) if width == 2 else (n, width)):
        shape = "(n,)" if width == 2 else f"(n, {width})"
        raise DataError(
            f"scores of {width} classes have shape {shape}; got {z.shape}. Of several classes say "
            "task=Task.multiclass(range(K)) and the library's num_class=K"
        )
    y = np.asarray(label)
    codes = y.astype(np.intp)
    if y.shape != (n,) or bool(((codes != y) | (codes < 0) | (codes >= width)).any()):
        odd = y[(codes != y) | (codes < 0) | (codes >= width)] if y.shape == (n,) else y
        example = f"{odd[0]:g}" if odd.ndim == 1 and odd.size else f"shape {y.shape}"
        raise DataError(f"labels must be the codes 0…{width - 1}, one per row; got {example}")
    return TreeRows(z, codes, _checked(weight, n), table)


def _checked(weight: Any, n: int) -> np.ndarray | None:
    """Weights (n,) in float64; None where there are none."""
    if weight is None or not np.size(weight):
        return None
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (n,) or not bool((np.isfinite(w) & (w >= 0)).all()):
        raise DataError(f"weights must be {n} finite numbers, 0 or more")
    return w


def start_score(codes: np.ndarray, weight: np.ndarray | None, width: int) -> np.ndarray:
    """Scores without a tree: what the built-in log loss starts from, by the shares of the classes.

        binary       log(p₁ / p₀), (1,)
        multiclass   log p_k, (K,)

    Examples
    --------
    >>> start_score(np.array([0, 0, 0, 1]), None, 2).round(4)
    array([-1.0986])
    """
    mass = np.bincount(codes, weight, width)
    share = np.clip(mass / max(mass.sum(), 1e-300), TINY, 1 - TINY)
    return np.log(share) if width > 2 else np.log(share[1:] / (1 - share[1:]))


def spread(start: Any, rows: int) -> np.ndarray:
    """A start score (1,) or (K,) for each of so many rows: (n,) or (n, K)."""
    wide = np.tile(np.asarray(start, dtype=np.float64), (rows, 1))
    return wide[:, 0] if wide.shape[1] == 1 else wide


# Gradients and hessians of a goal in the raw scores of boosted trees.
#
# A booster fits each tree to gᵢ = ∂L/∂zᵢ with hᵢ > 0 in place of ∂²L/∂zᵢ², and a leaf gets the step
# −Σ g / (Σ h + λ). A goal is no sum over rows, so its gradient comes in two parts, as for networks:
#
#     renew   prices from the decisions (hard, or soft) that all rows' scores make now
#     of      g and h of some rows at those prices, times the weights of the rows
#
# Both are scaled so that prices cost 1 per row on average: learning rate, least hessian of a leaf
# and λ mean what they mean with the library's own log loss.


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
        self.width = width
        self.factor = factor
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
