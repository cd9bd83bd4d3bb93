"""Implicit: thresholds as functions of the scores, by the implicit function theorem.

    minimise  f(s, h(s)),     h(s): the thresholds λ at which g(s, λ) = 0,

f and g read on soft decisions σ(κ (s − λ)). The gradient needs no h: with the prices F = ∂f/∂C and
G = ∂g/∂C of cells, and μ from :mod:`setpoint.methods.balance`,

    d f(s, h(s)) / ds_i = Σ_t (F + μ G)_t[class of i] · κ m (1 − m) at s_i − λ_t .

It sums to zero over rows: moving every score alike changes nothing, since the thresholds follow.
Four sums a threshold (two cells, two densities) and the two classes' masses determine it, and they
add up over batches and processes. λ itself is corrected on unrelaxed rates
(:mod:`setpoint.methods.correction`), so that it is the operating point the goal speaks of.

References
----------
Kumar, Narasimhan, Cotter, Implicit Rate-Constrained Optimization of Non-decomposable Objectives,
ICML 2021. Its inequalities (§6.1) have a slack that is stepped; here the slack is solved for: the
threshold is the best that keeps every constraint, and only the one that stops it has a multiplier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import whole
from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint._core.words import did_you_mean
from setpoint.goals import Goal, Task, check
from setpoint.methods.aims import Aim, aim_objection, aim_of, curve_of
from setpoint.methods.balance import GUARD, multipliers, ratio
from setpoint.methods.batch import Batch
from setpoint.methods.cells import Cells
from setpoint.methods.correction import URGENT, best_threshold, level_thresholds, tail
from setpoint.methods.lowered import Lowered
from setpoint.methods.method import Method, Recovered, Standing, not_totals, ready
from setpoint.methods.moving import Moving, Shifts, Thresholds
from setpoint.methods.pool import Pool, Rows, pool_size, rows_of
from setpoint.methods.program import GoalProgram
from setpoint.methods.queries import query_objection, query_program
from setpoint.methods.searching import as_arrays, search_shifts, search_slots
from setpoint.methods.softly import soft_levels, soft_point
from setpoint.programs import Exchange, Priced, StreamProgram

@dataclass(frozen=True)
class Implicit(Method):
    """Train at the operating point itself: its threshold follows the scores.

    Parameters
    ----------
    sharpness : float
        κ of the soft step, per unit of a logit. Too low a κ is the main way to lose.
    points : int
        Thresholds along a curve (auroc, auprc), at the midpoints of as many bins.
    correction : {"exact", "soft"}
        "exact": thresholds from unrelaxed rates on pooled scores. "soft": from the soft rates of
        the batch itself, where the gradient is exactly that of f(s, h(s)).
    every : int
        Steps from one correction to the next.
    pool : int, optional
        Newest rows that thresholds are taken from; 0 for those of the batch alone. By default
        8,192, more for extreme levels.
    smooth : float
        Share of the old threshold kept at a correction, in [0, 1).
    cross_entropy : float
        Share of cross-entropy mixed in, in [0, 1].
    regulariser : float
        ρ of ρ (∂g/∂λ)², which keeps scores away from the thresholds.
    by : str, optional
        A group column: one threshold for each of its groups, which then have to be known when a
        decision is made. Without, one threshold for all.
    share : float, optional
        k/n of goals on the first k of n rows.
    """

    sharpness: float = 5.0
    points: int = 10
    correction: str = "exact"
    every: int = 10
    pool: int | None = None
    smooth: float = 0.0
    cross_entropy: float = 0.0
    regulariser: float = 0.0
    by: str | None = None
    share: float | None = None

    name = "implicit"
    summary = "operating points and curves at thresholds that follow the scores"

    def __post_init__(self) -> None:
        if not is_real(self.sharpness) or not 0 < self.sharpness < math.inf:
            raise KindError(f"sharpness={self.sharpness!r}: a positive number")
        for name, least in (("points", 1), ("every", 1)):
            _check_whole(name, getattr(self, name), least)
        if self.pool is not None:
            _check_whole("pool", self.pool, 0)
        for name in ("cross_entropy", "smooth"):
            x = getattr(self, name)
            if not is_real(x) or not 0 <= x <= 1 or (x == 1 and name == "smooth"):
                raise KindError(f"{name}={x!r}: a share between 0 and 1")
        if not is_real(self.regulariser) or not 0 <= self.regulariser < math.inf:
            raise KindError(f"regulariser={self.regulariser!r}: a number, 0 or more")
        if self.correction not in ("exact", "soft"):
            hint = did_you_mean(str(self.correction), ("exact", "soft"), "exact or soft")
            raise KindError(f"correction={self.correction!r}: {hint}")
        if self.share is not None and (not is_real(self.share) or not 0 < self.share < 1):
            raise KindError(f"share={self.share!r}: k/n, a number between 0 and 1")
        if self.by is not None and not isinstance(self.by, str):
            raise KindError(f"by={self.by!r}: the name of a group column")

    def objection(self, goal: Goal, task: Task) -> str | None:
        if _by_query(goal, task):
            return query_objection(goal, task)
        if self.by is not None and task.group_values(self.by) is None:
            return f'by="{self.by}": declare its values, Task.{task.kind}(groups={{"{self.by}": …}})'
        if self.by is not None and (task.kind != "binary" or curve_of(goal) is not None):
            return f'by="{self.by}": thresholds by group are for goals of decisions of binary tasks'
        why = aim_objection(goal, task, self.share)
        if why is None and curve_of(goal) is None:
            why = not_totals(goal, task)
        return why

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        if _by_query(goal, task):
            check(goal, task)
            mix = float(self.cross_entropy)
            return query_program(goal, task, sharpness=self.sharpness, cross_entropy=mix)
        ready(self, goal, task)
        aim = aim_of(goal, task, self.points, self.share)
        groups = aim.goal.columns or ((self.by,) if self.by else ())
        task = _with_groups(task, groups)
        lowered = Lowered(aim.goal, Cells(task))
        tables, side, _ = lowered.cells.shape
        if task.kind == "multiclass":
            moving: Moving = Shifts(tables, side, self.sharpness)
        else:
            moving = Thresholds(_slots(lowered.cells, self.by), aim.count, self.sharpness)
        return ImplicitProgram(lowered, moving, aim, self)

    def recover(self, program: StreamProgram, totals: Any, multipliers: Any) -> Recovered:
        if not isinstance(program, ImplicitProgram):
            raise KindError("thresholds by query are the batch's own, and none are kept")
        return program.recovered(totals.double().cpu().numpy())


class ImplicitProgram(GoalProgram):
    """Prices at soft totals, with the multipliers that keep what is held."""

    settles = True
    reader: Moving

    def __init__(self, lowered: Lowered, moving: Moving, aim: Aim, method: Implicit) -> None:
        super().__init__(lowered, moving, ())
        self.aim, self.method, self.mix = aim, method, float(method.cross_entropy)
        self.shape = (moving.count, moving.width)
        self._several = moving.slots > 1
        self._guard = GUARD * moving.sharpness
        self._step = 1 / moving.sharpness
        m = len(lowered.constraints)
        held = torch.ones(m) if aim.levels else torch.zeros(m)
        self.register_buffer("binds", held)
        self.register_buffer("broken", torch.zeros(m))
        self.register_buffer("corrected", torch.zeros(()))
        self.register_buffer("levels", torch.tensor(aim.levels, dtype=torch.float64), False)
        size = pool_size(_tail(aim)) if method.pool is None else method.pool
        self.pool = Pool(size, lowered.cells.side if isinstance(moving, Shifts) else 0)
        self._last: Any = None  #: outputs of the last batch and how thresholds hang on them

    # --- thresholds ------------------------------------------------------------------------------

    def settle(self, rows: Batch, step: Tensor, exchange: Exchange | None) -> None:
        if self.method.correction == "soft":
            return self._softly(rows, exchange)
        own = rows_of(rows)
        pooled = len(own.weight) < self.pool.size
        if self.pool.size:
            self.pool.push(own)
        due = step % self.method.every == 0
        if not torch.compiler.is_compiling() and not bool(due):
            return None
        self._correct(self.pool.newest(self.pool.size) if pooled else own, due, exchange)
        return None

    def refresh(self, rows: Batch, exchange: Exchange | None) -> None:
        """Thresholds anew from all of these rows, which also fill the pool."""
        own = rows_of(rows)
        if self.pool.size:
            self.pool.push(own)
        if self.method.correction == "exact":
            self._correct(own, torch.ones((), dtype=torch.bool, device=own.weight.device), exchange)

    def _correct(self, rows: Rows, due: Tensor, exchange: Exchange | None) -> None:
        known = self.reader.thresholds
        if self.aim.levels:
            new = self._at_levels(rows, exchange)[:, None]
            binds, broken = self.binds, self.broken
        else:
            new, binds, broken = self._best(rows, exchange)
        keep = self.method.smooth * self.corrected
        new = keep * known + (1 - keep) * new.to(known)
        good = due & new.isfinite().all()
        for old, now in ((known, new), (self.binds, binds), (self.broken, broken)):
            old.copy_(torch.where(good, now.to(old), old))
        self.corrected.copy_(torch.where(good, 1.0, self.corrected))

    def _at_levels(self, rows: Rows, exchange: Exchange | None) -> Tensor:
        aim, (scores, place, weight) = self.aim, rows
        if aim.condition != "all":
            weight = weight * (place % 2 == int(aim.condition == "positive"))
        mass = weight.double().sum()
        weight = weight.double()
        if exchange is not None:
            mass = exchange.summed(mass)
            end = min(aim.levels) if aim.at_least else max(aim.levels)
            scores, weight = exchange.rows(*tail(scores, weight, mass, end, aim.at_least))
        found = level_thresholds(
            scores.double(), weight, mass, self.levels, aim.at_least, self._step
        )
        return torch.where(mass > 0, found, self.reader.thresholds[:, 0])

    def _best(self, rows: Rows, exchange: Exchange | None) -> tuple[Tensor, Tensor, Tensor]:
        if exchange is not None:
            rows = Rows(*exchange.rows(*rows))
        if not self._several:
            found = best_threshold(self.lowered, *rows, self._step)
            return found.threshold.view(1, 1), found.binds, found.broken
        if torch.compiler.is_compiling():
            raise KindError("several thresholds are searched for on the host: do not compile this loss")
        there = rows.weight > 0
        scores, place, weight = as_arrays(*(x[there] for x in rows))
        if not len(weight):
            return self.reader.thresholds, self.binds, self.broken
        if isinstance(self.reader, Thresholds):
            slot = np.repeat(self.reader.slot, 2)
            found = search_slots(self.lowered, slot, scores, place, weight, self._step)
        else:
            start = self.reader.thresholds[0].cpu().numpy()
            found = search_shifts(self.lowered, scores, place, weight, start, self._step)
        like = self.reader.thresholds
        lam, binds, broken = (torch.as_tensor(x, device=like.device) for x in found)
        return lam.view(1, -1), binds, broken

    def _softly(self, rows: Batch, exchange: Exchange | None) -> None:
        if exchange is not None or torch.compiler.is_compiling():
            raise KindError('correction="soft" solves on one process, uncompiled; take "exact"')
        if self.aim.levels:
            self.reader.thresholds.copy_(soft_levels(self.reader, self.aim, rows)[:, None])
            return
        own = rows_of(rows)
        self._correct(own, torch.ones((), dtype=torch.bool, device=own.weight.device), None)
        soft_point(self, rows)

    @property
    def urgent(self) -> np.ndarray:
        """(m,) multipliers of constraints that hold at no threshold."""
        return URGENT * self.broken.double().cpu().numpy()

    def follow(self, outputs: Tensor) -> None:
        """Move one threshold by ⟨∇h, Δs⟩: the last batch's outputs after the optimiser's step."""
        if self._last is None or self._several:
            return
        before, how = self._last
        moved = (outputs.detach().reshape(before.shape) - before).to(how.dtype)
        self.reader.thresholds.add_((how @ moved)[:, None])
        self._last = None

    # --- the program -----------------------------------------------------------------------------

    def read_point(self, totals: Any) -> tuple[Any, Any, Any, Any]:
        """At totals per unit of mass: values (T, 1 + m), ∂f/∂C, ∂g/∂C (m of them), multipliers."""
        moving, lowered = self.reader, self.lowered
        cells = totals[:, : moving.cells]
        values, memory = lowered.read(cells)
        one = 0 * values
        weights = _one(one, 0) / len(values)
        F = lowered.prices(cells, memory, weights)
        m = values.shape[1] - 1
        G = [lowered.prices(cells, memory, _one(one, 1 + k)) for k in range(m)]
        if not m:
            return values, F, G, values[:, :0]
        down = moving.slopes(totals, F)  # (T, L)
        held = [moving.slopes(totals, g) for g in G]
        if self.aim.levels:
            return values, F, G, ratio(down, held[0], self._guard)
        xp = np if isinstance(values, np.ndarray) else torch
        on = (self.binds.numpy() if xp is np else self.binds.to(values)) * 1.0
        off = self.urgent if xp is np else URGENT * self.broken.to(values)
        equal = lowered.equal_of(values)
        mu = multipliers(down[0], xp.stack([h[0] for h in held]), on, equal, self._guard)
        return values, F, G, (mu + off)[None]

    def price(self, totals: Any, multipliers: Any) -> Priced:
        values, F, G, mu = self.read_point(totals)
        prices = F
        for k, g in enumerate(G):
            prices = prices + mu[:, k : k + 1] * g
        value = whole(values[:, 0]) / len(values) + self.lowered.offset
        full = totals * 0.0
        full[:, : self.reader.cells] = -prices
        if self.method.regulariser and len(G) == 1 and isinstance(self.reader, Thresholds):
            full[:, self.reader.dense] = self._apart(totals, G[0])
        return Priced(value, multipliers, full)

    def _apart(self, totals: Any, held: Any) -> Any:
        """−ρ ∂(∂g/∂λ)² of a unit of each density, (T, places), thresholds held."""
        table = held.reshape(len(held), -1, 2)
        tilt = table[:, :, 0] - table[:, :, 1]  # ∂g/∂λ = Σ tilt · density
        slope = self.reader.slopes(totals, held)[:, :1]
        return -2 * self.method.regulariser * slope * tilt / len(held)

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del step
        share = on * (1 - self.mix)
        plain = (1 - share) * scale / self.labels
        cells = prices[:, : self.reader.cells]
        slope = self.reader.pull(rows, memory, cells, -share * scale, plain)
        if self.method.regulariser and isinstance(self.reader, Thresholds):
            dense = prices[:, self.reader.dense]
            slope = slope + self.reader.pull_dense(rows, memory, dense, -share * scale)
        return slope

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self.mix)
        return share * priced.value + (1 - share) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        del violations, share
        return multipliers

    def whole(self, totals: Any) -> Any:
        return whole(totals[0, : self.reader.cells]) / self.labels

    def _actual(self, totals: Any) -> Any:
        return super()._actual(totals[:, : self.reader.cells])

    def shown(self, totals: Tensor) -> dict[str, Any]:
        """The thresholds, and the fewest rows under the kernel of one."""
        thresholds = self.reader.thresholds
        where = thresholds.flatten().tolist()
        return {
            "threshold": where[0] if len(where) == 1 else where,
            "kernel": float(self.reader.kernel(totals.double()).min()),
        }

    def recovered(self, totals: np.ndarray) -> Recovered:
        """Objective, what is held and the thresholds, on soft totals, in the user's units."""
        values, _, _, mu = self.read_point(totals)
        lowered = self.lowered
        value, *excess = lowered.stated(totals[:, : self.reader.cells])
        if self.aim.levels:
            excess = [excess[0] - (1 - 2 * self.aim.at_least) * float(np.mean(self.aim.levels))]
        rows = zip(lowered.constraints, excess, np.asarray(mu).mean(0).tolist(), strict=True)
        where = tuple(self.reader.thresholds.flatten().tolist())
        standing = tuple(Standing(*row) for row in rows)
        return Recovered(-lowered.goal.sign * value, standing, where)


