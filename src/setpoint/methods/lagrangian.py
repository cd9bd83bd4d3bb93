"""Lagrangian: soft cells for the weights, exact cells for the multipliers.

    weights descend       w₀ F(C̃) + Σⱼ [wⱼ + ρ vⱼ(C)]₊ ṽⱼ,        ṽ = v(C̃),  C̃ soft cells
    multipliers ascend    on v(C),                                 C exact cells

The model follows a slope, so it sees soft decisions; what it is charged for a constraint follows
the decisions as they are, so a constraint is held by decisions and not by a surrogate of them
(*proxy* constraints). ρ adds a charge in proportion to the violation, which damps the swings that
a multiplier alone makes. [·]₊ is left out for an equation.

A curve is T operating points: the mean of TPR over thresholds θₜ with FPRₜ <= bₜ, or of precision
with recallₜ >= rₜ, b and r the midpoints of T bins. Each θₜ is a variable of its own and descends
the same Lagrangian; so does the one threshold of an operating point such as recall_at_precision.
Everywhere else the decision is logit >= 0, and the model's own bias is the threshold.

References
----------
Cotter et al., Optimization with non-differentiable constraints with applications to fairness,
recall, churn, and other goals, JMLR 2019. Narasimhan, Cotter, Gupta, Optimizing generalized rate
metrics with three players, NeurIPS 2019 (curves as operating points).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import assign, cast, inverse, is_tensor, join, square_root, where
from setpoint._core.errors import KindError
from setpoint._core.options import choice, number, whole
from setpoint._core.words import listing
from setpoint.expressions import Auroc, Best, PrecisionOverRecall
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import EVERYTHING
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.confusion.soft_decisions import (
    HardClasses,
    SoftClasses,
    by_class,
    table_cells,
)
from setpoint.methods.goal_program import MixedProgram
from setpoint.methods.method import GoalStanding, Method, Recovered, not_totals, ready
from setpoint.methods.rate_targets import TWO_WAY, Aim, aim_of, area_of, curve_of, two_way
from setpoint.methods.soft_set import SOFT_RATE, SOFT_WARMUP, warmed_up
from setpoint.methods.training_hints import FitSize, Phase, PortfolioPlace, TrainingHints
from setpoint.programs import Additive, Dual, Priced, StreamProgram, TracksThresholds, dual
from setpoint.programs.duals import one_sided
from setpoint.surrogates import SURROGATES, Constant, Hinge, Linear, Surrogate, surrogate
from setpoint.surrogates.sigmoid import logistic, logistic_slope

# How a Lagrangian program stands, in the user's units.
#
# A constraint N/D >= b is trained on as v = (b D − N)/D*, D* what perfect decisions would give,
# so a multiplier λ of v is λ D/D* for each unit of b − N/D.


TINY = 1e-9  #: an excess this small says nothing about its unit


def recovered(program: Any, totals: Tensor, state: Tensor) -> Recovered:
    """Objective and excess at the exact totals, per unit of mass, and the multipliers.

    Parameters
    ----------
    program : LagrangianProgram
    totals : torch.Tensor
    state : torch.Tensor
        Of the dual.
    """
    lowered, points = program.lowered, program.points
    cells = totals.double().cpu().numpy()[points : 2 * points]
    paid = program.dual.multipliers(state.double().cpu().numpy(), program.equal) * program.unit
    if program.aim is None:
        value, *excess = lowered.stated(cells)
        rows = zip(lowered.constraints, excess, paid * _units(lowered, cells), strict=True)
        value = -lowered.goal.sign * value
    else:
        each = np.array([lowered.stated(row[None]) for row in cells])  # (T, 2)
        slope, start = area_of(program.goal)
        value = start - slope * each[:, 0].mean()
        constraint = lowered.goal.constraints[0]
        side = f"{constraint.left} {constraint.op}"
        texts = [f"{side} {level:.6g}" for level in program.aim.levels]
        rows = zip(texts, each[:, 1] + program.host_levels, paid * slope / points, strict=True)
    standings = tuple(GoalStanding(text, float(x), float(y)) for text, x, y in rows)
    at = program.reader.thresholds.tolist() if program.reader.moves else ()
    return Recovered(float(value), standings, tuple(at))


def _units(lowered: Lowered, cells: np.ndarray) -> np.ndarray:
    """By what v grows with each unit of excess, D/D*; 1 where it is the excess itself."""
    units = np.ones(len(lowered.constraints))
    # where a constraint holds with equality both are 0: their ratio is read beside it
    for place in (cells + 1e-6, cells):
        v, excess = lowered.read(place)[0][0, 1:], np.array(lowered.stated(place)[1:])
        told_apart = np.abs(excess) > TINY
        units[told_apart] = v[told_apart] / excess[told_apart]
    return units


# Two readings of one batch: soft cells for the weights, exact cells for the multipliers.
#
#     soft   H(z − θ), the logistic function of k (z − θ) or a surrogate of the step on
#     probabilities
#     exact  1{z >= θ}
#     slope  H′(z − θ): by how much the soft cells fall as θ rises
#
# Both are sums over rows, so both are kept as running totals and added up over processes.


class TwoSteps(nn.Module):
    """Cells of a binary or multilabel batch, soft and exact, at thresholds of the logit.

    Parameters
    ----------
    tables : int
        Number of 2 × 2 tables.
    surrogate : Surrogate or None
        H on probabilities, at ½; None is the logistic function of the logit.
    sharpness : float
        k of the logistic function.
    points : int
        Number of thresholds, all 0 to start with.
    moves : bool
        Whether thresholds are trained: then the slopes are summed too.
    """

    thresholds: Tensor

    def __init__(
        self, tables: int, surrogate: Surrogate | None, sharpness: float, points: int, moves: bool
    ) -> None:
        super().__init__()
        self.tables = tables
        self.surrogate = surrogate
        self.sharpness = sharpness
        self.points = points
        self.moves = moves
        self.count = points * (3 if moves else 2)  #: soft, exact and, if they move, slopes
        self.register_buffer("thresholds", torch.zeros(points), persistent=moves)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(count, cells) sums over the batch, and the slopes (N,) at each threshold."""
        del step
        z, at = batch.logits, self.thresholds
        apart = [z - at[t] for t in range(self.points)] if self.moves else [z]
        soft, slopes = zip(*(self._step(x) for x in apart), strict=True)
        exact = [cast(batch.of(x) >= 0, batch.z) for x in apart]
        soft, slopes = ([batch.of(x) for x in several] for several in (soft, slopes))
        every = [*soft, *exact, *(slopes if self.moves else ())]
        return table_cells(batch, every, self.tables), slopes

    def _step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """H and H′ at distances from the threshold."""
        if self.surrogate is None:
            h = logistic(x, self.sharpness)
            return h, logistic_slope(h, self.sharpness)
        p = torch.sigmoid(x)
        return self.surrogate.value(p), self.surrogate.derivative(p) * p * (1 - p)

    def pull(self, batch: Batch, slopes: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · Σ prices · ∂(soft cells)/∂logits + plain · ∂cross-entropy/∂logits, weighed."""
        worth = prices[: self.points].reshape(self.points, -1, 2)
        worth = (worth[:, :, 1] - worth[:, :, 0]) * share  # (T, tables · 2)
        whole = by_class(batch, worth[0], slopes[0])
        for amounts, slope in zip(worth[1:], slopes[1:], strict=True):
            whole += by_class(batch, amounts, slope)
        whole += (batch.p - batch.y) * plain
        return batch.gradient(whole)


class TwoClasses(nn.Module):
    """Cells of a multiclass batch, soft and exact.

    Parameters
    ----------
    tables, side : int
        Number of tables and of classes.
    sharpness : float
        k: memberships are softmax(k z).
    """

    count, points, moves = 2, 1, False

    def __init__(self, tables: int, side: int, sharpness: float) -> None:
        super().__init__()
        self.soft = SoftClasses(tables, side, "softmax", Linear(), Constant(1 / sharpness))
        self.exact = HardClasses(tables, side)

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(2, cells) sums over the batch, and what ``pull`` needs."""
        soft, memory = self.soft.read(batch, step)
        return join([soft, self.exact.read(batch, step)[0]], 0), memory

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · prices · ∂(soft cells)/∂logits + plain · ∂cross-entropy/∂logits, weighed."""
        return self.soft.pull(batch, memory, prices[:1], share, plain)


PINCH = 1e-3  #: share of perfect decisions among those that multipliers are moved by
RATES = {"additive": 1.0, "external": 2.0, "swap": 5.0}
STEP = 0.5  #: first step of a trained threshold, in units of the logit


@dataclass(frozen=True)
class Lagrangian(Method):
    """The goal's Lagrangian over soft decisions, its multipliers moved by exact ones.

    Parameters
    ----------
    dual : {"additive", "external", "swap"} or Dual
        How multipliers move; see :mod:`setpoint.programs.duals`.
    rate : float, optional
        η of the dual: by how much a violation of 1 moves a multiplier (the logarithm of a weight)
        while the running totals are renewed once. By default 1 for "additive", 2 for "external", 5
        for "swap", and three times that for a curve.
    augment : float
        ρ.
    radius : float
        The most that breaking a constraint by one unit can cost; of the additive dual.
    sharpness : float
        k: the soft decision is 1 / (1 + exp(−k z)) of the logit z, softmax(k z) of several classes.
    surrogate : str or Surrogate
        "logistic", of the logit; or a surrogate of the step on probabilities: "linear", "ramp",
        "sigmoid". Binary and multilabel.
    cross_entropy : float
        Share of cross-entropy mixed in, in [0, 1].
    points : int
        T, the operating points of a curve.
    """

    dual: str | Dual = "additive"
    rate: float | None = None
    augment: float = 1.0
    radius: float = 100.0
    sharpness: float = 5.0
    surrogate: str | Surrogate = "logistic"
    cross_entropy: float = 0.0
    points: int = 10

    name = "lagrangian"
    summary = "soft decisions for the weights, exact ones for the multipliers of the constraints"
    hints = TrainingHints(learning_rate=SOFT_RATE, warmup=SOFT_WARMUP, step_cost=2.0)

    def __post_init__(self) -> None:
        self.mover()  # or refuses
        number("augment", self.augment, 0, error=KindError)
        number("sharpness", self.sharpness, 0, open_low=True, error=KindError)
        number("cross_entropy", self.cross_entropy, 0, 1, error=KindError)
        whole("points", self.points, 1, floats=True, error=KindError)
        if isinstance(self.surrogate, str):
            choice("surrogate", self.surrogate, ("logistic", *SURROGATES))
        if self.surrogate != "logistic" and isinstance(surrogate(self.surrogate), Hinge):
            raise KindError(
                "surrogate=hinge exceeds 1 and is no membership; take logistic, linear, ramp "
                "or sigmoid"
            )

    def mover(self, curve: bool = False) -> Dual:
        """How multipliers move; those of a curve's many operating points are let move faster."""
        rate = self.rate
        if rate is None:
            usual = RATES.get(self.dual, 1.0) if isinstance(self.dual, str) else 1.0
            rate = usual * (3.0 if curve else 1.0)
        return dual(self.dual, rate, self.radius)

    def state_options(self) -> dict[str, Any]:
        return {"dual": type(self.mover()).__name__.lower(), "points": self.points}

    def objection(self, goal: Goal, task: Task) -> str | None:
        leaf = curve_of(goal)
        if not isinstance(leaf, Auroc | PrecisionOverRecall):
            return not_totals(goal, task)
        if two_way(leaf):
            return TWO_WAY.format(goal=goal)
        if task.kind != "binary":
            return f'"{goal}" is about the ranking of one class; a {task.kind} task has several'
        if goal.constraints or goal.sign < 0:
            return (
                f'"{goal}": the area under a curve judges a ranking; it is maximized, without '
                "constraints"
            )
        if leaf.where != EVERYTHING or leaf.label is not None or leaf.by is not None:
            return f'"{goal}" is taken over some of the rows; a ranking of all of them is trained'
        return None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        plain, cells = ready(self, goal, task), Cells(task)
        aim = None
        if curve_of(goal) is not None:
            aim = aim_of(goal, task, int(self.points), None)
        lowered = Lowered(plain if aim is None else aim.goal, cells)
        tables, side, _ = cells.shape
        if task.kind == "multiclass":
            return LagrangianProgram(lowered, TwoClasses(tables, side, self.sharpness), self, goal)
        step = None if self.surrogate == "logistic" else surrogate(self.surrogate).at(0.5)
        moves = aim is not None or (task.kind == "binary" and _is_point(goal))
        points = 1 if aim is None else aim.count
        reader = TwoSteps(tables, step, float(self.sharpness), points, moves)
        kind = TrainedThresholdsProgram if moves else LagrangianProgram
        return kind(lowered, reader, self, goal, aim)

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        return recovered(program, totals, multipliers)

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        return (Phase(method=self, name=self.name, hints=warmed_up(self.hints, goal, task)),)

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace:
        grouped = goal.columns if goal.constraints else ()
        reason = f"the goal speaks of {listing(grouped)}" if grouped else ""
        return PortfolioPlace(method=self, reason=reason)


class LagrangianProgram(MixedProgram):
    """Totals are (soft, exact) cells at each threshold.

    The state of the dual stands where other programs have their multipliers.
    """

    levels: Tensor

    def __init__(
        self, lowered: Lowered, reader: Any, method: Lagrangian, goal: Goal, aim: Aim | None = None
    ) -> None:
        equal = tuple(bool(x) for x in lowered.host.equal) * reader.points
        chosen = method.mover(aim is not None) if equal else Additive()
        super().__init__(lowered, reader, chosen.start(equal), method.cross_entropy)
        self.points = reader.points
        self.aim = aim
        self.goal = goal
        self.equal = equal
        self.dual = chosen
        # multipliers are those of a mean over points, weights those of its sum: they share 1
        self.unit = 1 if isinstance(chosen, Additive) else self.points
        self.judged = Lowered(lowered.goal, lowered.cells, clear=False)
        self._eye = np.eye(self.cells.side)
        self.register_buffer("eye", torch.eye(self.cells.side), False)
        self.augment = float(method.augment)
        self.steepness = float(method.sharpness) if method.surrogate == "logistic" else 2.0
        levels = np.zeros(len(self.equal))
        if aim is not None:  # v is −recall or fpr: the constraint is written with the bound 0
            levels = np.array(aim.levels) * (1 if aim.at_least else -1)
        self.host_levels = levels
        self.register_buffer("levels", torch.tensor(levels, dtype=torch.float64), False)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        points = self.points
        soft, exact = totals[:points], totals[points : 2 * points]
        values, memory = self.lowered.read(soft)  # (T, 1 + m)
        shift = self.levels.to(totals) if is_tensor(totals) else self.host_levels
        near = values[:, 1:].reshape(-1) + shift
        hard_violations = self.judged.read(self._pinched(exact))[0][:, 1:].reshape(-1) + shift
        top, paid = self.dual.weights(multipliers, self.equal)
        charged = paid
        if self.augment and self.equal:
            charged = one_sided(paid + self.augment * hard_violations, self.equal)
        charged = charged * self.unit
        weights = join([0 * values[:, :1] - top, -charged.reshape(points, -1)], 1) / points
        prices = self.lowered.prices(soft, memory, weights)
        value = (top * values[:, 0].sum() + (charged * near).sum()) / points
        value = value + top * self.lowered.offset
        return Priced(value, hard_violations, join([prices, 0 * totals[points:]], 0))

    def _pinched(self, cells: Any) -> Any:
        """Exact cells with a pinch of perfect decisions: a rate is never empty, whatever decided.

        Where nothing is decided a floor on precision would stand at 0 ≤ 0, neither held nor broken,
        and its multiplier would rest at what drove the decisions away.
        """
        table = cells.reshape(self.points, *self.cells.shape)
        right = table.sum(-1)[..., None] * (self.eye if is_tensor(cells) else self._eye)
        return ((1 - PINCH) * table + PINCH * right).reshape(self.points, -1)

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del step
        share, plain = self.shares(on, scale)
        return self._reader.pull(rows, memory, prices, -share * scale, plain)

    def dual_state(self, prices: Any) -> Any:
        return prices / self.unit if isinstance(self.dual, Additive) and not self.aim else None

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        return self.dual.step(multipliers, violations, share, self.equal)


class TrainedThresholdsProgram(TracksThresholds, LagrangianProgram):
    """The same with thresholds that descend the Lagrangian too; totals hold their slopes as well.

    Parameters are those of :class:`LagrangianProgram`.
    """

    squares: Tensor
    tilt: Tensor
    moved: Tensor

    def __init__(
        self, lowered: Lowered, reader: Any, method: Lagrangian, goal: Goal, aim: Aim | None = None
    ) -> None:
        super().__init__(lowered, reader, method, goal, aim)
        self.register_buffer("squares", torch.zeros(self.points))  # of the tilts so far
        self.register_buffer("tilt", torch.zeros(self.points))  # ∂L/∂θ at the running totals
        self.register_buffer("moved", torch.zeros((), dtype=torch.long))  # at which step

    def price(self, totals: Any, multipliers: Any) -> Priced:
        priced = super().price(totals, multipliers)
        if self.training:
            self._tilt(priced.prices[: self.points], totals[2 * self.points :])
        return priced

    def settle(self, rows: Batch, step: Tensor, exchange: Any, alone: bool) -> None:
        """Move the thresholds by one step of Adagrad; once a step, in however many parts it comes.

        The tilt is read at running totals of all processes, so each of them moves alike.
        """
        del exchange, alone
        small = rows.small
        due = 1.0 * (small(step) > small(self.moved))
        tilt = small(self.tilt) * due
        squares = small(self.squares) + tilt * tilt
        thresholds = small(self.reader.thresholds) - STEP * tilt * inverse(square_root(squares))
        for buffer, value in (
            (self.squares, squares),
            (self.reader.thresholds, thresholds),
            (self.moved, small(step)),
        ):
            assign(buffer, value)

    def _tilt(self, prices: Any, slopes: Any) -> None:
        """Note ∂L/∂θ = Σ (worth of deciding) · (how many a higher threshold no longer decides)."""
        worth, fall = (x.reshape(self.points, -1, 2) for x in (prices, slopes))
        tilt = ((worth[:, :, 1] - worth[:, :, 0]) * fall[:, :, 1]).sum(1)
        assign(self.tilt, where(tilt - tilt == 0, tilt, 0.0))


def _is_point(goal: Goal) -> bool:
    """Whether the objective is a metric at its best threshold."""
    body = unnamed(goal.objective)
    return isinstance(body, Best)
