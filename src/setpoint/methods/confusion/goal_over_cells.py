"""A goal lowered to cells: objective, constraints and their prices, all at once.

Objective and constraints are stacked as fractions of cells,

    eⱼ(c) = Σᵣ Mⱼᵣ (Aᵣ·c) / (Bᵣ·c) + kⱼ,      ∂eⱼ/∂c = Σᵣ Mⱼᵣ (Aᵣ − (Aᵣ·c / Bᵣ·c) Bᵣ) / (Bᵣ·c),

and what is no sum of fractions (mcc, g_mean) is read as a tree and differentiated by autograd. A
constraint N/D >= b stands cleared, as N − b D >= 0 over the D that perfect decisions would give:
its pull neither vanishes nor explodes where nothing is decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import greater, inverse, is_tensor, namespace
from setpoint._core.errors import GoalError
from setpoint.expressions import Constraint, Domain, Expression, Number, Several, Total
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.fractions import Form, cleared, fractions
from setpoint.expressions.node import ATOM
from setpoint.goals import Goal
from setpoint.methods.confusion.confusion_cells import Cells

#: least divisor of an objective's fraction, relative to what perfect decisions would give
FLOOR = 0.01
LEAST = 1e-4  #: and relative to all rows: a class that is not there has no price without end
# One table of few fractions is read as plain numbers, which are faster than arrays so small.
PLAIN_FRACTIONS = 4  #: at most
PLAIN_CELLS = 4  #: those of one 2 × 2 table


@dataclass(frozen=True, eq=False)
class SignedExpression:
    """One thing to be made small: sign · (left − right); two-sided where it must be 0."""

    expression: Expression
    sign: float
    equal: bool = False
    text: str = ""
    apart: bool = False  #: whether it is by how much two differ, whichever is greater


@dataclass(frozen=True, eq=False, repr=False)
class CellPlace(Expression):
    """A leaf of a tree that is read by its place among the totals.

    Looking a leaf itself up compares trees, which is slow, and which torch.compile cannot follow.
    """

    index: int

    def read(self, env: Any) -> Reading:
        return Reading(env[self.index])

    def text(self) -> tuple[str, int]:
        return f"[{self.index}]", ATOM

    def latex(self) -> str:
        return f"[{self.index}]"


class Matrices(NamedTuple):
    """Objective and constraints over cells: r fractions, 1 + m things wanted, l leaves."""

    read: Any  #: (cells, 3 r) tops, bottoms, least divisors
    up: Any  #: (r, cells) gradients of tops
    down: Any  #: (r, cells) and of bottoms, where they fall
    mix: Any  #: (r, 1 + m)
    count: Any  #: (l, cells)
    equal: Any  #: (m,)


class Few:
    """Objective and constraints at one table, in plain numbers; for a few fractions of a few cells.

    A dozen multiplications: Python is through with them before numpy has looked at its arguments.

    Parameters
    ----------
    fractions : list of (j, mix, top, bottom, floor, falls)
        As in ``Matrices``; j is the place of what is wanted.
    equal : list of float
        1 for each constraint that is an equation.
    """

    def __init__(self, fractions: list[Any], equal: list[float]) -> None:
        self.fractions = fractions
        self.equal = equal

    def read(self, cells: list[float]) -> tuple[list[float], list[Any]]:
        """The 1 + m values, and what ``prices`` wants to remember."""
        values, memory = [0.0] * (1 + len(self.equal)), []
        for j, mix, top, bottom, floor, _ in self.fractions:
            share_of = inverse(max(sum(map(mul, bottom, cells)), sum(map(mul, floor, cells))))
            share = sum(map(mul, top, cells)) * share_of
            values[j] += mix * share
            memory.append((share_of, share))
        return values, memory

    def prices(self, memory: list[Any], weights: list[float]) -> list[float]:
        """Σⱼ weightsⱼ ∂eⱼ/∂cells."""
        whole = [0.0] * PLAIN_CELLS
        for part, (share_of, share) in zip(self.fractions, memory, strict=True):
            j, mix, top, bottom, _, falls = part
            scale, drop = weights[j] * mix * share_of, share * falls
            whole = [x + scale * (t - drop * b) for x, t, b in zip(whole, top, bottom, strict=True)]
        return whole


class Lowered(nn.Module):
    """The objective F and the constraints v <= 0 of a goal, as functions of cells.

    Parameters
    ----------
    goal : Goal
    cells : Cells
    clear : bool
        Whether constraints stand cleared. Otherwise they are read as the goal states them, with no
        least divisor: to be judged by, not to be descended.

    Notes
    -----
    Cells are given per unit of mass, (T, cells): one table for each of T thresholds. F is in the
    units of the objective, counted so that lower is better and, where it is bounded, 0 is perfect.
    """

    def __init__(self, goal: Goal, cells: Cells, *, clear: bool = True) -> None:
        super().__init__()
        self.goal = goal
        self.cells = cells
        self._columns = cells.columns
        self._clear = clear
        domain = Domain(self._columns)
        objective = goal.objective.expand(domain)
        high = goal.objective.interval()[1]
        self.offset = high if goal.sign > 0 and high < float("inf") else 0.0
        self.wanted = [SignedExpression(objective, -float(goal.sign))]
        self.part_of: list[int] = []  #: the constraint of the goal that each violation belongs to
        for i, constraint in enumerate(goal.constraints):
            ground = Constraint(
                constraint.left.expand(domain), constraint.op, constraint.right.expand(domain)
            )
            parts = signed_expressions(ground)
            self.part_of += [i] * len(parts)
            texts = self._texts(str(constraint), len(parts))
            self.wanted += [replace(w, text=t) for w, t in zip(parts, texts, strict=True)]
        self.leaves = tuple(
            dict.fromkeys(leaf for w in self.wanted for leaf in w.expression.leaves())
        )
        self._stack()
        place = {leaf: CellPlace(i) for i, leaf in enumerate(self.leaves)}
        self.trees = {
            j: (self.wanted[j].sign, self.wanted[j].expression.map_leaves(place.__getitem__))
            for j in self.trees
        }
        self._scale_free()

    def _texts(self, text: str, parts: int) -> list[str]:
        """The constraint's text for each part of it, with the class or group it is about."""
        names = {len(self.cells.groups): [g[0] if g else "" for g in self.cells.groups]}
        names[len(self._columns.classes)] = list(self._columns.classes)
        if parts == 1:
            return [text]
        return [f"{text} ({name})" for name in names.get(parts, range(parts))]

    @property
    def constraints(self) -> list[str]:
        """The constraint that each multiplier belongs to."""
        return [w.text for w in self.wanted[1:]]

    def _stack(self) -> None:
        """Write what is fractional as matrices over cells, and keep the rest as trees."""
        tops, bottoms, falls, mix = [], [], [], []
        self.trees: Any = []
        for j, wanted in enumerate(self.wanted):
            parts = fractions(wanted.expression)
            if parts is None:
                self.trees.append(j)
                continue
            clear = cleared(parts) if self._clear and j and not wanted.equal else None
            if clear is not None:
                settled = self.cells.settled(self._weights(clear[1]))
                rows = [(wanted.sign, self._weights(clear[0]), settled, 0.0)]
            else:
                rows = [
                    (wanted.sign * p.scale, self._weights(p.top), self._weights(p.bottom), 1.0)
                    for p in parts
                ]
            for scale, top, bottom, falling in rows:
                tops.append(top)
                bottoms.append(bottom)
                falls.append(falling)
                mix.append([scale if i == j else 0.0 for i in range(len(self.wanted))])
        shape = len(tops), int(np.prod(self.cells.shape))
        top, bottom = (np.array(x, dtype=np.float64).reshape(shape) for x in (tops, bottoms))
        floor = np.array([FLOOR * self.cells.settled(row) for row in bottom]).reshape(shape) + LEAST
        floor = floor * self._clear
        self.host = Matrices(
            read=np.concatenate([top, bottom, floor]).T,
            up=top,
            down=-bottom * np.reshape(falls, (-1, 1)),
            mix=np.array(mix, dtype=np.float64).reshape(len(tops), len(self.wanted)),
            count=np.array([self.cells.mask(x, self._columns) for x in self.leaves]).reshape(
                -1, shape[1]
            ),
            equal=np.array([w.equal for w in self.wanted[1:]], dtype=np.float64),
        )
        self.few = None  #: the same in plain numbers, where that is all there is to it
        if len(tops) <= PLAIN_FRACTIONS and shape[1] == PLAIN_CELLS and not self.trees:
            place = [next(j for j, x in enumerate(row) if x or j + 1 == len(row)) for row in mix]
            numbers = zip(*(x.tolist() for x in (top, bottom, floor)), falls, strict=True)
            parts = zip(place, mix, numbers, strict=True)
            self.few = Few([(j, m[j], *rest) for j, m, rest in parts], self.host.equal.tolist())
        for name, matrix in self.host._asdict().items():
            tensor = torch.from_numpy(np.ascontiguousarray(matrix)).to(torch.get_default_dtype())
            self.register_buffer(name + "_", tensor, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow to another device or type; widened matrices are taken from the exact ones."""
        super()._apply(fn, recurse)
        for name, matrix in self.host._asdict().items():
            buffer = self.get_buffer(name + "_")
            exact = torch.from_numpy(np.ascontiguousarray(matrix))
            self._buffers[name + "_"] = exact.to(buffer.dtype).to(buffer.device)
        return self

    def _on(self, cells: Any) -> Matrices:
        """The matrices beside the cells: numpy on the host, tensors elsewhere."""
        if not is_tensor(cells):
            return self.host
        return Matrices(self.read_, self.up_, self.down_, self.mix_, self.count_, self.equal_)

    def equal_of(self, cells: Any) -> Any:
        """1 for each constraint that is an equation, beside the cells."""
        return self._on(cells).equal

    def _weights(self, form: Form) -> np.ndarray:
        """A weighted sum of totals as a weighted sum of cells; 1 is the mass of all rows."""
        whole = np.zeros(int(np.prod(self.cells.shape)))
        for total, coefficient in form.items():
            whole += coefficient * self.cells.mask(
                Total() if total is None else total, self._columns
            )
        return whole

    def _scale_free(self) -> None:
        """Refuse a constraint on counts: a stream does not know how many rows there are."""
        rng = np.random.default_rng(0)
        size = int(np.prod(self.cells.shape))
        count = self.host.count
        cells = rng.random(size) + 0.1
        for wanted in self.wanted[1:]:
            once, twice = (
                float(wanted.expression.read(dict(zip(self.leaves, count @ c, strict=True))).value)
                for c in (cells, 2 * cells)
            )
            if abs(once - twice) > 1e-9 * max(1.0, abs(once)):
                raise GoalError(
                    f'"{wanted.text}" bounds a count, which grows with the number of rows; bound a '
                    "rate instead, for example fpr or positive_rate"
                )

    def stated(self, cells: np.ndarray) -> list[float]:
        """Objective and excess of each constraint as the goal states them, mean over tables."""
        totals = cells @ self.host.count.T
        env = {leaf: totals[:, i] for i, leaf in enumerate(self.leaves)}
        values = [
            float(np.mean(w.expression.read(env).value) * (w.sign if j else -self.goal.sign))
            for j, w in enumerate(self.wanted)
        ]
        return [abs(x) if w.apart else x for x, w in zip(values, self.wanted, strict=True)]

    # --- reading -----------------------------------------------------------------------------

    def read(self, cells: Any) -> tuple[Any, Any]:
        """(T, 1 + m) objective and violations, and what ``prices`` wants to remember."""
        m = self._on(cells)
        r = m.mix.shape[0]
        sums = cells @ m.read  # (T, 3 r): tops, bottoms, floors
        below, floor = sums[:, r : 2 * r], sums[:, 2 * r :]
        share_of = inverse(greater(below, floor))
        share = sums[:, :r] * share_of
        values = share @ m.mix
        if self.trees:
            values = values + self._read_trees(cells, m.count)
        return values, (share_of, share)

    def prices(self, cells: Any, memory: Any, weights: Any) -> Any:
        """Σⱼ weightsⱼ ∂eⱼ/∂cells, (T, cells); weights (T, 1 + m) or (1 + m,)."""
        m = self._on(cells)
        share_of, share = memory
        scale = (weights @ m.mix.T) * share_of  # (T, r)
        whole = scale @ m.up + (scale * share) @ m.down
        if self.trees:
            whole = whole + self._tree_prices(cells, weights)
        return whole

    def _read_trees(self, cells: Any, count: Any) -> Any:
        totals = cells @ count.T
        env = [totals[:, i] for i in range(len(self.leaves))]
        nothing = 0 * totals[:, 0]
        columns = [nothing] * len(self.wanted)
        for j, (sign, tree) in self.trees.items():
            columns[j] = nothing + sign * tree.read(env).value
        return namespace(cells).stack(columns, 1)

    def _tree_prices(self, cells: Any, weights: Any) -> Any:
        """By autograd; on the host too, for lack of anything simpler."""
        c = torch.as_tensor(cells)
        w, count = torch.as_tensor(weights).to(c), self.count_.to(c)

        def weighed(c: Tensor) -> Tensor:
            return (self._read_trees(c, count) * w).sum()

        if torch.compiler.is_compiling():
            return torch.func.grad(weighed)(c)
        with torch.enable_grad():
            leaf = c.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(weighed(leaf), leaf)
        return gradient if is_tensor(cells) else gradient.numpy()


def signed_expressions(constraint: Constraint) -> list[SignedExpression]:
    """A constraint as things to be <= 0; the least of several >= b is each of them >= b.

    A gap of 0 is equality with the first of them: |a − b| itself has no slope where it is 0.
    """
    left, right = constraint.left, constraint.right
    alike = _gap_of(left)
    if alike and constraint.op != ">=" and isinstance(right, Number) and right.value == 0:
        return [
            SignedExpression(part - alike[0], 1.0, equal=True, apart=True) for part in alike[1:]
        ]
    if constraint.op == "==":
        return [SignedExpression(left - right, 1.0, equal=True)]
    whole = "min" if constraint.op == ">=" else "max"
    parts = left.items if isinstance(left, Several) and left.how == whole else (left,)
    sign = -1.0 if constraint.op == ">=" else 1.0
    return [SignedExpression(part - right, sign) for part in parts]


def gaps_divided(goal: Goal, cells: Cells, most: int = 12) -> tuple[Goal, tuple[int, ...]]:
    """A goal with each ``gap <= b`` as one constraint a pair, and whose part each constraint is.

    xᵢ − xⱼ <= b for every i ≠ j says the same, and each of these has a slope of its own sign.

    Parameters
    ----------
    goal : Goal
        Lowered.
    cells : Cells
    most : int
        Pairs of a gap that is divided.
    """
    domain, constraints, part_of = Domain(cells.columns), [], []
    for place, constraint in enumerate(goal.constraints):
        items = _gap_of(constraint.left.expand(domain))
        pairs = [(a, b) for a in items for b in items if a is not b]
        zero = isinstance(constraint.right, Number) and constraint.right.value == 0
        if constraint.op != "<=" or zero or not 0 < len(pairs) <= most:
            pairs = []
        parts = [Constraint(a - b, "<=", constraint.right) for a, b in pairs] or [constraint]
        constraints += parts
        part_of += [place] * len(parts)
    if len(constraints) == len(goal.constraints):
        return goal, tuple(part_of)
    return Goal(goal.sense, goal.objective, tuple(constraints)), tuple(part_of)


def _gap_of(expression: Expression) -> tuple[Expression, ...]:
    """The items of which an expression is greatest minus least; none where it is no gap."""
    ends = {x.how: x.items for x in expression.walk() if isinstance(x, Several)}
    same = ends.get("max", ()) == ends.get("min") and len(ends) == 2
    plain = same and expression == Several("max", ends["max"]) - Several("min", ends["max"])
    return ends["max"] if plain else ()
