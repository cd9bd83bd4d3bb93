"""A goal: one objective, any number of constraints. Frozen, printable, and parsed back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint._core.errors import FileError, GoalError, KindError
from setpoint.expressions import Best, Columns, Constraint, Expression, Parser, Task, measure
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import RESERVED
from setpoint.metrics.table import metric, parser_of

MAXIMIZE, MINIMIZE = "maximize", "minimize"
_SENSES = {
    **dict.fromkeys(("maximize", "maximise", "max"), MAXIMIZE),
    **dict.fromkeys(("minimize", "minimise", "min"), MINIMIZE),
}


@dataclass(frozen=True, repr=False)
class Goal:
    """``maximize objective subject to constraints``.

    Parameters
    ----------
    sense : {"maximize", "minimize"}
    objective : Expression
    constraints : tuple of Constraint

    Examples
    --------
    >>> import setpoint as sp
    >>> goal = sp.maximize(sp.recall).subject_to(sp.precision >= 0.9)
    >>> print(goal)
    maximize recall subject to precision >= 0.9
    >>> goal == sp.Goal.parse(str(goal))
    True
    """

    sense: str
    objective: Expression
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if self.sense not in (MAXIMIZE, MINIMIZE):
            raise GoalError(f'a goal begins with maximize or minimize, not "{self.sense}"')
        if not isinstance(self.objective, Expression):
            raise KindError(f"the objective must be a metric; got {self.objective!r}")
        if not self.objective.needs():
            raise GoalError(f'the objective "{self.objective}" is a number; there is nothing to do')
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise KindError(
                    "a constraint compares a metric, for example precision >= 0.9; "
                    f"got {constraint!r}"
                )

    @property
    def sign(self) -> int:
        """1 to maximize, −1 to minimize."""
        return 1 if self.sense == MAXIMIZE else -1

    @cached_property
    def lowered(self) -> Goal:
        """The goal in totals of decisions, with every operating point as a constraint.

        ``maximize recall_at_precision(p)`` is ``maximize recall subject to precision >= p``.
        """
        body = unnamed(self.objective)
        if not isinstance(body, Best):
            return self
        if body.sense != self.sign:
            better = MAXIMIZE if body.sense > 0 else MINIMIZE
            raise GoalError(f'"{self}": {self.objective} is the best value already; {better} it')
        return Goal(self.sense, body.objective, (body.constraint, *self.constraints))  # type: ignore[arg-type]

    @property
    def columns(self) -> tuple[str, ...]:
        """The group columns that the goal speaks of."""
        parts = (self.objective, *(side for c in self.constraints for side in c.sides))
        found: dict[str, None] = {}
        for node in (n for part in parts for n in part.walk()):
            by = getattr(node, "by", None)
            names = [name for name, _ in getattr(node, "conditions", ())]
            names += [by] if isinstance(by, str) and by not in RESERVED else []
            found.update(dict.fromkeys(names))
        return tuple(found)

    def subject_to(self, *constraints: Constraint | str) -> Goal:
        """The same goal under further constraints, given as constraints or as text."""
        read = tuple(_read_constraint(c) if isinstance(c, str) else c for c in constraints)
        return Goal(self.sense, self.objective, self.constraints + read)

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a goal from text.

        ``maximize … [subject to … >= …, … <= … and …]``; ``%`` after a number divides by 100.

        Raises
        ------
        GoalSyntaxError
            With the place of the mistake and, where there is one, the nearest valid word.
        """
        return _parse(parser_of(text))

    @classmethod
    def of(cls, goal: Goal | Expression | str) -> Goal:
        """A goal from a goal, a text, or a metric whose direction is known."""
        if isinstance(goal, Goal):
            return goal
        if isinstance(goal, str):
            return cls.parse(goal)
        if isinstance(goal, Expression) and goal.better():
            return cls(MAXIMIZE if goal.better() == 1 else MINIMIZE, goal)
        raise KindError(
            'a goal is needed, for example "maximize recall subject to precision >= 0.9"; '
            f"got {goal!r}"
        )

    def __str__(self) -> str:
        held = ", ".join(map(str, self.constraints))
        return f"{self.sense} {self.objective}" + (f" subject to {held}" if held else "")

    def __repr__(self) -> str:
        return f"Goal.parse({str(self)!r})"

    def latex(self) -> str:
        """The goal as LaTeX, without the dollar signs."""
        head = rf"\{self.sense[:3]}\; {self.objective.latex()}"
        held = r",\; ".join(c.latex() for c in self.constraints)
        return head + (rf"\quad \text{{s.t.}}\quad {held}" if held else "")

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; expressions stand as text."""
        return {
            "sense": self.sense,
            "objective": str(self.objective),
            "constraints": [str(c) for c in self.constraints],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Goal:
        """Read what :meth:`to_json` wrote, or the goal as text."""
        if isinstance(data, str):
            return cls.parse(data)
        try:
            constraints = tuple(_read_constraint(text) for text in data["constraints"])
            return cls(data["sense"], metric(data["objective"]), constraints)
        except (KeyError, TypeError) as error:
            raise FileError(f"this is not a goal: {error!r}") from error


def maximize(objective: Expression | str) -> Goal:
    """The goal to make a metric as high as possible.

    >>> str(maximize("recall").subject_to("precision >= 0.9"))
    'maximize recall subject to precision >= 0.9'
    """
    return Goal(MAXIMIZE, metric(objective) if isinstance(objective, str) else objective)


def minimize(objective: Expression | str, *more: object, **options: object) -> Goal:
    """The goal to make a metric as low as possible.

    A function of tensors is minimised by :func:`setpoint.solve`; whatever comes beside the metric
    is refused with that hint.

    >>> str(minimize("fnr"))
    'minimize fnr'
    """
    if callable(objective) and not isinstance(objective, Expression):
        raise KindError(
            "minimize states the goal of a metric; a function is minimised by sp.solve(f, x0, …)"
        )
    if more or options:
        raise KindError(
            f"minimize takes a metric alone: minimize({objective}); constraints follow by "
            ".subject_to(…), and functions of tensors are minimised by sp.solve(f, x0, …)"
        )
    return Goal(MINIMIZE, metric(objective) if isinstance(objective, str) else objective)


def _read_constraint(text: str) -> Constraint:
    parser = parser_of(text)
    constraint = parser.constraint()
    if parser.now.kind != "end":
        parser.fail(f'cannot read "{parser.now.word}" after a constraint')
    return constraint


def _parse(parser: Parser) -> Goal:
    word = parser.now
    if not parser.skip(*_SENSES):
        parser.fail('a goal begins with "maximize" or "minimize"')
    if parser.now.kind == "end":
        parser.fail(f"say what to {word.word.lower()}")
    objective = parser.sum()
    if not objective.needs():
        parser.fail("the objective is a number; name a metric", word)
    if parser.now.kind == "end":
        return Goal(_SENSES[word.word.lower()], objective)
    if not _subject_to(parser):
        hint = 'constraints follow after "subject to"'
        if parser.at("and"):
            hint = "to want both, say min(a, b) or a weighted sum"
        parser.fail(f'cannot read "{parser.now.word}" here; {hint}')
    constraints = [parser.constraint()]
    while parser.skip(",", "and"):
        constraints.append(parser.constraint())
    if parser.now.kind != "end":
        parser.fail(f'cannot read "{parser.now.word}" after a constraint; join them by a comma')
    return Goal(_SENSES[word.word.lower()], objective, tuple(constraints))


def _subject_to(parser: Parser) -> bool:
    """Read "subject to", "such that", "s.t." or "st"."""
    for first, second in (("subject", "to"), ("such", "that")):
        if parser.skip(first):
            if not parser.skip(second):
                parser.fail(f'after "{first}" stands "{second}"')
            return True
    if parser.skip("s"):
        return parser.skip(".") and parser.skip("t") and (parser.skip(".") or True)
    return parser.skip("st")


# Whether a goal tells the two classes apart.


def symmetric(goal: Goal) -> bool:
    """Whether the goal says the same with the two classes exchanged, as accuracy and mcc do.

    Read on rows with random weights, once as they are and once with labels, decisions and scores
    turned round.

    Examples
    --------
    >>> symmetric(Goal.parse("maximize accuracy")), symmetric(Goal.parse("maximize f1"))
    (True, False)
    """
    rng = np.random.default_rng(0)
    actual = rng.random(24) < 0.4
    decided = rng.random(24) < 0.5
    scores, weight = rng.normal(size=24), rng.random(24) + 0.5
    columns = Columns(Task(), actual, decided, scores, weight)
    turned = Columns(Task(), ~actual, ~decided, -scores, weight)
    if goal.columns:
        return False
    for part in (goal.objective, *(side for c in goal.constraints for side in c.sides)):
        one, other = (measure(part, c).value() for c in (columns, turned))
        if abs(one - other) > 1e-9 * max(1.0, abs(one)):
            return False
    return True
