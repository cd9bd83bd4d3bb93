"""What "auto" stands for: the members of a portfolio, each with the reason why it enters.

Linear, trees and mlp on cross-entropy are always there: out-of-fold and stacked they were better
than any one of them on every goal of the study behind the defaults, while metric-driven training
did not reliably beat cross-entropy with a tuned threshold on flexible models. So metric-driven
members enter only where they have a reason, and stay only if the rows tell them apart from the
simpler (that is decided after the fit, on out-of-fold rows).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from setpoint._core.errors import KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import Auroc, Constraint, PrecisionOverRecall
from setpoint.goals import Goal, Task
from setpoint.methods.costs import Costs
from setpoint.methods.cross_entropy import CrossEntropy
from setpoint.methods.exact.exact import Exact
from setpoint.methods.implicit.implicit import Implicit
from setpoint.methods.lagrangian import Lagrangian
from setpoint.methods.method import Method
from setpoint.methods.rate_targets import curve_of
from setpoint.methods.soft_set import SoftSet

_WIDE = 64  #: so many columns of numbers alone look like the features of a frozen network
LIGHT = Exact(rounds=20, steps=30, walks=200)  #: for each fold of a portfolio
_EXTREME = 0.01  #: a bound so near the end of its scale is an extreme operating point


@dataclass(frozen=True)
class Entry:
    """A member of a portfolio: which model, trained by which method, and why.

    Attributes
    ----------
    model : {"linear", "trees", "extra trees", "slow trees", "mlp"}
    method : Method
    why : str
    """

    model: str
    method: Method
    why: str

    @property
    def driven(self) -> bool:
        """Whether the goal drives the training, not only the threshold."""
        return not isinstance(self.method, CrossEntropy)

    def __str__(self) -> str:
        return f"{self.model} + {self.method.name}" if self.driven else self.model


@dataclass(frozen=True)
class Effort:
    """How much work a portfolio may be.

    Attributes
    ----------
    folds : int
    models : tuple of str
        On cross-entropy.
    steps : int
        Of a network in one fold, at most about; fewer where rows are many.
    driven : bool
        Whether metric-driven members enter without a special reason.
    """

    folds: int
    models: tuple[str, ...]
    steps: int
    driven: bool


EFFORTS = {
    "quick": Effort(3, ("linear", "trees"), 400, False),
    "standard": Effort(5, ("linear", "trees", "extra trees", "mlp"), 1500, False),
    "thorough": Effort(10, ("linear", "trees", "extra trees", "slow trees", "mlp"), 4000, True),
}


def effort(name: str) -> Effort:
    """An effort by name."""
    if name not in EFFORTS:
        hint = did_you_mean(str(name), EFFORTS, f"choose from {listing(EFFORTS)}.")
        raise KindError(f"effort={name!r}: {hint}")
    return EFFORTS[name]


def entries(goal: Goal, task: Task, how: Effort, numbers: int = 0) -> tuple[Entry, ...]:
    """The members of a portfolio for a goal.

    Parameters
    ----------
    goal : Goal
    task : Task
    how : Effort
    numbers : int
        Columns of a table that is numbers alone; 0 where it is not.

    Examples
    --------
    >>> goal = Goal.parse("minimize fnr subject to fpr <= 0.001")
    >>> [str(entry) for entry in entries(goal, Task.binary(), EFFORTS["standard"])]
    ['linear', 'trees', 'extra trees', 'mlp', 'linear + costs', 'linear + implicit']
    """
    found = [Entry(model, CrossEntropy(), "always") for model in how.models]
    far = [str(c) for c in goal.constraints if extreme(c)]
    why = {Costs: "", Implicit: "", Lagrangian: "", Exact: "", SoftSet: ""}
    if far:
        why[Costs] = why[Implicit] = f"{listing(far)} is an extreme operating point"
    if _partial(goal):
        why[Implicit] = f"{goal.objective} is a part of a curve"
    if goal.columns and goal.constraints:
        why[Lagrangian] = f"the goal speaks of {listing(goal.columns)}"
    if numbers >= _WIDE:
        why[Exact] = f"{numbers} columns of numbers look like features of another model"
    if how.driven:
        why = {method: reason or "thorough" for method, reason in why.items()}
    known = dict(task.groups)
    stand_in = {name: known.get(name, ("a", "b")) for name in goal.columns}  # values come later
    task = replace(task, groups=tuple(stand_in.items()))
    for method, reason in why.items():
        made: Method = LIGHT if method is Exact else method()
        if reason and made.refusal(goal, task) is None:
            found.append(Entry("linear", made, reason))
            if how.driven and method is SoftSet:
                found.append(Entry("mlp", made, reason))
    return tuple(found)


def _partial(goal: Goal) -> bool:
    """Whether the objective is a curve of which only one end counts."""
    leaf = curve_of(goal)
    part = isinstance(leaf, Auroc) and leaf.max_fpr < 1
    return part or (isinstance(leaf, PrecisionOverRecall) and leaf.min_recall > 0)


def extreme(constraint: Constraint) -> bool:
    """Whether a bound is within a hundredth of the end of its scale, on the side that is hard.

    >>> goal = Goal.parse("maximize recall subject to precision >= 0.99, fpr <= 0.02")
    >>> [extreme(c) for c in goal.constraints]
    [True, False]
    """
    if constraint.right.needs():
        return False
    bound = float(constraint.right.read({}).value)
    low, high = constraint.left.interval()
    room = high - bound if constraint.op == ">=" else bound - low
    return room <= _EXTREME + 1e-12