def _one(like: Any, column: int) -> Any:
    """Zeros like an array, with ones in one column."""
    made = like.copy() if isinstance(like, np.ndarray) else like.clone()
    made[:, column] = 1.0
    return made


def _by_query(goal: Goal, task: Task) -> bool:
    return task.kind == "ranking" or getattr(curve_of(goal), "by", None) == "query"


def _with_groups(task: Task, names: Any) -> Task:
    """The task with the group columns that count, and no others."""
    kept = {name: values for name, values in task.groups if name in names}
    return Task(task.kind, task.positive, task.classes, task.score, groups=kept, unknown=task.unknown)  # type: ignore[arg-type]


def _slots(cells: Cells, by: str | None) -> tuple[int, ...]:
    """Of each table, its threshold: its group's, its label's, or the one there is."""
    if by is None:
        return tuple(t % cells.labels for t in range(cells.shape[0]))
    at = [name for name, _ in cells.task.groups].index(by)
    values = dict(cells.task.groups)[by]
    return tuple(values.index(group[at]) for group in cells.groups)


def _tail(aim: Aim) -> float:
    """The least share of rows beyond a threshold, as far as the goal tells."""
    if aim.levels:
        return min(min(level, 1 - level) for level in aim.levels)
    return 0.01


def _check_whole(name: str, x: Any, least: int) -> None:
    if not is_real(x) or x != int(x) or x < least:
        raise KindError(f"{name}={x!r}: a whole number, {least} or more")

