"""Implicit: thresholds as functions of the scores, by the implicit function theorem.

    minimise  f(s, h(s)),     h(s): the thresholds λ at which g(s, λ) = 0,

f and g read on soft decisions σ(κ (s − λ)). The gradient needs no h: with the prices F = ∂f/∂C and
G = ∂g/∂C of cells, and μ from :mod:`setpoint.methods.implicit.implicit`,

    d f(s, h(s)) / ds_i = Σ_t (F + μ G)_t[class of i] · κ m (1 − m) at s_i − λ_t .

It sums to zero over rows: moving every score alike changes nothing, since the thresholds follow.
Four sums a threshold (two cells, two densities) and the two classes' masses determine it, and they
add up over batches and processes. λ itself is corrected on unrelaxed rates
(:mod:`setpoint.methods.implicit.level_thresholds`), so that it is the operating point the goal
speaks of.

References
----------
Kumar, Narasimhan, Cotter, Implicit Rate-Constrained Optimization of Non-decomposable Objectives,
ICML 2021. Its inequalities (§6.1) have a slack that is stepped; here the slack is solved for: the
threshold is the best that keeps every constraint, and only the one that stops it has a multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import lsq_linear
from torch import Tensor

from setpoint._core.arrays import total
from setpoint._core.errors import KindError
from setpoint._core.options import choice, number, whole
from setpoint._core.words import listing
from setpoint.expressions import AtK
from setpoint.goals import Goal, Task, check
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.goal_program import MixedProgram
from setpoint.methods.implicit.level_thresholds import URGENT
from setpoint.methods.implicit.moving_thresholds import Moving, Shifts, Thresholds
from setpoint.methods.implicit.query_ranking import (
    CORRECTIONS,
    query_objection,
    query_program,
    query_recovered,
)
from setpoint.methods.implicit.soft_solution import soft_levels, soft_point
from setpoint.methods.implicit.threshold_tracker import ThresholdTracker
from setpoint.methods.method import GoalStanding, Method, Recovered, not_totals, ready
from setpoint.methods.rate_targets import (
    Aim,
    aim_objection,
    aim_of,
    area_of,
    curve_of,
    extreme_point,
    partial_curve,
)
from setpoint.methods.training_hints import FitSize, Phase, PortfolioPlace, Start, TrainingHints
from setpoint.programs import Exchange, Priced, StreamProgram, TracksThresholds

# Balance: the price of a rate that is kept, where the thresholds are functions of the scores.
#
# With thresholds λ = h(s) that keep g(s, λ) = 0, the implicit function theorem gives
#
#     d/ds f(s, h(s)) = ∂f/∂s + Σₖ μₖ ∂gₖ/∂s,        (∂g/∂λ)ᵀ μ = −∂f/∂λ.
#
# One threshold for each constraint, each in one of them only: μ is a ratio, −∂f/∂λ / ∂g/∂λ. Coupled
# constraints take a small solve; with fewer constraints than thresholds, λ being the best that keep
# them, the same equation holds (the envelope theorem), and inequalities have μ >= 0.
#
# References
# ----------
# Kumar, Narasimhan, Cotter, Implicit Rate-Constrained Optimization of Non-decomposable Objectives,
# ICML 2021 (diagonal constraints).


GUARD = 1e-6  #: least slope of a constrained rate, per unit of sharpness
MOST = 100.0  #: no multiplier of an inequality grows beyond


def ratio(objective: Any, constraint: Any, guard: float) -> Any:
    """−objective / constraint, the divisor kept at least ``guard`` from 0 on its own side."""
    if isinstance(constraint, np.ndarray):
        size = np.maximum(np.abs(constraint), guard)
        return -objective / np.where(constraint < 0, -size, size)
    size = constraint.abs().clamp(min=guard)
    return -objective / torch.where(constraint < 0, -size, size)


def multipliers(objective: Any, slopes: Any, active: Any, equal: Any, guard: float) -> Any:
    """μ (m,) from ∂f/∂λ (L,) and ∂g/∂λ (m, L); 0 where a constraint is not active.

    Parameters
    ----------
    objective, slopes : numpy.ndarray or torch.Tensor
    active, equal : like them
        (m,) 1 where a constraint binds, and where it is an equation.
    guard : float
        Slopes shorter than this count as this long.
    """
    if isinstance(slopes, np.ndarray):
        if not active.any():
            return 0 * active
        if slopes.shape[0] == 1 == slopes.shape[1]:
            mu = ratio(objective, slopes[:, 0], guard)
        else:
            mu = np.zeros(len(active))
            rows = np.flatnonzero(active)
            low = np.where(equal[rows] > 0, -MOST, 0.0)
            if np.abs(slopes[rows]).max() > guard:
                solved = lsq_linear(slopes[rows].T, -objective, (low, MOST))
                mu[rows] = solved.x
    else:
        on = active[:, None] * slopes
        if slopes.shape[0] == 1 == slopes.shape[1]:
            mu = ratio(objective, slopes[:, 0], guard)
        else:
            mu = torch.linalg.pinv(on.T) @ -objective
    return mu.clip(equal * -MOST, 0 * mu + MOST) * active


# The program of the implicit method: soft totals, priced at thresholds that keep their levels.


class ImplicitProgram(TracksThresholds, MixedProgram):
    """Prices at soft totals, with the multipliers that keep what is held.

    Parameters
    ----------
    goal : Goal
        As it was stated.
    lowered : Lowered
    moving : Moving
        Fills the cells, at thresholds that the tracker moves.
    aim : Aim
    method : Implicit
    """

    reader: Moving

    def __init__(
        self, goal: Goal, lowered: Lowered, moving: Moving, aim: Aim, method: Implicit
    ) -> None:
        super().__init__(lowered, moving, (), method.cross_entropy)
        self.goal = goal
        self.aim = aim
        self.method = method
        self.refreshes = method.correction == "exact"
        self.needs_whole_batch = method.correction == "soft" or method.pool == 0
        self.shape = (moving.count, moving.width)
        self.kappa = moving.sharpness
        self.guard = GUARD * moving.sharpness
        # the attribute's name is a key in every loss that was saved: it stays
        self.keeper = ThresholdTracker(lowered, moving, aim, method)
        self.steepness = float(moving.sharpness)
        self.follows = method.follow and len(aim.levels) > 0
        self._apart = bool(method.regulariser) and isinstance(moving, Thresholds)
        self._last: Any = None  #: logits of the last batch, and the densities of what is held

    # --- thresholds ------------------------------------------------------------------------------

    def settle(self, rows: Batch, step: Tensor, exchange: Exchange | None, alone: bool) -> None:
        if self.method.correction == "exact":
            self.keeper.settle(rows, step, exchange, alone)
            return
        self.keeper.refuse_soft(exchange)
        if self.aim.levels:
            self.reader.thresholds.copy_(soft_levels(self.reader, self.aim, rows)[:, None])
        else:
            self.keeper.refresh(rows, exchange)
            soft_point(self, rows)

    def refresh(self, rows: Batch, exchange: Exchange | None) -> None:
        if self.method.correction == "exact":
            self.keeper.refresh(rows, exchange)

    def follow(self, outputs: Tensor, exchange: Exchange | None) -> None:
        if self._last is None:
            return
        before, density = self._last
        moved = density @ (outputs.detach().reshape(before.shape) - before)
        both = torch.stack([moved, density.sum(1)])
        moved, whole_ = both if exchange is None else exchange.summed(both)
        step = moved / whole_.clamp(min=self.guard)
        self.reader.thresholds.add_(step.double()[:, None])
        self._last = None

    @property
    def urgent(self) -> np.ndarray:
        """(m,) multipliers of constraints that hold at no threshold."""
        return URGENT * self.keeper.broken.double().cpu().numpy()

    # --- the program -----------------------------------------------------------------------------

    def read_point(self, totals: Any) -> tuple[Any, Any, list[Any], Any]:
        """At totals per unit of mass: values (T, 1 + m), ∂f/∂C, ∂g/∂C (m of them), multipliers."""
        moving, lowered = self.reader, self.lowered
        cells = totals[:, : moving.cells]
        values, memory = lowered.read(cells)
        F = lowered.prices(cells, memory, _one(values, 0) / len(values))
        G = [lowered.prices(cells, memory, _one(values, k)) for k in range(1, values.shape[1])]
        if not G:
            return values, F, G, values[:, :0]
        down = moving.slopes(totals, F)  # (T, L)
        slopes = [moving.slopes(totals, g) for g in G]
        if self.aim.levels:
            return values, F, G, ratio(down, slopes[0], self.guard)
        if isinstance(values, np.ndarray):
            on, off, stack = self.keeper.binds.double().numpy(), self.urgent, np.stack
        else:
            on, off = (x.to(values) for x in (self.keeper.binds, URGENT * self.keeper.broken))
            stack = torch.stack
        equal = lowered.equal_of(values)
        mu = multipliers(down[0], stack([h[0] for h in slopes]), on, equal, self.guard)
        return values, F, G, (mu + off)[None]

    def price(self, totals: Any, multipliers: Any) -> Priced:
        values, F, G, mu = self.read_point(totals)
        prices = F
        for k, g in enumerate(G):
            prices = prices + mu[:, k : k + 1] * g
        value = total(values[:, 0]) / len(values) + self.lowered.offset
        full, worth = totals * 0.0, self.reader.packed(-prices)
        full[:, : worth.shape[1]] = worth
        if self._apart and len(G) == 1:
            full[:, self.reader.cells :] = self._spread_out(totals, G[0])
        return Priced(value, multipliers, full)

    def _spread_out(self, totals: Any, prices: Any) -> Any:
        """−ρ ∂(∂g/∂λ)² of a unit of each density, (T, places), thresholds held."""
        tilt = -self.reader.packed(prices)  # ∂g/∂λ = κ Σ tilt · density
        slope = self.reader.slopes(totals, prices)[:, :1]
        rate = 2 * self.method.regulariser * self.reader.sharpness / len(prices)
        return -rate * slope * tilt

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del step
        share, plain = self.shares(on, scale)
        slope = self.reader.pull(rows, memory, prices, -share * scale, plain)
        if self.follows:
            self._last = rows.logits.clone(), memory[1] * self.keeper.counted(rows)
        if self._apart and isinstance(self.reader, Thresholds):
            dense = prices[:, self.reader.cells :]
            slope = slope + self.reader.pull_dense(rows, memory, dense, -share * scale)
        return slope

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        del violations, share
        return multipliers

    def whole(self, totals: Any) -> Any:
        return total(totals[0, : self.reader.cells]) / self.labels

    def _actual(self, totals: Any) -> Any:
        return super()._actual(totals[:, : self.reader.cells])

    def shown(self) -> dict[str, Any]:
        """The thresholds, and the fewest rows of a batch under the kernel of one."""
        where = self.reader.thresholds.flatten().tolist()
        kernel = float(self.keeper.kernel.min())
        return {"threshold": where[0] if len(where) == 1 else where, "kernel": kernel}

    def recovered(self, totals: np.ndarray) -> Recovered:
        """Objective, what is held and the thresholds, on soft totals, in the user's units."""
        *_, mu = self.read_point(totals)
        lowered = self.lowered
        value, *excess = lowered.stated(totals[:, : self.reader.cells])
        if self.aim.levels:
            excess = [excess[0] - (1 - 2 * self.aim.at_least) * float(np.mean(self.aim.levels))]
        names = [self.aim.text] if self.aim.levels else lowered.constraints
        rows = zip(names, excess, np.asarray(mu).mean(0).tolist(), strict=True)
        where = tuple(self.reader.thresholds.flatten().tolist())
        standing = tuple(GoalStanding(*row) for row in rows)
        slope, start = area_of(self.goal)
        return Recovered(start - slope * lowered.goal.sign * value, standing, where)


