"""The exact reformulation a batch at a time, with a table of memberships.

Each row keeps its membership s ∈ [0, 1] in a table (``shelf``), s = y when it is first seen. At the
prices of the last step a row of class a is worth gain = −∂L/∂C[a, yes] + ∂L/∂C[a, no] more where it
is decided than where it is not. Seen from the side that is worth more (q = s, e = z and φ = σ(z)
where gain > 0; q = 1 − s, e = −z and φ = 1 − σ(z) where gain < 0) all rows are alike, and

    minimise  Σᵢ wᵢ |gainᵢ| · (−q + ρ·min(q, [½ − φ]₊) + λ·R(q, e)),     ℓ(e) = log(1 + exp(−e)),

    trim      R = q ℓ(e)                     rows that are given up are not taught at all
    relabel   R = q ℓ(e) + (1 − q) ℓ(−e)     they are taught the other decision

The second term is the tie (``tie``): q may be at most the step. Where a goal wants now the one and
now the other, q must equal it, and ρ·min(1 − q, [φ − ½]₊) is added. A visit takes one projected
step of rate η in q, and one gradient in the outputs, both at the values before it. Since a row's
own worth weighs all its terms, what is given up depends on λ ℓ + ρ [½ − φ]₊ < 1 alone, whatever the
goal, its classes and multipliers: λ from 1/8, where a row may be wrong by far, to just below
1/log 2, where one at the threshold is still kept.

Totals are exact: by how much a batch changes the sums over all rows is added to them, in float64.
There are two of them, one of s, which is priced, and one of decisions as they stood at each row's
last visit, by which multipliers climb: memberships are the promise of a decision, and while the tie
is loose they hold every constraint. A constraint judged by them would be free until it is too late.
Violations are those of the goal as it is stated, not cleared of divisors: a floor on precision then
is broken by 1 at most, and held as well by few decisions as by many. The multiplier is not carried
away by what an untrained model decides, and comes back where nothing is decided any more.

A table entry holds s, with its sign bit set where the row was decided; 2 stands for never seen.

References
----------
Peng, Travadi, He, Cui, Sun, arXiv 2507.15240 (2025): the reformulation. Batches, the table, trim
and the weighing by worth are our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint._core.arrays import (
    cast,
    exponential,
    holds_everywhere,
    inverse,
    is_tensor,
    join,
    namespace,
    tally,
    where,
)
from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.options import choice, number, numbers, whole
from setpoint.goals import Goal, Task, check
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Few, Lowered
from setpoint.methods.confusion.soft_decisions import HardSteps, by_class
from setpoint.methods.costs import CHEAPEST, DEAREST, RIGHT
from setpoint.methods.exact.row_store import Shelf
from setpoint.methods.exact.step_tie import directions
from setpoint.methods.exact.whole_problem import REGULARISERS, RELATIONS
from setpoint.methods.goal_program import GoalProgram
from setpoint.methods.method import Recovered, not_totals
from setpoint.methods.soft_set import recovered
from setpoint.programs import Exchange, KeepsRows, Priced
from setpoint.surrogates import Annealed, schedule

# Options of the table form of the exact reformulation (``exact_table``).


@dataclass(frozen=True)
class Tabled:
    """Options of the table form.

    Parameters
    ----------
    rows : int
        Rows of the data, numbered 0…rows-1.
    rho : None, float or Schedule
        ρ, how firmly memberships are tied to decisions; from 0.1 to 4 by default.
    lam : None, float or Schedule
        λ, the weight of the regulariser; from 1/8 to 1.4 by default.
    steps : int
        Steps over which they grow, where they are not given.
    rate_s : float
        η, how far a membership moves in a visit. With 1 or more it is at 0 or 1 after each; take it
        where a row is visited a few times only.
    regulariser : {"trim", "relabel", "none"}
    relation : {"auto", "inequality", "equality"}
        Auto: by inequalities for the classes (and groups) of which the goal always wants the same.
    table : path, optional
        A file for the table; in memory otherwise.
    rate : float
        How fast a broken constraint gets dearer: by exp(rate · violation) while all rows come by.
    multipliers : sequence of float, optional
        Where to start, one per constraint; 1 by default.
    """

    rows: int
    rho: Any = None
    lam: Any = None
    steps: int = 1000
    rate_s: float = 0.3
    regulariser: str = "trim"
    relation: str = "auto"
    table: Any = None
    rate: float = 2.0
    multipliers: Any = None

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, floats=True, error=KindError)
        for name, (low, high) in {"rho": (0.1, 4.0), "lam": (0.125, 1.4)}.items():
            x = getattr(self, name)
            x = Annealed(low, high, int(self.steps)) if x is None else schedule(x, name)
            object.__setattr__(self, name, x)
        number("rate_s", self.rate_s, 0, error=KindError)
        number("rate", self.rate, 0, error=KindError)
        choice("regulariser", self.regulariser, REGULARISERS)
        choice("relation", self.relation, RELATIONS)
        if self.multipliers is not None:
            each = "one per constraint"
            start = numbers("multipliers", self.multipliers, 0, each=each, error=KindError)
            object.__setattr__(self, "multipliers", start)


UNSEEN = 2.0
PINCH = 1e-3  #: share of perfect decisions among those that multipliers are moved by


def table_program(goal: Goal, task: Task, options: Tabled) -> TableProgram:
    """The program of a goal, or a sentence why there is none."""
    check(goal, task)
    why = objection(goal, task)
    if why is not None:
        raise GoalError(why)
    return TableProgram(Lowered(goal.lowered, Cells(task)), options)


def objection(goal: Goal, task: Task) -> str | None:
    """Why a goal cannot be trained with a table, as a sentence; None if it can."""
    if task.kind in ("multiclass", "multilabel"):
        return (
            f'form="table" keeps one membership per row, and a {task.kind} row has one for each '
            'class; form="eliminated" keeps none and trains on it'
        )
    return not_totals(goal, task)


class TableProgram(KeepsRows, GoalProgram):
    """Prices at exact totals of a table of memberships.

    Parameters
    ----------
    lowered : Lowered
        Of a binary task.
    options : Tabled
    """

    _shelf: Shelf

    def __init__(self, lowered: Lowered, options: Tabled) -> None:
        m = len(lowered.constraints)
        start = [1.0] * m if options.multipliers is None else list(options.multipliers)
        if len(start) != m:
            raise KindError(f"multipliers holds {len(start)} numbers for {m} constraints")
        super().__init__(lowered, HardSteps(lowered.cells.shape[0]), start)
        self.options = options
        self.tables = lowered.cells.shape[0]
        self.shape = (2, 4 * self.tables)  # memberships, decisions
        self.population = int(options.rows)
        self.shelf = Shelf(options.rows, UNSEEN, options.table)
        object.__setattr__(self, "_shelf", self.shelf)  # found without the search
        kinds = {"inequality": np.zeros(2 * self.tables), "equality": np.ones(2 * self.tables)}
        both = kinds.get(options.relation)
        if both is None:
            both = (directions(lowered) == 0) * 1.0
        self._both = both
        self._two_sided = bool(both.any())
        self.register_buffer("both", torch.tensor(both, dtype=torch.float32), False)
        self.judged = Lowered(lowered.goal, lowered.cells, clear=False)
        self._judge: Any = self.judged.few
        self._few = None if self._judge is None else lowered.few
        self.register_buffer("eye", torch.eye(2), False)
        self._found: Any = None  #: the rows of the batch in hand, until it is measured

    # --- a batch ---------------------------------------------------------------------------------

    def place(
        self, rows: Batch, row: Any, exchange: Exchange | None, prices: Tensor, on: Any
    ) -> None:
        if row is None:
            raise KindError(
                'form="table" keeps something for each row: pass row=, the number of each row of '
                f'the batch among all rows, 0…{self.population - 1}; form="eliminated" needs none'
            )
        if torch.compiler.is_compiling():
            raise KindError("a table of rows is written in place: do not compile this loss")
        if getattr(row, "shape", (rows.rows,)) != (rows.rows,):
            raise DataError(f"row must have shape ({rows.rows},); got {tuple(row.shape)}")
        visit = self._shelf.take(row, exchange, rows.logits.device)
        self._found = visit, exchange, self._gains(rows.small(prices)), rows.small(on)

    def measure(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        if self._found is None:  # in evaluation: the batch's own decisions, nothing is kept
            cells = self._reader.read(rows, step)[0]
            return join([cells, cells], 0), None
        (visit, exchange, gains, on), self._found = self._found, None
        was = rows.of(visit.values)
        s, seen = cast(abs(was), rows.p), abs(was) <= 1
        if not holds_everywhere(seen):
            s = where(seen, s, rows.y)
        with np.errstate(invalid="ignore", over="ignore"):
            side = self._side(rows, gains, s)
            s = self._moved(rows, side, s, gains, on, step)
        new, decided = cast(s, was), rows.z >= 0
        slots = new * (1 - 2 * cast(decided, was))  # the sign bit, of 0 as well
        sure = _finite(rows)
        if sure is not None:
            slots, new = where(sure, slots, was), where(sure, new, 0 * was)
        self._shelf.put(visit, torch.as_tensor(slots), exchange)
        if visit.counts is not None:
            counts = rows.of(visit.counts)
            sure = counts if sure is None else counts & sure
        return self._change(rows, was, new, decided, sure), side

    def _side(self, rows: Batch, gains: Any, s: Any) -> tuple[Any, Any, Any]:
        """Of each row the side that is worth more, 1 or −1; ½ − φ; and q."""
        a = by_class(rows, 2.0 * (gains >= 0) - 1)
        return a, (0.5 - rows.p) * a, (s - 0.5) * a + 0.5

    def _moved(self, rows: Batch, side: Any, s: Any, gains: Any, on: Any, step: Tensor) -> Any:
        """The memberships after one projected step."""
        if rows.flat and not on:
            return s
        a, gap, q = side
        rho, lam = self._weights(rows, step)
        drift = cast(q < gap, q)
        if self._two_sided:
            drift -= by_class(rows, self._both if rows.flat else self.both) * (1 - q < -gap)
        drift *= rho
        drift -= 1
        if self.options.regulariser == "trim":
            away = torch.as_tensor(a * rows.z).neg_()
            drift += rows.of(F.softplus(away).mul_(lam))
        elif self.options.regulariser == "relabel":
            drift -= a * rows.z * lam
        drift *= a
        drift *= by_class(rows, (gains != 0) * (self.options.rate_s * on))
        moved = (s - drift).clip(0, 1)
        return moved if rows.flat else torch.where(on, moved, s)

    def _weights(self, rows: Batch, step: Tensor) -> tuple[Any, Any]:
        at = rows.small(step)
        return self.options.rho.at(at), self.options.lam.at(at)

    def _change(self, rows: Batch, was: Any, new: Any, decided: Any, counts: Any) -> Any:
        """By how much the totals of memberships and of decisions change, (2, cells), float64."""
        xp = namespace(new)
        seen, one = abs(was) <= 1, _double(new)
        high = [one - cast(abs(was), one) * seen, cast(decided, one) - cast(xp.signbit(was), one)]
        unit = None if rows.w is None else cast(rows.w, one)
        if counts is not None:
            unit = cast(counts, one) if unit is None else where(counts, unit, 0.0)
        parts = [*high, cast(~seen, one)]
        sums = [self._by_place(rows, x if unit is None else x * unit) for x in parts]
        first = sums.pop()
        if rows.flat and rows.table is None:
            return np.array([[first[0] - x, x, first[1] - y, y] for x, y in sums])
        return xp.stack([xp.stack([first - yes, yes], 1).reshape(-1) for yes in sums])

    def _by_place(self, rows: Batch, amounts: Any) -> Any:
        """Sums over the rows of each table and class, (tables · 2,)."""
        if rows.table is not None:
            return tally(rows.place, amounts, 2 * self.tables, amounts)
        yes = amounts @ cast(rows.y, amounts)
        both = amounts.sum() - yes, yes
        return both if rows.flat else torch.stack(both)

    @staticmethod
    def _gains(prices: Any) -> Any:
        """(tables · 2,) what deciding is worth more than not deciding."""
        table = prices[0].reshape(-1, 2)
        return table[:, 1] - table[:, 0]

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        p = rows.p
        if not is_tensor(on) and not on:
            return rows.gradient((p - rows.y) * scale)
        gains = self._gains(prices)
        if memory is None:
            memory = self._side(rows, gains, cast(rows.z >= 0, p))
        a, gap, q = memory
        rho, lam = self._weights(rows, step)
        slope = -cast((gap > 0) & (q >= gap), p)
        if self._two_sided:
            both = by_class(rows, self._both if rows.flat else self.both)
            slope += both * ((gap < 0) & (1 - q >= -gap))
        slope *= p
        slope *= (1 - p) * rho
        if self.options.regulariser == "trim":
            slope -= q * (gap + 0.5) * lam  # gap + ½ is 1 − φ
        elif self.options.regulariser == "relabel":
            slope += (0.5 - gap - q) * lam
        slope *= a
        slope *= by_class(rows, abs(gains) * scale)
        if is_tensor(on):
            slope = torch.where(on > 0, slope, (p - rows.y) * scale)
        return rows.gradient(slope)

    # --- the goal --------------------------------------------------------------------------------

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self._few is not None and isinstance(totals, np.ndarray):
            return self._price_few(self._few, totals.tolist(), multipliers.tolist())
        values, memory = self.lowered.read(totals)
        values = where(values - values == 0, values, 0.0)
        weights = join([0 * totals[0, :1] - 1, -multipliers], 0)
        soft = totals[:1], tuple(x[:1] for x in memory)
        table = self.lowered.prices(*soft, weights).reshape(-1, 2)
        mass = totals[0].reshape(-1, 2).sum(1)
        mean = (mass * abs(table[:, 1] - table[:, 0])).sum()
        right = totals[0].reshape(-1, 4) * 0
        right[:, 0], right[:, 3] = 1.0, 1.0
        good = (mean > 0) & (table.sum() - table.sum() == 0)
        worth = where(good, (table * inverse(mean)).reshape(1, -1), right.reshape(1, -1))
        cost = values[1, 0] + self.lowered.offset + (multipliers * values[1, 1:]).sum()
        violations = self.judged.read(self._pinched(totals[1:]))[0][0, 1:]
        violations = where(violations - violations == 0, violations, 0.0)
        return Priced(cost, violations, join([worth, 0 * worth], 0))

    def _pinched(self, cells: Any) -> Any:
        """Decisions with a pinch of perfect ones: a rate is never empty, and says which way."""
        table = cells.reshape(self.tables, 2, 2)
        right = table.sum(-1)[..., None] * (self.eye.to(table) if is_tensor(table) else np.eye(2))
        return ((1 - PINCH) * table + PINCH * right).reshape(1, -1)

    def _price_few(self, few: Few, tables: list[Any], multipliers: list[float]) -> Priced:
        """The same of one table, in plain numbers."""
        soft, hard = tables
        tn, fp, fn, tp = few.prices(few.read(soft)[1], [-1.0, *(-x for x in multipliers)])
        value, *violations = few.read(hard)[0]
        mean = (soft[0] + soft[1]) * abs(fp - tn) + (soft[2] + soft[3]) * abs(tp - fn)
        unit = inverse(mean)
        worth = [x * unit for x in (tn, fp, fn, tp)] if mean > 0 else list(RIGHT)
        cost = value + self.lowered.offset + sum(map(mul, multipliers, violations))
        if violations:
            no, yes = hard[0] + hard[1], hard[2] + hard[3]
            perfect = zip(hard, (no, 0.0, 0.0, yes), strict=True)
            _, *violations = self._judge.read([(1 - PINCH) * x + PINCH * y for x, y in perfect])[0]
        return Priced(cost, np.array(violations), np.array([worth, [0.0] * 4]))

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        return on * priced.value + (1 - on) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        """Dearer by exp(rate · v) while all rows come by, an equation's by as much."""
        if self._few is not None and not is_tensor(multipliers):  # in plain numbers
            pace, moved = self.options.rate * share, []
            rows = zip(multipliers.tolist(), violations.tolist(), self._few.equal, strict=True)
            for x, v, equal in rows:
                push = min(max(pace * v, -1.0), 1.0)
                dearer = min(max(x * math.exp(push), CHEAPEST), DEAREST)
                moved.append(min(max(x + push, -DEAREST), DEAREST) if equal else dearer)
            return np.array(moved)
        push = (self.options.rate * share * violations).clip(-1, 1)
        dearer = (multipliers * exponential(push)).clip(CHEAPEST, DEAREST)
        shifted = (multipliers + push).clip(-DEAREST, DEAREST)
        return where(self.lowered.equal_of(violations) > 0, shifted, dearer)

    def presence(self, totals: Any) -> Any:
        """Every class: what a batch changes does not say which rows it held."""
        return 0 * super().presence(totals) + 1

    def gathered(self, exchange: Exchange | None) -> dict[str, Tensor]:
        return {f"shelf.{name}": x for name, x in self.shelf.gathered(exchange).items()}

    def recovered(self, totals: Tensor, multipliers: Tensor) -> Recovered:
        """Objective and constraints at the decisions of each row's last visit."""
        return recovered(self, totals[1:], multipliers)


def _double(x: Any) -> Any:
    """An array or a tensor in float64."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) else x.double()


def _finite(rows: Batch) -> Any:
    """The rows whose logit and weight are finite; None where the host knows that all are."""
    xp = namespace(rows.z)
    good = xp.isfinite(rows.z)
    if rows.w is not None:
        good = good & xp.isfinite(rows.w)
    return None if holds_everywhere(good) else good
