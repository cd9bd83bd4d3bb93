"""The referee: what a model bought over the baselines, on rows none of them was fitted on.

Every entrant decides rows by a rule that other folds chose, so that no threshold is judged on the
rows it was tuned on. How they differ is read from a paired bootstrap: rows are drawn with
replacement within their folds, the same rows for everybody. Each draw gives the goal's merit,

    merit = ± objective − Σ price · shortfall

Rows that look alike (same fold, label, group, decisions) are one unit with a
count, so that a draw is one multinomial per fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions.comparison import Comparison, Contender, Difference, verdict_of
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.expressions import Columns, Constraint, Total
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.decision_rule import DecisionRule
from setpoint.rules.goal_on_rows import GoalOnRows, Point

# What it costs to break a constraint, where a rule or a model has to be chosen.


_LEAST = 5.0


def price_of(constraint: Constraint) -> float:
    """What a unit of shortfall costs, in units of the objective: max(5, 1/room).

    Room is the distance of the bound from the end of its scale: to break fpr <= 0.02 by 0.02 costs
    as much as all recall, and a floor on precision is a cap on the share of false alarms.

    >>> from setpoint.goals import Goal
    >>> goal = Goal.parse("maximize recall subject to precision >= 0.8, fpr <= 0.02")
    >>> [round(price_of(c), 6) for c in goal.constraints]
    [5.0, 50.0]
    """
    bound = constraint.number
    if bound is None:
        return _LEAST
    low, high = constraint.left.interval()
    room = high - bound if constraint.op == ">=" else bound - low
    return max(_LEAST, 1 / room) if 0 < room < math.inf else _LEAST


DRAWS = 300
LEVEL = 0.05  #: of the paired intervals, two-sided
_WORK = 2_000_000  #: rows times draws times entrants, about


@dataclass(frozen=True, eq=False)
class Entrant:
    """Somebody whose decisions are judged: columns with scores and decisions, the same rows."""

    name: str
    columns: Columns
    point: str


def cross_decided(
    columns: Columns, fold: np.ndarray, choose: Callable[[Columns], DecisionRule]
) -> Columns:
    """Rows decided by rules that other folds chose.

    Parameters
    ----------
    columns : Columns
        Labels and scores, on the host.
    fold : numpy.ndarray
        (n,) the fold of each row.
    choose : callable
        From columns to a rule.
    """
    decided: Any = None
    abstained: Any = None
    for f in np.unique(fold):
        rows = np.flatnonzero(fold == f)
        try:
            rule = choose(columns.take(np.flatnonzero(fold != f)))
        except DataError:  # the other folds lack a class
            rule = choose(columns)
        part = rule.decided_columns(columns.take(rows))
        made = np.asarray(part.decided)
        if decided is None:
            decided = np.zeros((columns.size, *made.shape[1:]), made.dtype)
            abstained = None if part.abstained is None else np.zeros(columns.size, bool)
        decided[rows] = made
        if abstained is not None:
            abstained[rows] = part.abstained
    return replace(columns, decided=decided, abstained=abstained)


@dataclass(frozen=True, eq=False)
class Bout:
    """Entrants on the same rows: what each reached, and on every draw of a paired bootstrap."""

    goal: Goal
    entrants: tuple[Entrant, ...]
    points: tuple[Point, ...]
    values: np.ndarray  #: (draws, entrants)
    merits: np.ndarray  #: (draws, entrants)
    folds: int

    @classmethod
    def of(cls, goal: Goal, entrants: Sequence[Entrant], fold: np.ndarray, seed: int = 0) -> Bout:
        """Judge entrants on all rows, and on rows drawn from them."""
        goal = goal.lowered
        units, where, count = _units(goal, [e.columns for e in entrants], fold)
        problem = GoalOnRows.ground(goal, entrants[0].columns)
        judges = [_Judge(problem, e.columns.take(units)) for e in entrants]
        random = np.random.default_rng(seed)
        work = len(units) * len(entrants)
        draws = min(DRAWS, max(100, _WORK // max(work, 1)))
        points = tuple(judge.read(count) for judge in judges)
        drawn: list[list[Point]] = []
        for _ in range(draws):
            drawn_count = _draw(count, where, random)
            drawn.append([judge.read(drawn_count) for judge in judges])
        worth = _Worth(goal, points)
        return cls(
            goal=goal,
            entrants=tuple(entrants),
            points=points,
            values=np.array([[worth.value(p) for p in row] for row in drawn]),
            merits=np.array([[worth.merit(p) for p in row] for row in drawn]),
            folds=len(np.unique(fold)),
        )

    def difference(self, a: str, b: str) -> Difference:
        """Entrant a minus entrant b."""
        names = [e.name for e in self.entrants]
        i, j = names.index(a), names.index(b)
        worth = _Worth(self.goal, self.points)
        ends = [LEVEL / 2, 1 - LEVEL / 2]
        low, high = np.quantile(self.values[:, i] - self.values[:, j], ends).tolist()
        least, most = np.quantile(self.merits[:, i] - self.merits[:, j], ends).tolist()
        first, second = self.points[i], self.points[j]
        value = worth.value(first) - worth.value(second)
        merit = worth.merit(first) - worth.merit(second)
        return Difference(b, value, low, high, merit, least, most)

    def error(self, a: str, b: str) -> float:
        """The standard error of the difference in merit."""
        names = [e.name for e in self.entrants]
        gap = self.merits[:, names.index(a)] - self.merits[:, names.index(b)]
        return float(gap.std(ddof=1))

    def comparison(
        self, chosen: str, verdicts: Mapping[str, str] | None = None, why: str = ""
    ) -> Comparison:
        """The record, with the sentence of the referee."""
        worth = _Worth(self.goal, self.points)
        found = [
            Contender(
                e.name,
                e.point,
                p.value,
                _kept(self.goal, p),
                worth.merit(p),
                (verdicts or {}).get(e.name, ""),
            )
            for e, p in zip(self.entrants, self.points, strict=True)
        ]
        found.sort(key=lambda c: c.name != chosen)
        gaps = tuple(self.difference(chosen, c.name) for c in found[1:])
        sentence = " ".join(filter(None, [verdict_of(self.goal, found, gaps), why]))
        size = self.entrants[0].columns.size
        return Comparison(self.goal, chosen, tuple(found), gaps, size, self.folds, sentence)


class _Judge:
    """Reads the goal for an entrant on its rows, each counted so many times.

    Totals are sums over rows, so that a draw is one product of counts and amounts; other leaves,
    such as curves, are measured on the rows drawn.
    """

    def __init__(self, problem: GoalOnRows, rows: Columns) -> None:
        self.problem = problem
        self.rows = rows
        self.totals = [leaf for leaf in problem.leaves() if isinstance(leaf, Total)]
        self.others = [leaf for leaf in problem.leaves() if not isinstance(leaf, Total)]
        amounts = [rows.amounts(total.event, total.quantity) for total in self.totals]
        self.amounts = np.stack(amounts, axis=1) if amounts else np.zeros((rows.size, 0))

    def read(self, count: np.ndarray) -> Point:
        """What is read where each row stands so many times."""
        sums = count.astype(np.float64) @ self.amounts
        states: dict[Any, Any] = dict(zip(self.totals, sums, strict=True))
        if self.others:
            drawn = self._counted(count)
            try:
                states |= {leaf: leaf.measure(drawn) for leaf in self.others}
            except DataError:  # rows without one of the classes
                return Point(None, (None,) * len(self.problem.constraints), ())
        return self.problem.at(states)

    def _counted(self, count: np.ndarray) -> Columns:
        """The rows drawn, their counts as weights."""
        drawn = count > 0
        rows = self.rows.take(drawn)
        weight = count[drawn].astype(np.float64)
        return replace(rows, weight=weight if rows.weight is None else weight * rows.weight)


class _Worth:
    """From what is read to one number."""

    def __init__(self, goal: Goal, points: Sequence[Point]) -> None:
        self.sign = goal.sign
        low, high = goal.objective.interval()
        seen = [p.value for p in points if p.value is not None]
        finite = math.isfinite(low) and math.isfinite(high)
        self.scale = 1.0 if finite else max([1e-12, *map(abs, seen)])
        worst = low if goal.sign > 0 else high
        usual = min([goal.sign * v for v in seen], default=0.0) * goal.sign
        self.worst = worst if math.isfinite(worst) else usual
        self.prices = [price_of(c) for c in goal.constraints]

    def value(self, point: Point) -> float:
        return self.worst if point.value is None else point.value

    def merit(self, point: Point) -> float:
        short = [min(max(e, 0.0), 1.0) for e in point.excess] or [1.0] * (
            len(self.prices) - len(point.excess)
        )
        lost = sum(p * s for p, s in zip(self.prices, short, strict=False))
        return self.sign * self.value(point) - self.scale * lost


def _units(
    goal: Goal, entrants: Sequence[Columns], fold: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Rows that stand for all that look alike, the units of each fold, and how many each is."""
    base = entrants[0]
    parts: list[Any] = [fold]
    needs = goal.objective.needs() | {
        n for c in goal.constraints for s in c.sides for n in s.needs()
    }
    for columns in entrants:
        parts += [columns.actual, columns.decided, columns.abstained]
        parts += [columns.scores] if "scores" in needs else []
    parts += [base.weight, base.query, *(base.groups or {}).values()]
    coded = [_codes(p) for p in parts if p is not None]
    table = np.concatenate([c.reshape(base.size, -1) for c in coded], 1)
    if "query" in needs or base.query is not None:
        table = np.concatenate([table, np.arange(base.size)[:, None]], 1)
    _, first, count = np.unique(table, axis=0, return_index=True, return_counts=True)
    where = [np.flatnonzero(fold[first] == f) for f in np.unique(fold)]
    return first, where, count


def _codes(x: Any) -> np.ndarray:
    """Any column as whole numbers that tell its values apart."""
    x = np.asarray(x)
    if x.dtype.kind in "biu":
        return x.astype(np.int64)
    return np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(np.int64)


def _draw(count: np.ndarray, where: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
    drawn = np.zeros(len(count), np.int64)
    for units in where:
        n = count[units]
        drawn[units] = random.multinomial(n.sum(), n / n.sum())
    return drawn


def _kept(goal: Goal, point: Point) -> tuple[ConstraintValue, ...]:
    return tuple(
        ConstraintValue(str(c), side, e <= SLACK, min(max(e, 0.0), 1.0))
        for c, side, e in zip(goal.constraints, point.sides, point.excess, strict=False)
    )
