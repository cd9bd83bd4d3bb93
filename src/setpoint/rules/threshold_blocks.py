"""Several thresholds at once: one per group of rows, or one per label.

A block is a part of the data with a threshold of its own. Every total is a sum over blocks, so with
the others held still, one block's threshold is searched exactly by one sweep, and two blocks' by a
grid. If all combinations are few enough they are all looked at and the answer is exact; otherwise
pairs of blocks are improved in turn, from several starts, and the rule says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, ClassVar, final

import numpy as np

from setpoint._core.arrays import Array
from setpoint._core.errors import Argument, DataError, GoalError, Phrase, RowNumber, Spelling
from setpoint._core.json_codec import number_from, number_to
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import Columns, Label, Sweep, Task, Total, take_groups
from setpoint.expressions.constraint import SLACK
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    CORRECT,
    DECIDED,
    EVERYTHING,
    Event,
    Literal,
    actual,
    decided,
    not_actual,
)
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.rule import (
    BestRule,
    Rule,
    RuleSearch,
    as_array_of,
    beyond,
    is_cut,
    score_at_least,
)
from setpoint.rules.tradeoff_curve import spread_over

FEW = 2_000_000  # combinations that are all looked at
EXACT, LOCAL = "exact", "local search over pairs of thresholds"
GRID = 160  # candidates a side when two blocks are searched together
ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class ThresholdBlocks(Rule):
    """One threshold for each block of the data.

    Attributes
    ----------
    thresholds : tuple of (group value or label, float)
    """

    thresholds: tuple[tuple[Label, float], ...]

    def describe(self) -> str:
        """Each threshold in words."""
        return ", ".join(f"{name}: {score_at_least(t)}" for name, t in self.thresholds)

    def numbers(self) -> dict[str, Any]:
        """The thresholds by name."""
        return {"thresholds": [[name, number_to(t)] for name, t in self.thresholds]}


@final
@dataclass(frozen=True, kw_only=True)
class GroupThresholds(ThresholdBlocks):
    """One threshold for each value of a group column, ``by``."""

    by: str

    kind: ClassVar[str] = "per-group"
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    needs_group: ClassVar[bool] = True
    takes_by: ClassVar[bool] = True

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The best thresholds; exact where all combinations can be looked at."""
        problem = GoalOnRows.meet(goal, columns)
        column = _group_column(columns, options.by)

        def rule(thresholds: tuple) -> GroupThresholds:
            return cls(task=columns.task, thresholds=thresholds, by=column)

        return _tune_blocks(problem, group_blocks(columns, column), rule)

    def is_sound(self) -> bool:
        """Whether there are thresholds, and a column that they go by."""
        cuts = [t for _, t in self.thresholds]
        return bool(cuts) and isinstance(self.by, str) and all(map(is_cut, cuts))

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """True where decided positive."""
        del query
        return s >= self._of_rows(s, group)

    def _of_rows(self, s: Array, group: Any) -> Array:
        """The threshold of each row."""
        if group is None:
            raise DataError(
                'this rule has one threshold per "{by}": {way}',
                by=self.by,
                way=Spelling(
                    "pass group=", Phrase("add {group}", group=Argument("group", self.by))
                ),
            )
        columns = take_groups(group, s.shape[0])
        name = self.by
        if name not in columns and set(columns) == {"group"}:
            name = "group"
        if name not in columns:
            raise DataError(f'this rule needs the column "{self.by}"; given: {listing(columns)}')
        values = columns[name]
        table = dict(self.thresholds)
        out = np.full(values.shape, np.nan)
        for value, threshold in table.items():
            out[values == value] = threshold
        if np.isnan(out).any():
            row = int(np.flatnonzero(np.isnan(out))[0])
            unknown = values[row : row + 1].tolist()[0]
            hint = did_you_mean(unknown, table, f"known are {listing(table)}.")
            raise DataError(
                'unknown group {unknown!r} in "{by}" {row}: {hint} Tune again with rows of that '
                "group",
                unknown=unknown,
                by=self.by,
                row=RowNumber(row),
                hint=hint,
            )
        return as_array_of(out, s)

    @property
    def group_column(self) -> str:
        """The column that the thresholds go by."""
        return self.by

    def search_again(self) -> RuleSearch:
        """Thresholds by the same column."""
        return RuleSearch(rule=GroupThresholds, by=self.by)

    def cuts(self) -> tuple[float, ...]:
        """The thresholds of all groups."""
        return tuple(t for _, t in self.thresholds)

    def numbers(self) -> dict[str, Any]:
        """The thresholds by group value, and the column."""
        return {**super().numbers(), "by": self.by}

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> GroupThresholds:
        """Read what :meth:`numbers` wrote."""
        return cls(task=task, thresholds=_thresholds_from(data), by=data["by"])


