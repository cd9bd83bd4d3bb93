"""Metric-driven members of a portfolio ("auto"), each with the reason why it enters; efforts.

The plain members are the rows of :mod:`setpoint.fit.portfolio_members`: out-of-fold and stacked
they were better than any one of them on every goal of the study behind the defaults, while
metric-driven training did not reliably beat cross-entropy with a tuned threshold on flexible
models. So metric-driven members enter only where they have a reason, and stay only if the rows tell
them apart from the simpler (that is decided after the fit, on out-of-fold rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from setpoint._core.options import choice
from setpoint.goals import Goal, Task
from setpoint.methods.cross_entropy import CrossEntropy
from setpoint.methods.method import Method
from setpoint.methods.table import METHODS


@dataclass(frozen=True)
class Entry:
    """A member of a portfolio: which model, trained by which method, and why.

    Attributes
    ----------
    model : str
        By its name in :data:`setpoint.fit.portfolio_members.PORTFOLIO_MEMBERS`.
    method : Method
    why : str
    """

    model: str
    method: Method
    why: str

    @property
    def driven(self) -> bool:
        """Whether the goal drives the training, not only the threshold."""
        return self.method.hints.goal_driven

    def __str__(self) -> str:
        return f"{self.model} + {self.method.name}" if self.driven else self.model


@dataclass(frozen=True)
class Effort:
    """How much work a portfolio may be.

    Attributes
    ----------
    name : str
    folds : int
    steps : int
        Of a network in one fold, at most about; fewer where rows are many.
    driven : bool
        Whether metric-driven members enter without a special reason.
    """

    name: str
    folds: int
    steps: int
    driven: bool


EFFORTS = {
    "quick": Effort("quick", folds=3, steps=400, driven=False),
    "standard": Effort("standard", folds=5, steps=1500, driven=False),
    "thorough": Effort("thorough", folds=10, steps=4000, driven=True),
}


def effort(name: str) -> Effort:
    """An effort by name."""
    return EFFORTS[choice("effort", name, EFFORTS)]


def entries(
    goal: Goal, task: Task, how: Effort, models: Sequence[str], numbers: int = 0
) -> tuple[Entry, ...]:
    """The members of a portfolio for a goal.

    Parameters
    ----------
    goal : Goal
    task : Task
    how : Effort
    models : sequence of str
        The plain ones, on cross-entropy.
    numbers : int
        Columns of a table that is numbers alone; 0 where it is not.

    Examples
    --------
    >>> goal = Goal.parse("minimize fnr subject to fpr <= 0.001")
    >>> [str(entry) for entry in entries(goal, Task.binary(), EFFORTS["standard"], ["trees"])]
    ['trees', 'linear + costs', 'linear + implicit']
    """
    members = [Entry(model, CrossEntropy(), "always") for model in models]
    group_values = dict(task.groups)
    # the values of other columns come later
    stand_in = {name: group_values.get(name, ("a", "b")) for name in goal.columns}
    task = replace(task, groups=tuple(stand_in.items()))
    for kind in METHODS.values():
        place = kind().portfolio_place(goal, numbers)
        if place is None:
            continue
        reason = place.reason or ("thorough" if how.driven else "")
        if reason and place.method.refusal(goal, task) is None:
            driven = place.models if how.driven else place.models[:1]
            members += [Entry(model, place.method, reason) for model in driven]
    return tuple(members)
