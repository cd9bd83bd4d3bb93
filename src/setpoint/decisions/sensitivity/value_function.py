"""The best objective at any bounds: V(c) = max merit subject to excess_j <= c_j.

Of one threshold every candidate is read once, along one sort, and V at other bounds is a maximum
over what was read. Any other kind of rule is searched anew, so few bounds should be asked for.

A rate that three rows make up can be anything. ``behind`` counts the rows under the smallest rate
of the goal, and a *solid* candidate has ``ENOUGH`` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from setpoint.expressions import Columns, Constraint, Expression, Number, Ratio, Scan, Sweep, Total
from setpoint.expressions.fractions import linear
from setpoint.expressions.rows.row_events import decided
from setpoint.goals import Goal
from setpoint.goals.constraint_bound import ConstraintBound, asked_of, moved
from setpoint.rules.decision_rule import DecisionRule, choose
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.rule import RuleSearch

ENOUGH = 10  #: rows under a rate, below which it is called thin
Caps = Sequence[float]


@dataclass(frozen=True, eq=False)
class Spot:
    """One candidate.

    Attributes
    ----------
    merit : float
        sense × objective.
    excess : tuple of float
        Per constraint, to be compared with its cap; infinite where it is an empty rate.
    behind : int
        Rows under the smallest rate of the goal.
    point : DecisionRule or int
        The rule, or its place along the threshold.
    """

    merit: float
    excess: tuple[float, ...]
    behind: int
    point: DecisionRule | int


class Landscape(Protocol):
    """What the goal is worth at other bounds."""

    goal: Goal
    asked: tuple[ConstraintBound, ...]
    columns: Columns

    def best(self, caps: Caps, solid: bool = False) -> Spot | None:
        """The best candidate within the caps; None where none is known."""
        ...

    def tightest(self, j: int, caps: Caps) -> Spot | None:
        """The solid candidate with the least excess j, within the other caps."""
        ...

    def nearest(self, caps: Caps) -> Spot | None:
        """The solid candidate whose greatest excess, as a share of the bound, is least."""
        ...


class Along:
    """All thresholds, read once.

    Parameters
    ----------
    goal : Goal
        Lowered.
    columns : Columns
        Of a binary task, with scores, on the host.
    places : numpy.ndarray, optional
        Candidates to read; all of them without it.
    like : Along, optional
        The same goal on the same rows with other weights: its sort is shared.
    """

    def __init__(
        self,
        goal: Goal,
        columns: Columns,
        places: np.ndarray | None = None,
        like: Along | None = None,
    ) -> None:
        self.goal, self.columns, self.asked = goal, columns, asked_of(goal)
        self.sweep = Sweep(columns) if like is None else like.sweep.weighted(columns.weight)
        self.places = np.arange(self.sweep.size) if places is None else places
        self._problem = _at_zero(goal, self.asked, columns) if like is None else like._problem
        scan = self._problem.scan(_Some(self.sweep, self.places))
        self.merit, self.excess = scan.merit, scan.excess

    @cached_property
    def _counts(self) -> Sweep:
        """The sweep that counts every row once."""
        return self.sweep if self.columns.weight is None else self.sweep.weighted(None)

    @cached_property
    def flagged(self) -> np.ndarray:
        """Rows decided positive at each candidate."""
        return np.asarray(self._counts.at(Total(decided), self.places))

    @cached_property
    def behind(self) -> np.ndarray:
        """Rows under the smallest rate of the goal, at each candidate."""
        least = np.full(self.places.size, float(self.columns.size))
        for bottom in bottoms(self._problem):
            env = {leaf: self._counts.at(leaf, self.places) for leaf in bottom.leaves()}  # type: ignore[arg-type]
            least = np.minimum(least, bottom.read(env).value)
        return least

    @cached_property
    def solid(self) -> np.ndarray:
        """Candidates with enough rows behind them; of few rows, with half of what there can be."""
        eligible = self.merit > -np.inf
        most = float(self.behind[eligible].max()) if eligible.any() else 0.0
        return eligible & (self.behind >= min(ENOUGH, max(1.0, most // 2)))

    def best(self, caps: Caps, solid: bool = False) -> Spot | None:
        found = self.index(caps, solid)
        return None if found is None else self.spot(found)

    def index(self, caps: Caps, solid: bool = False) -> int | None:
        """The place of the best candidate, by the rules of ``tune``."""
        trios = zip(self.excess, caps, strict=True)
        scan = Scan(
            self.merit, [(e - cap) / max(1.0, abs(cap)) for e, cap in trios if cap < np.inf]
        )
        within = scan.feasible()
        return scan.best(within & self.solid if solid else within)

    def tightest(self, j: int, caps: Caps) -> Spot | None:
        within = self.solid & np.isfinite(self.excess[j])
        for i, (e, cap) in enumerate(zip(self.excess, caps, strict=True)):
            if i != j:
                within &= e <= cap + self.asked[i].slack(cap)
        if not within.any():
            return None
        return self.spot(int(np.argmin(np.where(within, self.excess[j], np.inf))))

    def nearest(self, caps: Caps) -> Spot | None:
        if not self.asked or not self.solid.any():
            return None
        trios = zip(self.excess, caps, self.asked, strict=True)
        share = np.maximum.reduce([(e - cap) / a.scale for e, cap, a in trios])
        share = np.where(self.solid, share, np.inf)
        found = int(np.argmin(share))
        return self.spot(found) if np.isfinite(share[found]) else None

    def of(self, rule: DecisionRule) -> Spot:
        """A rule with a threshold, read on these rows."""
        return self.spot(int(np.argmax(self.sweep.thresholds == rule.threshold)))

    def spot(self, index: int) -> Spot:
        """A candidate by its place."""
        excess = tuple(float(e[index]) for e in self.excess)
        return Spot(float(self.merit[index]), excess, int(self.behind[index]), index)


@dataclass(frozen=True, eq=False)
class _Some:
    """Some candidates of a sweep."""

    sweep: Sweep
    places: np.ndarray

    @property
    def size(self) -> int:
        return self.places.size

    def state(self, leaf: Any, start: int, stop: int) -> Any:
        if self.size == self.sweep.size:
            return self.sweep.state(leaf, start, stop)
        return self.sweep.at(leaf, self.places[start:stop])


class Searched:
    """Rules of another kind, searched anew at each bound.

    Parameters
    ----------
    goal : Goal
        Lowered.
    columns : Columns
    search : RuleSearch
    """

    def __init__(self, goal: Goal, columns: Columns, search: RuleSearch) -> None:
        self.goal, self.columns, self.asked = goal, columns, asked_of(goal)
        self.search = search
        wide = columns
        if search.rule.may_abstain:
            wide = replace(columns, abstained=np.zeros(columns.size, bool))
        self._problem = _at_zero(goal, self.asked, wide)
        self._known: dict[tuple, Spot | None] = {}

    def choose(self, goal: Goal) -> DecisionRule:
        """The best rule that the search finds."""
        return choose(goal, self.columns, self.search)

    def of(self, rule: DecisionRule) -> Spot:
        """A rule, read on these rows."""
        columns = rule.decided_columns(self.columns)
        point = self._problem.judge(columns)
        plain = replace(columns, weight=None)
        counts = [
            float(bottom.read({leaf: leaf.measure(plain) for leaf in bottom.leaves()}).value)  # type: ignore[attr-defined]
            for bottom in bottoms(self._problem)
        ]
        merit = -math.inf if point.value is None else self.goal.sign * point.value
        return Spot(merit, point.excess, int(min(counts, default=columns.size)), rule)

    def best(self, caps: Caps, solid: bool = False) -> Spot | None:
        key = (*caps, solid)
        if key not in self._known:
            goal = moved(self.goal, self.asked, tuple(caps))
            rule = self.choose(self._guarded(goal) if solid else goal)
            self._known[key] = self.of(rule) if rule.feasible else None
        return self._known[key]

    def tightest(self, j: int, caps: Caps) -> Spot | None:
        if self.search.rule.set_by_goal:
            return self.nearest(caps)
        others = moved(self.goal, self.asked, (*caps[:j], math.inf, *caps[j + 1 :]))
        sense = "maximize" if self.asked[j].op == ">=" else "minimize"
        rule = self.choose(self._guarded(Goal(sense, self.asked[j].metric, others.constraints)))
        spot = self.of(rule)
        return spot if rule.feasible and math.isfinite(spot.excess[j]) else None

    def nearest(self, caps: Caps) -> Spot | None:
        spot = self.of(self.choose(self._guarded(moved(self.goal, self.asked, tuple(caps)))))
        return spot if all(map(math.isfinite, (spot.merit, *spot.excess))) else None

    def _guarded(self, goal: Goal) -> Goal:
        """The goal among rules that have enough rows behind them."""
        if self.search.rule.set_by_goal:
            return goal
        weight = self.columns.weight
        each = 1.0 if weight is None else float(np.mean(weight))
        guards = [
            Constraint(bottom, ">=", Number(each * min(ENOUGH, self.columns.size // 20 + 1)))
            for bottom in bottoms(self._problem)
            if not all(leaf.threshold_free() for leaf in bottom.leaves())  # type: ignore[attr-defined]
        ]
        return Goal(goal.sense, goal.objective, (*goal.constraints, *guards))


def landscape(goal: Goal, columns: Columns, search: RuleSearch) -> Along | Searched:
    """What a goal is worth at other bounds, for a kind of rule."""
    along = search.rule.along_scores
    return Along(goal, columns) if along else Searched(goal, columns, search)


def _at_zero(goal: Goal, asked: tuple[ConstraintBound, ...], columns: Columns) -> GoalOnRows:
    """The problem with every bound at 0, where the excess of a constraint is ± its metric."""
    zero = tuple(Constraint(a.metric, a.op, Number(0.0)) for a in asked)
    return GoalOnRows.ground(Goal(goal.sense, goal.objective, zero), columns)


def bottoms(problem: GoalOnRows) -> list[Expression]:
    """What the rates of a problem are divided by, where that is a count of rows."""
    parts = [problem.objective, *(c.left for c in problem.constraints)]
    found: dict[Expression, None] = {}
    for node in (n for part in parts for n in part.walk()):
        if isinstance(node, Ratio) and node.denominator.needs():
            if linear(node.denominator) is not None:
                found[node.denominator] = None
    return list(found)