@final
@dataclass(frozen=True, kw_only=True)
class LabelThresholds(ThresholdBlocks):
    """One threshold for each label, in the order of the columns of the scores."""

    kind: ClassVar[str] = "per-label"
    tasks: ClassVar[tuple[str, ...]] = ("multilabel",)

    @classmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The best thresholds; exact where all combinations can be looked at."""
        del options
        problem = GoalOnRows.meet(goal, columns)

        def rule(thresholds: tuple) -> LabelThresholds:
            return cls(task=columns.task, thresholds=thresholds)

        return _tune_blocks(problem, label_blocks(columns), rule)

    def is_sound(self) -> bool:
        """Whether each label has a threshold."""
        labels = len(self.task.classes or ())
        return 0 < labels == len(self.thresholds) and all(is_cut(t) for _, t in self.thresholds)

    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """A boolean matrix."""
        del group, query
        return s >= as_array_of(np.array([t for _, t in self.thresholds]), s)

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """How far each score lies beyond the threshold of its label."""
        decided = np.asarray(self.decide(scores, group=group))
        return beyond(scores, [t for _, t in self.thresholds], decided)

    @classmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> LabelThresholds:
        """Read what :meth:`numbers` wrote."""
        return cls(task=task, thresholds=_thresholds_from(data))


def _thresholds_from(data: Mapping[str, Any]) -> tuple[tuple[Label, float], ...]:
    return tuple((name, number_from(t)) for name, t in data["thresholds"])


# --- blocks, and the search over their thresholds -------------------------------------------------


@dataclass(frozen=True, eq=False)
class Block:
    """One part of the data: its name, its sweep, and how a leaf reads in it."""

    name: Label
    sweep: Sweep
    own: Callable[[Any], Total | None]


def group_blocks(columns: Columns, by: str) -> list[Block]:
    """One block per value of a group column."""
    blocks = []
    for value in columns.group_values(by):
        rows = columns.group(by) == value
        if not rows.any():
            raise DataError(f"no row has {by}={value!r}; a threshold of its own needs rows")
        part = columns.take(rows)

        def own(leaf: Total, value: Label = value) -> Total | None:
            here = {x.value for x in leaf.event.about(by)}
            return Total(leaf.event.without(by)) if here <= {value} else None

        blocks.append(Block(value, Sweep(part), own))
    return blocks


def label_blocks(columns: Columns) -> list[Block]:
    """One block per label of a multilabel task."""
    scores = np.asarray(columns.scores)
    blocks = []
    for index, label in enumerate(columns.classes):
        part = Columns(
            Task(),
            columns.actual[:, index],
            scores=scores[:, index],
            weight=columns.weight,
            groups=columns.groups,
        )

        def own(leaf: Total, label: Label = label) -> Total | None:
            literals = leaf.event.about(DECIDED, ACTUAL, CORRECT)
            if any(x.column == CORRECT and x.value is None for x in literals):
                raise GoalError(
                    "accuracy of a multilabel task asks for all labels at once and does not add up "
                    "over labels; tune hamming_loss, macro(accuracy), micro(f1) or macro(f1)"
                )
            if {x.value for x in literals} != {label}:
                return None
            plain = frozenset(Literal(x.column, None, x.holds) for x in literals)
            return Total(Event(plain | leaf.event.without(DECIDED, ACTUAL, CORRECT).literals))

        blocks.append(Block(label, Sweep(part), own))
    return blocks


class Terrain:
    """Every leaf's total at every position of every block, and the leaves no decision moves."""

    def __init__(self, problem: GoalOnRows, blocks: Sequence[Block]) -> None:
        self.problem = problem
        self.sizes = tuple(b.sweep.size for b in blocks)
        self._constant: dict[Any, float] = {}
        self._along: dict[Any, dict[int, np.ndarray]] = {}
        for leaf in problem.leaves():
            if leaf.threshold_free():
                self._constant[leaf] = problem.columns.total(leaf.event)
                continue
            mine = ((i, b, b.own(leaf)) for i, b in enumerate(blocks))
            self._along[leaf] = {
                i: np.broadcast_to(b.sweep.state(own, 0, b.sweep.size), b.sweep.size)
                for i, b, own in mine
                if own is not None
            }

    def mesh(self, place: Sequence[int], moving: Mapping[int, np.ndarray]) -> Mesh:
        """All combinations of some positions of the moving blocks, the others held still."""
        still = {
            leaf: float(sum(a[place[i]] for i, a in along.items() if i not in moving))
            for leaf, along in self._along.items()
        }
        parts = {
            leaf: {i: along[i][moving[i]] for i in moving if i in along}
            for leaf, along in self._along.items()
        }
        return Mesh(self._constant, still, parts, tuple(moving), tuple(moving.values()))

    def point(self, place: Sequence[int]) -> Point:
        """The goal at one position of each block."""
        env = {
            leaf: float(sum(a[place[i]] for i, a in d.items())) for leaf, d in self._along.items()
        }
        return self.problem.at(self._constant | env)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Candidates: combinations of positions, as totals still + Σ over moving blocks."""

    constant: Mapping[Any, float]
    still: Mapping[Any, float]
    parts: Mapping[Any, Mapping[int, np.ndarray]]
    moving: tuple[int, ...]
    positions: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of positions of each moving block."""
        return tuple(p.size for p in self.positions)

    @property
    def size(self) -> int:
        """Number of combinations."""
        return int(np.prod(self.shape))

    def state(self, leaf: Any, start: int, stop: int) -> Any:
        """The leaf's total at combinations ``start:stop``."""
        if leaf in self.constant:
            return self.constant[leaf]
        total: Any = self.still[leaf]
        index = np.unravel_index(np.arange(start, stop), self.shape)
        for where, block in zip(index, self.moving, strict=True):
            if block in self.parts[leaf]:
                total = total + self.parts[leaf][block][where]
        return total

    def unravel(self, place: Sequence[int], index: int) -> list[int]:
        """The position of every block at a combination."""
        moved = list(place)
        where = np.unravel_index(index, self.shape)
        for block, positions, i in zip(self.moving, self.positions, where, strict=True):
            moved[block] = int(positions[i])
        return moved


