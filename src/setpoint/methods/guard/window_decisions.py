"""Decisions in the window: the cell that each row falls into, and shares that are decided."""

from __future__ import annotations

import numpy as np

from setpoint.goals import Goal
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered, gaps_divided
from setpoint.methods.guard.recent_rows import ObservedRows


def cell_of(cells: Cells, rows: ObservedRows, threshold: float) -> np.ndarray:
    """The cell (n,) that each row falls into; of several classes the score is the decision."""
    if cells.kind == "multiclass":
        decided = rows.scores.astype(np.intp)
    else:
        decided = (rows.scores >= threshold).astype(np.intp)
    place = rows.table * cells.side + rows.y.astype(np.intp)
    return place * cells.side + decided


def cell_mass(cells: Cells, rows: ObservedRows, threshold: float) -> np.ndarray:
    """(cells,) per unit of mass: each label's tables sum to 1."""
    size = int(np.prod(cells.shape))
    mass = np.bincount(cell_of(cells, rows, threshold), rows.weight, minlength=size)
    return mass * (cells.labels / mass.sum())


def row_count(cells: Cells, rows: ObservedRows) -> float:
    """As many rows of one weight."""
    return float(rows.weight.sum() ** 2 / (rows.weight @ rows.weight)) / cells.labels


def class_shares(cells: Cells, mass: np.ndarray) -> tuple[tuple[str, float, float], ...]:
    """(name, share of the rows that is of it, share decided as it) of each class or label."""
    table = mass.reshape(-1, cells.labels, cells.side, cells.side).sum(0)
    table = table / np.maximum(table.sum((1, 2), keepdims=True), 1e-30)
    names = [str(name) for name in cells.columns.classes]
    if cells.kind == "multiclass":
        return tuple(zip(names, table[0].sum(1).tolist(), table[0].sum(0).tolist(), strict=True))
    of, decided = table[:, 1].sum(1).tolist(), table[:, :, 1].sum(1).tolist()
    return tuple(zip(names if cells.several else names[1:], of, decided, strict=True))


def group_shares(cells: Cells, mass: np.ndarray) -> tuple[tuple[str, float], ...]:
    """(name, share decided positive) of each group of a binary task; () without groups."""
    if cells.kind != "binary" or not cells.task.groups:
        return ()
    table = mass.reshape(-1, 2, 2)
    names = [", ".join(map(str, labels)) for labels in cells.groups]
    shares = table[:, :, 1].sum(1) / np.maximum(table.sum((1, 2)), 1e-30)
    return tuple(zip(names, shares.tolist(), strict=True))


class JudgedGoal(Lowered):
    """A goal as it is judged on the window: each gap is divided into pairs.

    Parameters
    ----------
    goal : Goal
        Lowered.
    cells : Cells

    Attributes
    ----------
    whole_goal : Goal
        As it was given.
    owner : list of int
        The constraint of ``whole_goal`` that each violation belongs to.
    divides : bool
        Whether a gap was divided.
    """

    def __init__(self, goal: Goal, cells: Cells) -> None:
        divided, part_of = gaps_divided(goal, cells)
        super().__init__(divided, cells)
        self.whole_goal = goal
        self.divides = divided is not goal
        self.owner = [part_of[i] for i in self.part_of]
        self._split = {i for i in part_of if part_of.count(i) > 1}

    @property
    def constraints(self) -> list[str]:
        """The constraint that each multiplier belongs to."""
        whole = [str(c) for c in self.whole_goal.constraints]
        texts = [w.text for w in self.wanted[1:]]
        rows = zip(self.owner, texts, strict=True)
        return [whole[i] if i in self._split else text for i, text in rows]


def controlled_constraints(judge: Lowered | None) -> np.ndarray:
    """(m,) whether a price is controlled: what one threshold cannot be chosen by.

    Of a binary task those are constraints that speak of groups.
    """
    if judge is None:
        return np.zeros(0, bool)
    groups = {name for name, _ in judge.cells.task.groups}
    several = judge.cells.kind != "binary"
    leaves = [w.expression.leaves() for w in judge.wanted[1:]]
    about = [{x.column for leaf in some for x in leaf.event.literals} for some in leaves]
    return np.array([several or bool(columns & groups) for columns in about], dtype=bool)
