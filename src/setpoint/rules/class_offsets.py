"""Multiclass: one offset per class, added before the argmax.

With the other classes held still, class c gains row i once its offset passes

    δᵢ = max_{j≠c} (sᵢⱼ + bⱼ) − sᵢ꜀,

so that sorting δ gives every total at every offset of c: a one-dimensional search, repeated over
classes and, where they are few, over pairs of them, from several starts. Small classes overfit (an
offset can be bought by one row), so the offsets found are shrunk by a factor in {0, ¼, ½, ¾, 1}
that five-fold cross-fitting chooses; 0 is the plain argmax.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, ClassVar, final

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import GoalError
from setpoint.expressions import Columns, Event, Literal, Task, Total
from setpoint.expressions.rows.row_events import CORRECT, DECIDED, KEPT
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.rule import BestRule, Rule, RuleSearch, is_cut
from setpoint.rules.tradeoff_curve import spread_over

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0)
FOLDS = 5
POINTS = 384  # offsets looked at per class and round
STEPS = 25  # offsets of one class when two are moved together
FEW = 5  # classes up to which pairs are moved

#: Starts beside the plain argmax: goals that pull the classes level, and have no ridges.
_LEVELLING = (
    Goal.parse("maximize macro(recall)"),
    Goal.parse("minimize macro((recall + 0.01) ** (-1))"),
    Goal.parse("minimize macro((f1 + 0.01) ** (-1))"),
)


@dataclass(frozen=True, kw_only=True)
class ClassOffsets(Rule):
    """Decide for the class whose score plus offset is highest.

    Attributes
    ----------
    offsets : tuple of float
        One for each class.
    """

    offsets: tuple[float, ...]

    kind: ClassVar[str] = "offsets"
    tasks: ClassVar[tuple[str, ...]] = ("multiclass",)
    slow_search: ClassVar[bool] = True
    finds_binding: ClassVar[bool] = False  # other offsets are not searched for each constraint

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The best offsets found, shrunk by cross-fitting."""
        problem = GoalOnRows.meet(goal, columns)
        best = search_offsets(problem, options.seed)
        how = f"class by class, shrunk by {best.factor:g}"
        return cls._standing(problem, best.values, how)

    @staticmethod
    def _standing(problem: GoalOnRows, offsets: tuple[float, ...], how: str) -> BestRule:
        rule = ClassOffsets(task=problem.columns.task, offsets=offsets)
        point = problem.judge(rule.decided_columns(problem.columns))
        unknown = [None] * len(point.sides)  # other offsets than these were not searched for each
        standings = problem.standings(point, unknown, unknown, [False] * len(unknown))
        return problem.best(rule, point, standings, search=how)

    @classmethod
    def quick_kind(cls) -> type[Rule]:
        """The plain argmax."""
        return Argmax

    def is_sound(self) -> bool:
        """Whether each class has an offset."""
        classes = len(self.task.classes or ())
        return 0 < classes == len(self.offsets) and all(map(is_cut, self.offsets))

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """The class of each row."""
        del group, query
        # On the host and in float64, as when the offsets were chosen.
        labels = np.array(self.task.classes or ())[_argmax(to_numpy(s), np.array(self.offsets))]
        numeric = labels.dtype.kind in "biuf"
        return (
            namespace(s).as_tensor(labels, device=s.device) if is_tensor(s) and numeric else labels
        )

    def decided_columns(self, columns: Columns) -> Columns:
        """The same rows, the class of each by its place."""
        return decide_classes(columns, np.array(self.offsets))

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """Scores with the offsets, (n, K): the largest of a row is decided."""
        del group
        return scores + np.array(self.offsets)

    def describe(self) -> str:
        """The offsets that are not 0, in words."""
        pairs = zip(self.task.classes or (), self.offsets, strict=True)
        moved = [f"{name} {offset:+.4g}" for name, offset in pairs if offset]
        return "argmax of scores" + (f" with {', '.join(moved)}" if moved else "")

    def search_again(self) -> RuleSearch:
        """Offsets; where there are none, the plain argmax."""
        return RuleSearch(rule=ClassOffsets if any(self.offsets) else Argmax)

    def plain(self) -> ClassOffsets:
        """The plain argmax."""
        return ClassOffsets(task=self.task, offsets=(0.0,) * len(self.offsets))

    def numbers(self) -> dict[str, Any]:
        """The offsets."""
        return {"offsets": list(self.offsets)}

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> ClassOffsets:
        """Read what :meth:`numbers` wrote."""
        return ClassOffsets(task=task, offsets=tuple(data["offsets"]))


