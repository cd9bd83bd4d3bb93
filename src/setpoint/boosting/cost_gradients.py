"""Log loss with costs, for trees: fixed costs, or the goal's own prices, renewed by every tree.

A row of class a has a worth u[a, d] >= 0 for each decision d; with U = Σ_d u[a, d]

    L = −Σᵢ wᵢ Σ_d u[yᵢ, d] log p_d(xᵢ),    g_d = w (U p_d − u[a, d]),    h_d = w U p_d (1 − p_d).

With u = 1 for the right decision and 0 for the others it is the library's own log loss.

The worth is the goal's price −∂L/∂C at hard decisions C of the present scores: of two classes at
the best threshold; of several by argmax, and then one cost for each class, that of the mistakes
made. Prices are averaged over the trees, those of tree k with weight 1/(k + 10), so that they
settle: costs that jump with every tree are never fitted.

Under constraints the best threshold of two classes already tells the multipliers. Costs c₁ : c₀
multiply odds by c₁/c₀, so a best threshold at the logit t asks for costs of ratio c₁/c₀ · exp(−t),
after which it lies at ½. Elsewhere the multipliers of broken constraints grow, as for networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from setpoint._core.errors import GoalError, KindError
from setpoint.boosting.tree_rows import TreeGradients, TreeRows
from setpoint.goals import Goal, Task
from setpoint.methods.costs import Costs

SETTLING = 10.0  #: trees of plain log loss that the mean of the prices starts with
RARELY = 1e-3  #: share of a class's rows that each mistake is taken to be made with, at least
FURTHEST = math.log(50.0)  #: no class costs more than so many times the other

Threshold = Callable[[TreeRows], float]


class TreeWorth(TreeGradients):
    """Log loss with a worth for each class and decision.

    Parameters
    ----------
    worth : numpy.ndarray
        (groups, K, K).
    """

    def __init__(self, worth: np.ndarray, factor: float = 1.0) -> None:
        super().__init__(worth.shape[1], factor)
        self.worth = worth

    def renew(self, rows: TreeRows) -> None:
        del rows

    @property
    def prices(self) -> np.ndarray:
        return self.worth

    def of(self, rows: TreeRows) -> tuple[np.ndarray, np.ndarray]:
        u = self.worth.reshape(-1, self.width)[rows.place(self.width)]  # (n, K)
        p, whole = rows.p, u.sum(1)
        u, whole = (u[:, 1], whole) if p.ndim == 1 else (u, whole[:, None])
        # in the order of the libraries: a rounding elsewhere decides between splits that are equal
        return rows.weighed(whole * p - u), rows.weighed(self.factor * whole * p * (1 - p))


class TreeEntropy(TreeWorth):
    """Plain or class-weighted log loss."""

    def __init__(self, width: int, class_weight: Any, factor: float = 1.0) -> None:
        costs = class_weight if isinstance(class_weight, tuple) else np.ones(width)
        super().__init__(np.diag(costs)[None], factor)
        self.balanced = class_weight == "balanced"

    @classmethod
    def for_goal(
        cls, goal: Goal, task: Task, method: Any, threshold: Threshold, factor: float
    ) -> TreeEntropy:
        """The gradients of a run; the goal chooses the threshold afterwards."""
        del threshold
        method.lower(goal, task)  # refuses what the method refuses
        width = 2 if task.kind == "binary" else len(task.classes or ())
        return cls(width, method.class_weight, factor)

    def renew(self, rows: TreeRows) -> None:
        if self.balanced:
            mass = np.bincount(rows.codes, rows.weight, self.width)
            self.worth = np.diag(mass.sum() / (self.width * np.maximum(mass, 1e-300)))[None]


class TreeCosts(TreeWorth):
    """Log loss with the goal's prices at hard decisions.

    Parameters
    ----------
    goal : Goal
    task : Task
    method : Costs
    threshold : callable
        The best threshold of rows of two classes, a raw score; inf where nothing is decided.
    """

    def __init__(
        self, goal: Goal, task: Task, method: Costs, threshold: Threshold, factor: float = 1.0
    ) -> None:
        if method.truncate is not None:
            raise KindError(
                f"truncate={method.truncate!r}: a given-up row has no hessian; trees take costs "
                "without it"
            )
        self.program: Any = method.lower(goal, task)
        shape = self.program.cells.shape
        super().__init__(np.broadcast_to(np.eye(shape[1]), shape).copy(), factor)
        self.multipliers = self.program.start.double().numpy().copy()
        self.threshold = threshold if task.kind == "binary" else None
        alone = self.threshold is not None and shape[0] == 1 and method.multipliers is None
        self.tilting = alone and len(self.multipliers) > 0
        self.tilt = 0.0  #: log c₁/c₀ so far

    @classmethod
    def for_goal(
        cls, goal: Goal, task: Task, method: Any, threshold: Threshold, factor: float
    ) -> TreeCosts:
        """The gradients of a run."""
        return cls(goal, task, method, threshold, factor)

    def renew(self, rows: TreeRows) -> None:
        if rows.constant:  # nothing is told apart yet
            return
        share = 1 / (self.turn + SETTLING)
        self.turn += 1
        cut = 0.0
        if self.threshold is not None and (self.tilting or not len(self.multipliers)):
            cut = self.threshold(rows)
        if self.tilting:
            t = min(max(cut, -FURTHEST), FURTHEST)
            self.tilt = min(max(self.tilt - share * t, -FURTHEST), FURTHEST)
            worth = np.diag([1.0, math.exp(self.tilt)])[None]
            self.worth = worth / self._mean(rows, worth)
            return
        z = rows.scores
        decided = (z >= cut).astype(np.intp) if z.ndim == 1 else z.argmax(1)
        cells = rows.cells(decided, self.program.cells.shape)
        priced = self.program.price(cells, self.multipliers)
        worth = np.asarray(priced.prices, dtype=np.float64).reshape(self.worth.shape)
        if not np.isfinite(worth).all():
            raise GoalError(f'"{self.program.lowered.goal}" has no finite prices on these rows')
        worth = worth if z.ndim == 1 else self._of_mistakes(worth, cells.reshape(worth.shape))
        self.worth = (1 - share) * self.worth + share * worth / self._mean(rows, worth)
        if len(self.multipliers):
            self.multipliers = self.program.ascend(self.multipliers, priced.violations, share)

    def _of_mistakes(self, worth: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """One cost per class: what its mistakes cost, as they are made now.

        The whole table would pay a row for the lesser of two mistakes. The best decisions are the
        same, but trees then fit a blurred target: on five tables macro-F1 fell by .01 to .06.
        """
        wrong = 1 - np.eye(self.width)
        mistakes = wrong * (cells + RARELY * cells.sum(2, keepdims=True) + 1e-300)
        lost = np.diagonal(worth, axis1=1, axis2=2)[:, :, None] - worth
        cost = (lost * mistakes).sum(2) / mistakes.sum(2)
        return np.maximum(cost, self.program.method.floor)[:, :, None] * np.eye(self.width)

    def _mean(self, rows: TreeRows, worth: np.ndarray) -> float:
        """The mean over rows of the best decision's worth."""
        best = worth.max(2).reshape(-1)[rows.place(self.width)]
        return max(float(rows.weighed(best).sum()) / max(rows.mass, 1e-300), 1e-300)