def _one(like: Any, column: int) -> Any:
    """Zeros like an array, with ones in one column."""
    unit = 0 * like
    unit[:, column] = 1.0
    return unit


#: options that thresholds by query have
QUERIED = ("sharpness", "correction", "cross_entropy")


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
    follow : bool
        Whether thresholds of levels also move between corrections, by ⟨∇h, Δs⟩: whoever trains
        calls ``loss.follow(outputs)`` with the last batch's outputs after the optimiser's step.
    cross_entropy : float
        Share of cross-entropy mixed in, in [0, 1].
    regulariser : float
        ρ of ρ (∂g/∂λ)², λ held, which keeps scores away from the thresholds of levels, or from the
        one threshold of one constraint. The value of the loss leaves it out.
    by : str, optional
        A group column: one threshold for each of its groups, which then have to be known when a
        decision is made. Without, one threshold for all.
    share : float, optional
        k/n of goals on the first k of n rows.

    Notes
    -----
    Excess in ``loss.recover()`` is that of the soft rates; thresholds keep the exact ones.

    Examples
    --------
    >>> import torch
    >>> from setpoint import GoalLoss
    >>> loss = GoalLoss("minimize fnr_at_fpr(0.25)", Implicit(), memory=0, warmup=0)
    >>> scores = torch.tensor([0.0, 1.0, 2.0, 3.0, 2.5], requires_grad=True)
    >>> loss(scores, torch.tensor([0, 0, 0, 0, 1])).backward()
    >>> loss.recover().thresholds  # one of four negatives lies above
    (2.5,)
    """

    sharpness: float = 5.0
    points: int = 10
    correction: str = "exact"
    every: int = 10
    pool: int | None = None
    smooth: float = 0.0
    follow: bool = False
    cross_entropy: float = 0.0
    regulariser: float = 0.0
    by: str | None = None
    share: float | None = None

    name = "implicit"
    summary = "operating points and curves at thresholds that follow the scores"
    hints = TrainingHints(start=Start.CROSS_ENTROPY, step_cost=2.0)

    def __post_init__(self) -> None:
        number("sharpness", self.sharpness, 0, open_low=True, error=KindError)
        whole("points", self.points, 1, floats=True, error=KindError)
        whole("every", self.every, 1, floats=True, error=KindError)
        if self.pool is not None:
            whole("pool", self.pool, 0, floats=True, error=KindError)
        number("cross_entropy", self.cross_entropy, 0, 1, error=KindError)
        number("smooth", self.smooth, 0, 1, open_high=True, error=KindError)
        number("regulariser", self.regulariser, 0, error=KindError)
        choice("correction", self.correction, CORRECTIONS)
        if self.share is not None:
            number("share", self.share, 0, 1, open_low=True, open_high=True, error=KindError)
        if self.by is not None and not isinstance(self.by, str):
            raise KindError(f"by={self.by!r}: the name of a group column")

    def objection(self, goal: Goal, task: Task) -> str | None:
        if _by_query(goal, task):
            return query_objection(goal, task) or self._idle("by query", QUERIED)
        if self.by is not None and task.group_values(self.by) is None:
            declared = f'Task.{task.kind}(groups={{"{self.by}": …}})'
            return f'by="{self.by}": declare its values, {declared}'
        if self.by is not None and (task.kind != "binary" or curve_of(goal) is not None):
            return f'by="{self.by}": thresholds by group are for goals of decisions of binary tasks'
        why = aim_objection(goal, task, self.share)
        if why is None and curve_of(goal) is None:
            why = not_totals(goal, task)
            plain = task.kind == "binary" and self.by is None and len(goal.lowered.constraints) == 1
            if why is None and self.regulariser and not plain:
                why = "regulariser is for one threshold and one constraint; leave it at 0"
        return why

    def state_options(self) -> dict[str, Any]:
        return {"points": self.points, "by": self.by, "share": self.share}

    def _idle(self, what: str, used: tuple[str, ...]) -> str | None:
        """A sentence about options that would do nothing."""
        changed = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        idle = [name for name in changed if name not in used]
        return f"{listing(idle)}: thresholds {what} do not have it" if idle else None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        if _by_query(goal, task):
            check(goal, task)
            return query_program(
                goal,
                task,
                sharpness=self.sharpness,
                correction=self.correction,
                cross_entropy=float(self.cross_entropy),
            )
        ready(self, goal, task)
        aim = aim_of(goal, task, int(self.points), self.share, several=self.by is not None)
        counted = {*aim.goal.columns, self.by}
        task = replace(task, groups=tuple(pair for pair in task.groups if pair[0] in counted))
        lowered = Lowered(aim.goal, Cells(task))
        tables, side, _ = lowered.cells.shape
        if task.kind == "multiclass":
            moving: Moving = Shifts(tables, side, self.sharpness)
        else:
            moving = Thresholds(_slots(lowered.cells, self.by), aim.count, self.sharpness)
        return ImplicitProgram(goal, lowered, moving, aim, self)

    @property
    def threshold_group(self) -> str | None:
        return self.by

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        sized = self.sized(goal, size.tune_rows)
        return (Phase(method=sized, name=self.name, hints=self.hints),)

    def sized(self, goal: Goal, rows: int) -> Implicit:
        """The same with ``share`` of k in so many rows, where the goal is about the first k."""
        leaf = curve_of(goal)
        if not isinstance(leaf, AtK) or self.share is not None:
            return self
        return replace(self, share=min(leaf.k, rows - 0.5) / rows)

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace:
        return PortfolioPlace(method=self, reason=partial_curve(goal) or extreme_point(goal))

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        if not isinstance(program, ImplicitProgram):
            return query_recovered(totals)
        return program.recovered(totals.double().cpu().numpy())


def _by_query(goal: Goal, task: Task) -> bool:
    return task.kind == "ranking" or getattr(curve_of(goal), "by", None) == "query"


def _slots(cells: Cells, by: str | None) -> tuple[int, ...]:
    """Of each table, its threshold: its group's, its label's, or the one there is."""
    if by is None:
        return tuple(t % cells.labels for t in range(cells.shape[0]))
    at = [name for name, _ in cells.task.groups].index(by)
    values = dict(cells.task.groups)[by]
    return tuple(values.index(group[at]) for group in cells.groups)
