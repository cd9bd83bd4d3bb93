"""A method: how a goal becomes a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from setpoint._core.errors import GoalError, SetpointError
from setpoint.expressions import AtK, Auroc, Curve, Ndcg, PrecisionOverRecall, Spread, Total
from setpoint.expressions.rows.row_events import KEPT
from setpoint.goals import Goal, Task, check
from setpoint.methods.training_hints import FitSize, Phase, PortfolioPlace, TrainingHints
from setpoint.programs import StreamProgram


class GoalStanding(NamedTuple):
    """How a constraint stands.

    ``excess`` is by how much it is broken, in its own units (<= 0 where it holds), ``multiplier``
    what the program pays for one unit of it.
    """

    constraint: str
    excess: float
    multiplier: float


@dataclass(frozen=True)
class Recovered:
    """What a program came to, in the user's units.

    Attributes
    ----------
    value : float
        The goal's objective at the running totals.
    constraints : tuple of GoalStanding
    thresholds : tuple of float
        Of logits, where the method keeps any.
    """

    value: float
    constraints: tuple[GoalStanding, ...] = ()
    thresholds: tuple[float, ...] = ()


class LabelledOutputs(NamedTuple):
    """Outputs of a model on rows with their labels, on the host."""

    outputs: Tensor
    target: Tensor
    weight: Tensor | None = None
    group: Tensor | Mapping[str, Tensor] | None = None


class Method(ABC):
    """A way to train on a goal; a frozen dataclass of its options.

    A method says whether it ``accepts`` a goal, lowers it to a program, and recovers what the
    program came to. It holds no state. How it is trained it states in ``hints``, and where those
    depend on goal and rows in ``schedule``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    hints: ClassVar[TrainingHints] = TrainingHints()

    @abstractmethod
    def objection(self, goal: Goal, task: Task) -> str | None:
        """None if a goal of this kind can be trained so, else a sentence why not and what can."""

    @abstractmethod
    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        """The program of a goal; raises with the sentence of ``refusal``."""

    def refusal(self, goal: Goal, task: Task) -> str | None:
        """None if the goal can be lowered, else the sentence why not."""
        try:
            self.lower(goal, task)
        except SetpointError as error:
            return str(error)
        return None

    def accepts(self, goal: Goal, task: Task) -> bool:
        """Whether the goal can be lowered."""
        return self.refusal(goal, task) is None

    @abstractmethod
    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        """What a program came to, in the user's units."""

    def state_options(self) -> dict[str, Any]:
        """Options that say what a saved state means; a state of others is refused.

        Not what fades from the totals by itself, nor how fast something moves.
        """
        return {}

    # --- how it is trained -----------------------------------------------------------------------

    @property
    def threshold_group(self) -> str | None:
        """The group column that thresholds differ by; None for one threshold."""
        return None

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        """The phases of a training; of several, the best on the tune rows is kept."""
        del goal, task, size
        return (Phase(method=self, name=self.name, hints=self.hints),)

    def at_threshold(
        self, goal: Goal, task: Task, rows: LabelledOutputs, threshold: float
    ) -> Method:
        """The method as it starts from outputs whose best threshold is this probability."""
        del goal, task, rows, threshold
        return self

    def class_costs(
        self, goal: Goal, task: Task, rows: LabelledOutputs, threshold: float | None
    ) -> np.ndarray | None:
        """What a mistake costs, by class, the dearest 1; None where a method has no such costs.

        Parameters
        ----------
        threshold : float or None
            The best one, where scores are probabilities.
        """
        del goal, task, rows, threshold
        return None

    def classifier_objection(self, goal: Goal, classifier: str) -> str | None:
        """Why a classifier of scikit-learn cannot be trained so; None if it can."""
        del goal, classifier
        return (
            f'method="{self.name}" trains networks; a classifier of scikit-learn takes '
            '"cross-entropy" (its own loss, the threshold tuned) or "costs" (sample weights)'
        )

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace | None:
        """How the method enters a portfolio for a goal; None where it never does.

        Parameters
        ----------
        numbers : int
            Columns of a table that is numbers alone; 0 where it is not.
        """
        del goal, numbers
        return None


def ready(method: Method, goal: Goal, task: Task) -> Goal:
    """Check the goal against the task and the method; operating points become constraints."""
    check(goal, task)
    why = method.objection(goal, task)
    if why is not None:
        raise GoalError(why)
    return goal.lowered


def undeclared(goal: Goal, task: Task) -> str | None:
    """Why a goal speaks of groups that nobody declared, as a sentence; None if it does not."""
    missing = [name for name in goal.columns if task.group_values(name) is None]
    if not missing:
        return None
    return (
        f'the goal speaks of the column "{missing[0]}": declare its values, '
        f'task=Task.{task.kind}(groups={{"{missing[0]}": […]}}), and pass group= with the code of '
        "each row"
    )


def not_totals(goal: Goal, task: Task) -> str | None:
    """Why a goal is no function of totals of decisions, as a sentence; None if it is one."""
    if task.kind in ("ranking", "regression"):
        other = "implicit" if task.kind == "ranking" else "errors"
        return f'a {task.kind} task has no decisions to train on; method="{other}" trains on it'
    if task.kind in ("multiclass", "multilabel") and task.classes is None:
        return f"say which classes there are: Task.{task.kind}(classes)"
    why = undeclared(goal, task)
    if why is not None:
        return why
    goal = goal.lowered
    parts = [goal.objective, *(side for c in goal.constraints for side in c.sides)]
    for part in parts:
        for leaf in part.leaves():
            if isinstance(leaf, Auroc | PrecisionOverRecall):
                return (
                    f'"{part}" judges a ranking, not decisions; method="pairwise" trains on auroc '
                    "and average_precision of a binary task"
                )
            if isinstance(leaf, AtK | Ndcg | Curve | Spread):
                return f'"{part}" is no function of totals of decisions at one threshold'
            if isinstance(leaf, Total) and (leaf.quantity != "one" or leaf.event.about(KEPT)):
                return f'"{part}" is about abstaining or errors of regression, not decisions'
    return None