@final
class Argmax(ClassOffsets):
    """The kind that searches nothing: its rule is that of offsets which are all 0."""

    kind: ClassVar[str] = "argmax"
    slow_search: ClassVar[bool] = False

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The plain argmax."""
        del options
        problem = GoalOnRows.meet(goal, columns)
        return cls._standing(problem, (0.0,) * len(columns.classes), "exact")


@dataclass(frozen=True, eq=False)
class Offsets:
    """Offsets per class and the factor they were shrunk by."""

    values: tuple[float, ...]
    factor: float


def search_offsets(problem: GoalOnRows, seed: int = 0) -> Offsets:
    """Offsets by search, shrunk by cross-fitting; a factor that keeps the goal is preferred."""
    columns, sign = problem.columns, problem.goal.sign
    held_out: dict[float, dict[Any, float]] = {factor: {} for factor in FACTORS}
    for rows in _folds(columns, seed):
        inside, outside = columns.take(~rows), columns.take(rows)
        offsets = climb(replace(problem, columns=inside), pairs=False)
        for factor, totals in held_out.items():
            decided = decide_classes(outside, factor * offsets)
            for leaf in problem.leaves():
                totals[leaf] = totals.get(leaf, 0.0) + leaf.measure(decided)
    full = climb(problem)
    here = {f: problem.judge(decide_classes(columns, f * full)) for f in FACTORS}
    meets = any(point.feasible for point in here.values())
    fit = [f for f in FACTORS if here[f].feasible or not meets]
    best = max(fit, key=lambda f: (problem.at(held_out[f]).rank(sign), -f))
    return Offsets(tuple((best * full).tolist()), best)


def decide_classes(columns: Columns, offsets: np.ndarray) -> Columns:
    """The columns with the argmax of scores + offsets as decisions."""
    return replace(columns, decided=_argmax(columns.scores, offsets))


def _argmax(scores: Any, offsets: np.ndarray) -> np.ndarray:
    """The class of each row by its place."""
    return (np.asarray(scores, np.float64) + offsets).argmax(1)


# --- search -------------------------------------------------------------------------------------


def climb(problem: GoalOnRows, pairs: bool = True) -> np.ndarray:
    """The best offsets found; the largest class keeps 0.

    Few classes: class by class from the argmax and from levelled starts, then the best of these
    further by pairs. Many: from the argmax, class by class, three times over.
    """
    rows = OffsetRows(problem.columns)
    start = np.zeros(len(problem.columns.classes))
    if start.size > FEW:
        return _from_start(problem, rows, start, rounds=3, pairs=False)
    levelling = (GoalOnRows.ground(goal, problem.columns) for goal in _LEVELLING)
    starts = [start, *(_from_start(p, rows, start, rounds=8, pairs=False) for p in levelling)]
    climbed = [_from_start(problem, rows, s, rounds=8, pairs=False) for s in starts]
    best = max(climbed, key=lambda offsets: _rank(problem, offsets))
    return _from_start(problem, rows, best, rounds=16, pairs=True) if pairs else best


def _rank(problem: GoalOnRows, offsets: np.ndarray) -> tuple:
    return problem.judge(decide_classes(problem.columns, offsets)).rank(problem.goal.sign)


def _from_start(
    problem: GoalOnRows, rows: OffsetRows, offsets: np.ndarray, rounds: int, pairs: bool
) -> np.ndarray:
    """Improve class by class until that is stuck, then by a pair, and again."""
    best = _rank(problem, offsets)
    for _ in range(rounds):
        before = best
        for index in rows.order:
            moved = _best_move(problem, rows, offsets, index)
            rank = _rank(problem, moved)
            if rank > best:
                offsets, best = moved, rank
        if best > before:
            continue
        for moved in _pair_moves(problem, rows, offsets) if pairs else ():
            rank = _rank(problem, moved)
            if rank > best:
                offsets, best = moved, rank
                break
        if best <= before:
            break
    return offsets


def _pair_moves(problem: GoalOnRows, rows: OffsetRows, offsets: np.ndarray) -> Iterator[np.ndarray]:
    """The best offset of a class after each step of another."""
    for first, second in permutations(rows.order, 2):
        sweep = OffsetSweep(rows, offsets, first)
        for step in sweep.offsets[spread_over(sweep.size, STEPS)]:
            stepped = offsets.copy()
            stepped[first] = step
            yield _best_move(problem, rows, stepped, second)


def _best_move(
    problem: GoalOnRows, rows: OffsetRows, offsets: np.ndarray, index: int
) -> np.ndarray:
    sweep = OffsetSweep(rows, offsets, index)
    moved = offsets.copy()
    moved[index] = sweep.offsets[problem.scan(sweep).choose()[0]]
    return moved


# --- candidates ---------------------------------------------------------------------------------


class OffsetRows:
    """Columns with what stays the same over all sweeps."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.scores = np.asarray(columns.scores, np.float64)
        self.actual = columns.actual
        self._amounts: dict[Event, np.ndarray] = {}

    @cached_property
    def order(self) -> list[int]:
        """The classes to move; the largest is the anchor and stays at 0."""
        return _by_size(self.columns)[1:]

    def amounts(self, event: Event) -> np.ndarray:
        """Weight × membership of each row in an event without decisions."""
        if event not in self._amounts:
            member, weight = self.columns.membership(event), self.columns.weight
            rows = np.ones(self.columns.size) if member is None else member * 1.0
            self._amounts[event] = rows if weight is None else rows * weight
        return self._amounts[event]