def search(problem: GoalOnRows, blocks: Sequence[Block]) -> tuple[list[int], str]:
    """The best position of each block, and how it was searched."""
    terrain = Terrain(problem, blocks)
    start = [0] * len(blocks)
    if np.prod([float(size) for size in terrain.sizes]) <= FEW:
        mesh = terrain.mesh(start, {b: np.arange(size) for b, size in enumerate(terrain.sizes)})
        return mesh.unravel(start, problem.scan(mesh).choose()[0]), EXACT
    climb = _Climb(problem, terrain)
    starts = climb.best_of(_starts(blocks))
    return max(map(climb.from_start, starts), key=climb.rank), LOCAL


def _starts(blocks: Sequence[Block]) -> list[list[int]]:
    """Places where all blocks are alike: in threshold, share decided, recall, FPR or precision."""
    pooled = np.unique(np.concatenate([b.sweep.thresholds[1:] for b in blocks]))[::-1]
    places = [
        [int(np.searchsorted(-b.sweep.thresholds, -t, "right")) - 1 for b in blocks]
        for t in pooled[spread_over(pooled.size, 64)]
    ]
    rates = ((decided, EVERYTHING), (decided, actual), (decided, not_actual), (actual, decided))
    for of, given in rates:
        levels = [_level(block.sweep, of & given, given) for block in blocks]
        aims = np.r_[np.geomspace(1e-3, 0.1, 12), np.linspace(0.12, 1, 45)]
        places += [[int(np.abs(along - aim).argmin()) for along in levels] for aim in aims]
    return places


def _level(sweep: Sweep, of: Event, given: Event) -> np.ndarray:
    """A rate along the positions of a block, such as its recall."""
    top, bottom = (np.asarray(sweep.state(Total(e), 0, sweep.size)) for e in (of, given))
    return np.broadcast_to(top / np.maximum(bottom, 1e-300), sweep.size)


