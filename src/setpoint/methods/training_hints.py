"""Training hints: what a method asks of whoever trains it, as data.

A method states how a network starts, how fast it learns and what is remembered; fits, trees and
portfolios read that and never ask which method it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setpoint.methods.method import Method

MEMORY = 8192  #: rows that running totals remember; fewer shake prices, more make them stale


class Start(StrEnum):
    """The weights that a method's training starts from."""

    FRESH = "fresh"
    CROSS_ENTROPY = "cross-entropy"


class TreeGradient(StrEnum):
    """Gradients that boosted trees can follow; ``boosting`` has one class for each."""

    LOG_LOSS = "log loss"
    COSTS = "costs"
    SOFT_SET = "soft-set"


@dataclass(frozen=True, kw_only=True)
class TrainingHints:
    """What a method asks of whoever trains it; the defaults suit a smooth loss.

    Attributes
    ----------
    start : Start
        From the network as it was built, or from a run of cross-entropy, whose weights stay where
        the method is no better on the tune rows.
    half_threshold : bool
        Whether the best threshold of that run becomes ½ before the method starts, by the last bias.
    learning_rate : float
        Where the user gives none.
    rate_divisor : float
        Divides the learning rate, the user's too: what starts near its end takes smaller steps.
    warmup : float
        Share of the epochs that a fresh start spends on cross-entropy; none of them is kept.
    hardening : float
        Share of the epochs before the first one that may be kept.
    memory : int
        Rows that running totals remember.
    step_cost : float
        How long a step takes, as a multiple of one of cross-entropy: for estimates of time.
    goal_driven : bool
        Whether the goal drives the training, and not the threshold alone.
    tree_gradient : TreeGradient or None
        The gradient that boosted trees follow.
    class_costs : bool
        Whether a classifier with a loss of its own can follow it, by weights of its rows.
    real_targets : bool
        Whether it trains predictions of numbers.
    """

    start: Start = Start.FRESH
    half_threshold: bool = False
    learning_rate: float = 1e-3
    rate_divisor: float = 1.0
    warmup: float = 0.0
    hardening: float = 0.0
    memory: int = MEMORY
    step_cost: float = 1.0
    goal_driven: bool = True
    tree_gradient: TreeGradient | None = None
    class_costs: bool = False
    real_targets: bool = False


@dataclass(frozen=True, kw_only=True)
class FitSize:
    """How large a fit is; by it a method chooses its form and its phases.

    Attributes
    ----------
    rows, tune_rows : int
        Rows that are trained on, and rows that judge.
    class_rows : tuple of int
        Rows of each class among the first; of a multilabel task, positive rows of each label.
    steps : int
        Steps of all epochs.
    tabular : bool
        Whether every row is a vector of numbers.
    processes : int
    """

    rows: int
    tune_rows: int
    class_rows: tuple[int, ...]
    steps: int
    tabular: bool = True
    processes: int = 1

    @property
    def rarest(self) -> int:
        """Rows of the rarest class that has any.

        >>> FitSize(rows=100, tune_rows=20, class_rows=(97, 3, 0), steps=50).rarest
        3
        """
        return min((n for n in self.class_rows if n), default=self.rows)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One way through the training; of several, the best on the tune rows is kept.

    Attributes
    ----------
    method : Method
        In the form and with the options that suit the size.
    name : str
        Of its checkpoint and of its rows in the history.
    hints : TrainingHints
    on_all_rows : bool
        Whether the solution is settled over all rows at once, not in batches.
    note : str
        What to tell the user where this phase is kept.
    """

    method: Method
    name: str
    hints: TrainingHints = field(default_factory=TrainingHints)
    on_all_rows: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PortfolioPlace:
    """How a method enters a portfolio.

    Attributes
    ----------
    method : Method
        With the options it has there, where it is fitted on every fold.
    reason : str
        Why the goal or the table asks for it; empty where only a thorough effort takes it.
    models : tuple of str
        The models it trains: all of them in a thorough effort, else the first.
    """

    method: Method
    reason: str = ""
    models: tuple[str, ...] = ("linear",)
