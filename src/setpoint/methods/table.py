"""The methods by name."""

from __future__ import annotations

from typing import Any, cast

from setpoint._core.errors import GoalError, KindError
from setpoint._core.options import choice
from setpoint._core.words import did_you_mean, listing
from setpoint.goals import Goal, Task
from setpoint.methods.costs import Costs
from setpoint.methods.cross_entropy import CrossEntropy
from setpoint.methods.exact.exact import Exact
from setpoint.methods.implicit.implicit import Implicit
from setpoint.methods.lagrangian import Lagrangian
from setpoint.methods.method import Method
from setpoint.methods.pairwise import Pairwise
from setpoint.methods.regression.regression_errors import Errors
from setpoint.methods.soft_set import SoftSet

#: in the order in which a portfolio takes them: soft-set, which has no goals of its own, is last
METHODS: dict[str, type[Method]] = {
    "cross-entropy": CrossEntropy,
    "costs": Costs,
    "pairwise": Pairwise,
    "implicit": Implicit,
    "lagrangian": Lagrangian,
    "exact": Exact,
    "soft-set": SoftSet,
    "errors": Errors,
}


def method(x: Any, **options: Any) -> Method:
    """A method from a method, or from its name and options."""
    if isinstance(x, Method):
        if options:
            names = listing(options)
            raise KindError(f"{names}: options belong into {type(x).__name__}(…), already made")
        return x
    if isinstance(x, type) and issubclass(x, Method):
        raise KindError(f"method={x.__name__} is a class: make one, {x.__name__}()")
    choice("method", x, METHODS)
    name_of_method = cast("str", x)  # choice has refused all else
    options_of = METHODS[name_of_method].__dataclass_fields__  # type: ignore[attr-defined]
    for name in options:
        if name not in options_of:
            otherwise = f"it has {listing(options_of)}" if options_of else "it has none"
            hint = did_you_mean(name, options_of, otherwise)
            raise KindError(f'method="{x}" has no option "{name}": {hint}')
    return METHODS[name_of_method](**options)


#: tried in turn where no method is named; of those for decisions "costs" is the simplest that
#: collapses least (docs/results.md, "Plain loops with defaults")
SAFEST = ("costs", "pairwise", "implicit", "errors")


def method_for(goal: Goal, task: Task, **options: Any) -> Method:
    """The method that a goal is trained with where none is named."""
    for name in SAFEST:
        if METHODS[name]().accepts(goal, task):
            return method(name, **options)
    why = METHODS[SAFEST[0]]().refusal(goal, task)
    raise GoalError(f"no method trains on this goal as it stands: {why}")


def trains_real_targets(x: Any) -> bool:
    """Whether something is a method that trains predictions of numbers."""
    return isinstance(x, Method) and x.hints.real_targets