@dataclass(frozen=True, eq=False)
class _Climb:
    """Improve one block, then two at a time, until nothing moves."""

    problem: GoalOnRows
    terrain: Terrain

    def rank(self, place: Sequence[int]) -> tuple:
        return self.terrain.point(place).rank(self.problem.goal.sign)

    def best_of(self, places: list[list[int]], count: int = 4) -> list[list[int]]:
        """The best few places that differ."""
        different = list({tuple(p): p for p in places}.values())
        return sorted(different, key=self.rank, reverse=True)[:count]

    def from_start(self, place: list[int]) -> list[int]:
        """Climb until no single block and no pair of blocks improves."""
        blocks = range(len(place))
        pairs = list(combinations(blocks, 2) if len(place) <= 8 else pairwise(blocks))
        for _ in range(ROUNDS):
            before = self.rank(place)
            for block in blocks:
                place = self._improve(place, (block,))
            for pair in pairs:
                place = self._improve(place, pair)
            if self.rank(place) <= before:
                break
        return place

    def _improve(self, place: list[int], moving: tuple[int, ...]) -> list[int]:
        near = {b: self._near(place[b], self.terrain.sizes[b], len(moving)) for b in moving}
        mesh = self.terrain.mesh(place, near)
        moved = mesh.unravel(place, self.problem.scan(mesh).choose()[0])
        return moved if self.rank(moved) > self.rank(place) else place

    @staticmethod
    def _near(position: int, size: int, blocks: int) -> np.ndarray:
        """All positions of one block; of a pair, a grid that is dense around the present one."""
        if blocks == 1 or size <= GRID:
            return np.arange(size)
        around = np.arange(max(0, position - GRID // 4), min(size, position + GRID // 4))
        return np.union1d(spread_over(size, GRID // 2), around)


def _group_column(columns: Columns, by: str | None) -> str:
    names = list(columns.groups)
    if by is None and len(names) == 1:
        return names[0]
    if by is None:
        raise DataError(
            "{argument} needs to know the group of each row: {way}",
            argument=Argument("kind", "per-group"),
            way=Phrase("say {by}, one of {names}", by=Argument("by"), names=listing(names))
            if names
            else Spelling("pass group=", "say --group"),
        )
    columns.group(by)
    return by


def _tune_blocks(
    problem: GoalOnRows, blocks: list[Block], rule: Callable[[tuple], ThresholdBlocks]
) -> BestRule:
    """One threshold per block; what is reachable and binding is searched in the same way."""
    places, how = search(problem, blocks)

    def rule_at(p: GoalOnRows, positions: list[int]) -> tuple[Point, ThresholdBlocks]:
        pairs = zip(blocks, positions, strict=True)
        candidate = rule(tuple((b.name, float(b.sweep.thresholds[i])) for b, i in pairs))
        return p.judge(candidate.decided_columns(p.columns)), candidate

    point, best = rule_at(problem, places)
    reachable: list[float | None] = []
    alone: list[bool | None] = []
    binding: list[bool] = []
    for j, constraint in enumerate(problem.constraints):
        single = replace(problem, constraints=(constraint,))
        nearest = rule_at(single, search(_pull(single), blocks)[0])[0]
        reachable.append(None if constraint.number is None else nearest.sides[0])
        met = nearest.excess[0] <= SLACK
        alone.append(met if met or how == EXACT else None)
        rest = tuple(c for i, c in enumerate(problem.constraints) if i != j)
        freed = replace(problem, constraints=rest)
        better = rule_at(freed, search(freed, blocks)[0])[0]
        binding.append(point.feasible and better.feasible and _gain(problem, better, point) > SLACK)
    standings = problem.standings(point, reachable, alone, binding)
    return problem.best(best, point, standings, search=how)


def _gain(problem: GoalOnRows, a: Point, b: Point) -> float:
    return problem.goal.sign * ((a.value or 0.0) - (b.value or 0.0))


def _pull(problem: GoalOnRows) -> GoalOnRows:
    """The problem of meeting the one constraint as well as possible."""
    (constraint,) = problem.constraints
    apart = constraint.left - constraint.right
    if constraint.op == "==":
        goal = Goal("minimize", abs(apart))
    else:
        goal = Goal("minimize" if constraint.op == "<=" else "maximize", apart)
    return GoalOnRows(goal, problem.columns, goal.objective, ())
