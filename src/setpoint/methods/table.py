"""The methods by name."""

from __future__ import annotations

from collections.abc import Collection
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
from setpoint.methods.method import Method, not_totals
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

ALL = 40  #: options that a sentence names; no method has as many


def method(x: Any, beside: Collection[str] = (), /, **options: Any) -> Method:
    """A method from a method, or from its name and options.

    Parameters
    ----------
    x : Method or str
    beside : collection of str
        Options of whoever asks: a mistyped one of these is recognised too.
    **options
    """
    if isinstance(x, Method):
        if options:
            names, kind = listing(options), type(x).__name__
            hints = [did_you_mean(name, beside) for name in options]
            hint = next((f"; {hint}" for hint in hints if hint), "")
            raise KindError(f"{names}: options belong into {kind}(…), already made{hint}")
        return x
    if isinstance(x, type) and issubclass(x, Method):
        raise KindError(f"method={x.__name__} is a class: make one, {x.__name__}()")
    choice("method", x, METHODS)
    name_of_method = cast("str", x)  # choice has refused all else
    options_of = METHODS[name_of_method].__dataclass_fields__  # type: ignore[attr-defined]
    for name in options:
        if name not in options_of:
            hint = did_you_mean(name, [*options_of, *beside])
            taken = f"it takes {listing(options_of, ALL)}" if options_of else "it takes none"
            own = f"; the loss itself takes {listing(beside, ALL)}" if beside else ""
            words = f"{hint} {taken[0].upper()}{taken[1:]}" if hint else taken
            raise KindError(f'method="{x}" has no option "{name}": {words}{own}')
    return METHODS[name_of_method](**options)


#: Of the methods for decisions the one with no collapse, the most constraints kept, and the best
#: merit in the stress runs (docs/results.md, "Plain loops with defaults").
SAFEST = "exact"
OTHERS = ("pairwise", "implicit", "errors")  #: tried in turn for goals that judge no decisions


def method_for(goal: Goal, task: Task, beside: Collection[str] = (), /, **options: Any) -> Method:
    """The method that a goal is trained with where none is named."""
    why = not_totals(goal, task)
    if why is None:
        return method(SAFEST, beside, **options)
    for name in OTHERS:
        if METHODS[name]().accepts(goal, task):
            return method(name, beside, **options)
    raise GoalError(f"no method trains on this goal as it stands: {why}")


def trains_real_targets(x: Any) -> bool:
    """Whether something is a method that trains predictions of numbers."""
    return isinstance(x, Method) and x.hints.real_targets