class OffsetSweep:
    """The candidates of one class's offset, the others held still."""

    def __init__(self, rows: OffsetRows, offsets: np.ndarray, index: int) -> None:
        shifted = rows.scores + offsets
        shifted[:, index] = -np.inf
        self._others = shifted.argmax(1)
        rival = np.take_along_axis(shifted, self._others[:, None], 1)[:, 0]
        gain = rival - rows.scores[:, index]
        order = np.argsort(gain)
        ranked = gain[order]
        cuts = np.flatnonzero(np.r_[ranked[1:] != ranked[:-1], True])
        # Between two gains the decisions do not change: take the middle, away from ties.
        edges = np.r_[ranked[0] - 2.0, ranked[cuts], ranked[-1] + 2.0]
        moved = np.r_[0, cuts + 1]  # rows that have changed to the class at each candidate
        keep = spread_over(moved.size, POINTS)
        self.offsets = ((edges[:-1] + edges[1:]) / 2)[keep]
        self.size = self.offsets.size
        # The first candidate at which each row has changed.
        self._first = np.empty(gain.size, np.int64)
        self._first[order] = np.searchsorted(moved[keep], np.arange(gain.size), "right")
        self._rows, self._index = rows, index
        self._known: dict[Total, np.ndarray] = {}

    def state(self, leaf: Total, start: int, stop: int) -> np.ndarray:
        """The total at candidates ``start:stop``."""
        if leaf not in self._known:
            self._known[leaf] = self._along(leaf)
        return self._known[leaf][start:stop]

    def _along(self, leaf: Total) -> np.ndarray:
        """Each row counts before it changes to the class, after it, both or never."""
        amounts = self._rows.amounts(leaf.event.without(DECIDED, CORRECT, KEPT))
        literals = leaf.event.about(DECIDED, CORRECT)
        if len(literals) > 1:
            raise GoalError(f'"{leaf}" speaks of two decisions at once')
        if not literals:
            return np.full(self.size, amounts.sum())
        before, after = (self._agrees(literals[0], taken) for taken in (self._others, self._index))
        # Sums of what stays and of what came, each from its own end: no difference, so 0 stays 0.
        stays, comes = (
            np.bincount(self._first, amounts * counted, self.size + 1)
            for counted in (before, after)
        )
        return np.cumsum(stays[::-1])[::-1][1:] + np.cumsum(comes)[:-1]

    def _agrees(self, literal: Literal, taken: np.ndarray | int) -> np.ndarray:
        """Whether the literal holds of each row, if ``taken`` is its decision."""
        actual, classes = self._rows.actual, self._rows.columns.classes
        if literal.column == CORRECT and literal.value is None:
            agrees = actual == taken
        elif literal.column == CORRECT:
            label = classes.index(literal.value)
            agrees = (actual == label) == (taken == label)
        else:
            agrees = taken == classes.index(literal.value)
        return np.broadcast_to(agrees, actual.shape) == literal.holds


def _folds(columns: Columns, seed: int) -> list[np.ndarray]:
    """Masks of FOLDS folds, each class spread evenly over them."""
    actual = columns.actual
    order = np.random.default_rng(seed).permutation(actual.size)
    fold = np.empty(actual.size, np.int64)
    start = 0
    for label in (*_by_size(columns), -1):  # −1: rows of none of the classes
        rows = order[actual[order] == label]
        fold[rows] = (start + np.arange(rows.size)) % FOLDS
        start += rows.size
    return [fold == f for f in range(FOLDS) if np.any(fold == f) and not np.all(fold == f)]


def _by_size(columns: Columns) -> list[int]:
    """The classes, large ones first, then by name: the order of the columns says nothing."""
    names = columns.classes
    sizes = np.bincount(columns.actual[columns.actual >= 0], minlength=len(names))
    return sorted(range(len(names)), key=lambda c: (-sizes[c], str(names[c])))
