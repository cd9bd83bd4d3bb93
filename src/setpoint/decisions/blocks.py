"""Several thresholds at once: one per group of rows, or one per label.

A block is a part of the data with a threshold of its own. Every total is a sum over blocks, so with
the others held still, one block's threshold is searched exactly by one sweep, and two blocks' by a
grid. If all combinations are few enough they are all looked at and the answer is exact; otherwise
pairs of blocks are improved in turn, from several starts, and the rule says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, GoalError
from setpoint.decisions.frontier import spread_over
from setpoint.decisions.problem import Point, Problem
from setpoint.expressions import Columns, Label, Sweep, Task, Total
from setpoint.expressions.events import ACTUAL, CORRECT, DECIDED, Event, Literal

FEW = 200_000  # combinations that are all looked at
GRID = 160  # candidates a side when two blocks are searched together
ROUNDS = 12


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
    scores, actual = np.asarray(columns.scores), columns.actual
    blocks = []
    for index, label in enumerate(columns.classes):
        part = Columns(
            Task(),
            actual[:, index],
            scores=scores[:, index],
            weight=columns.weight,
            groups=columns.groups,
        )

        def own(leaf: Total, label: Label = label) -> Total | None:
            if leaf.event.about(CORRECT):
                raise GoalError(
                    "accuracy of a multilabel task asks for all labels at once and does not add up "
                    "over labels; tune hamming_loss, micro(f1) or macro(f1)"
                )
            if {x.value for x in leaf.event.about(DECIDED, ACTUAL)} != {label}:
                return None
            plain = {Literal(x.column, None, x.holds) for x in leaf.event.about(DECIDED, ACTUAL)}
            return Total(Event(frozenset(plain) | leaf.event.without(DECIDED, ACTUAL).literals))

        blocks.append(Block(label, Sweep(part), own))
    return blocks


@dataclass(frozen=True, eq=False)
class Mesh:
    """Candidates: all combinations of chosen positions of some blocks, the others held still."""

    blocks: Sequence[Block]
    constants: dict[Any, float]
    moving: tuple[int, ...]
    positions: tuple[np.ndarray, ...]
    still: dict[int, int]

    @property
    def size(self) -> int:
        """Number of combinations."""
        return int(np.prod([p.size for p in self.positions]))

    def state(self, leaf: Any, start: int, stop: int) -> Any:
        """Σ over blocks of the leaf's total at each combination."""
        if leaf in self.constants:
            return self.constants[leaf]
        total: Any = sum(_at(self.blocks[b], leaf, i) for b, i in self.still.items())
        shape = tuple(p.size for p in self.positions)
        where = np.unravel_index(np.arange(start, stop), shape)
        for block, positions, index in zip(self.moving, self.positions, where, strict=True):
            mine = self.blocks[block].own(leaf)
            if mine is not None:
                sweep = self.blocks[block].sweep
                along = np.broadcast_to(sweep.state(mine, 0, sweep.size), sweep.size)
                total = total + along[positions][index]
        return total

    def unravel(self, index: int) -> dict[int, int]:
        """The position of every block at a combination."""
        where = np.unravel_index(index, tuple(p.size for p in self.positions))
        pairs = zip(self.moving, self.positions, where, strict=True)
        return self.still | {b: int(p[i]) for b, p, i in pairs}


def _at(block: Block, leaf: Any, position: int) -> float:
    mine = block.own(leaf)
    if mine is None:
        return 0.0
    return float(np.ravel(block.sweep.state(mine, position, position + 1))[0])


def search(problem: Problem, blocks: Sequence[Block]) -> tuple[list[int], str]:
    """The best position of each block, and how it was searched."""
    constants = {
        leaf: problem.columns.total(leaf.event)
        for leaf in problem.leaves()
        if leaf.threshold_free()
    }
    everything = tuple(np.arange(b.sweep.size) for b in blocks)
    if np.prod([float(p.size) for p in everything]) <= FEW:
        mesh = Mesh(blocks, constants, tuple(range(len(blocks))), everything, {})
        found = mesh.unravel(problem.scan(mesh).choose()[0])
        return [found[b] for b in range(len(blocks))], "exact"
    climb = _Climb(problem, blocks, constants)
    best = max((climb.from_start(s) for s in climb.starts()), key=climb.rank)
    return best, "local search over pairs of thresholds"


@dataclass(frozen=True, eq=False)
class _Climb:
    """Improve one block, then two at a time, until nothing moves."""

    problem: Problem
    blocks: Sequence[Block]
    constants: dict[Any, float]

    def rank(self, place: list[int]) -> tuple:
        return self.point(place).rank(self.problem.goal.sign)

    def point(self, place: list[int]) -> Point:
        env = {
            leaf: self.constants[leaf]
            if leaf in self.constants
            else sum(_at(b, leaf, i) for b, i in zip(self.blocks, place, strict=True))
            for leaf in self.problem.leaves()
        }
        return self.problem.at(env)

    def starts(self) -> list[list[int]]:
        """Equal thresholds and equal shares decided: the best three of a grid of each."""
        pooled = np.unique(np.concatenate([b.sweep.thresholds[1:] for b in self.blocks]))[::-1]
        equal = [
            [int(np.searchsorted(-b.sweep.thresholds, -t, "right")) - 1 for b in self.blocks]
            for t in pooled[spread_over(pooled.size, 64)]
        ]
        shares = np.r_[0, np.geomspace(1e-3, 1, 48)]
        alike = [[round(s * (b.sweep.size - 1)) for b in self.blocks] for s in shares]
        ranked = sorted(equal + alike, key=self.rank, reverse=True)
        return ranked[:3]

    def from_start(self, place: list[int]) -> list[int]:
        """Climb until no single block and no pair of blocks improves."""
        place = list(place)
        for _ in range(ROUNDS):
            before = self.rank(place)
            for block in range(len(self.blocks)):
                place = self._improve(place, (block,), full=True)
            pairs = combinations(range(len(self.blocks)), 2)
            near = pairwise(range(len(self.blocks)))
            for pair in pairs if len(self.blocks) <= 8 else near:
                place = self._improve(place, pair, full=False)
            if self.rank(place) <= before:
                break
        return place

    def _improve(self, place: list[int], moving: tuple[int, ...], full: bool) -> list[int]:
        positions = []
        for b in moving:
            size = self.blocks[b].sweep.size
            if full or size <= GRID:
                positions.append(np.arange(size))
            else:
                near = np.arange(max(0, place[b] - GRID // 4), min(size, place[b] + GRID // 4))
                positions.append(np.union1d(spread_over(size, GRID // 2), near))
        still = {b: i for b, i in enumerate(place) if b not in moving}
        mesh = Mesh(self.blocks, self.constants, moving, tuple(positions), still)
        found = mesh.unravel(self.problem.scan(mesh).choose()[0])
        moved = [found[b] for b in range(len(self.blocks))]
        return moved if self.rank(moved) > self.rank(place) else place
