"""Errors: regression goals on their own totals, the worst by multipliers over bins.

    loss = (1 − c) · [ F(C) + Σⱼ (max(0, λⱼ + κ vⱼ(C))² − λⱼ²) / 2κ ]  +  c · mean squared error

C are the sums Σ w, Σ w|e|, Σ w e² of each target bin and group; F and v are functions of them
(mae, mse, rmse, r2, balanced, worst, gap, …), so prices −∂L/∂C at running totals times the batch's
own ∂C/∂ŷ, which are sign(e) and 2e, are the gradient: nothing is relaxed. Constraints have
multipliers that are ascended on the same totals, λⱼ ← max(0, λⱼ + η vⱼ). A worst over bins b,
"minimise t subject to m_b <= t", has multipliers p_b >= 0 with Σ p_b = 1, moved by multiplicative
weights,

    p_b ← p_b · exp(η (m_b − Σ p m) / max |m|),  normalised,

instead of the maximum's own gradient, which sees one bin at a time and hops between them. Prices
are read at p_b exp(κ (m_b − Σ p m) / max |m|): the answer to what is worse at this moment, which
keeps the two players from circling, as κ vⱼ does for constraints (the augmented Lagrangian).

Units: everything is in the units of the targets. σ is the size of the targets' spread; where F
grows like errorsᵈ, mean squared error enters as σᵈ⁻² Σ w e² / Σ w, which is of F's size, and
violations are counted in units of their bound (of their own σᵈ where that is 0), so that targets of
scale 1e6 and 1e-6 are trained alike.

References
----------
Multiplicative weights: Freund, Schapire, Adaptive game playing using multiplicative weights, 1999.
The augmented Lagrangian of inequalities: Rockafellar, Mathematical Programming 5, 1973.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import KindError
from setpoint._core.options import number
from setpoint.expressions.rows.row_events import BIN
from setpoint.goals import Goal, Task
from setpoint.methods.method import GoalStanding, Method, Recovered, ready, undeclared
from setpoint.methods.regression.goal_over_errors import PRESS, ErrorGoal, apart
from setpoint.methods.regression.strata import (
    ABSOLUTE,
    FIRST,
    SECOND,
    SQUARED,
    SUMS,
    WEIGHT,
    ErrorRows,
    Strata,
    check_errors,
    sums,
    take_errors,
)
from setpoint.methods.training_hints import TrainingHints
from setpoint.programs import Priced, StreamProgram

DEAREST = 1e4  #: no multiplier grows beyond
NEAR = 0.1  #: violation, relative to the bound, beyond which a multiplier moves no faster
SHARE = 0.05  #: of a renewal of the totals, the most that one step moves multipliers by
STAYS = 0.01  #: weight that an adversary spreads over all bins, so that none is ever given up
RARE = 0.5  #: share of the batches without a row of a bin that is worth a word


@dataclass(frozen=True)
class Errors(Method):
    """Train a regression model on the goal's own formula over its errors.

    Parameters
    ----------
    rate : float
        How fast multipliers move while the running totals are renewed once: those of constraints
        by rate · violation, the weights of bins under a worst by exp(rate · excess).
    squared_error : float
        c, the share of mean squared error, in [0, 1].
    scale : float, optional
        σ, the size of the targets' spread. Measured from the running totals by default, for which
        the first call gives no gradient.
    centre : float
        Where the targets lie, about; keeps the digits of r2 where that is far from 0. By default
        the middle edge.
    """

    rate: float = 2.0
    squared_error: float = 0.0
    scale: float | None = None
    centre: float | None = None

    name = "errors"
    summary = "regression goals on their own errors, the worst bin by multiplicative weights"
    hints = TrainingHints(learning_rate=3e-3, real_targets=True)

    def __post_init__(self) -> None:
        number("rate", self.rate, 0, error=KindError)
        number("squared_error", self.squared_error, 0, 1, error=KindError)
        if self.scale is not None:
            number("scale", self.scale, 0, open_low=True, error=KindError)
        if self.centre is not None:
            number("centre", self.centre, error=KindError)

    def state_options(self) -> dict[str, Any]:
        return {"centre": self.centre}

    def objection(self, goal: Goal, task: Task) -> str | None:
        if task.kind != "regression":
            return (
                f'method="errors" trains real predictions, and this task is {task.kind}; say '
                "task=Task.regression(…), or take soft-set or costs"
            )
        why = undeclared(goal, task)
        if why is not None:
            return why
        parts = [goal.objective, *(side for c in goal.constraints for side in c.sides)]
        over_bins = [n for p in parts for n in p.walk() if getattr(n, "by", None) == BIN]
        if over_bins and task.edges is None:
            return (
                f'"{over_bins[0]}" is taken over target bins, and a batch does not know them: '
                "declare their inner edges, task=Task.regression(edges=[…])"
            )
        return None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        return ErrorsProgram(ErrorGoal(ready(self, goal, task), Strata(task)), self)

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        assert isinstance(program, ErrorsProgram)
        return program.recovered(totals, multipliers)


class ErrorsProgram(StreamProgram):
    """Sums of errors, their prices, and the pull of prices on predictions.

    Multipliers are those of the constraints, then the weights of every adversary. The prices of the
    weights Σ w, which no prediction moves, carry that of the mean squared error.
    """

    degrees: Tensor
    bounds: Tensor
    equal: Tensor

    def __init__(self, lowered: ErrorGoal, method: Errors) -> None:
        super().__init__()
        self.lowered = lowered
        self.method = method
        self.strata = lowered.strata
        self.m = len(lowered.constraints)
        self.shape = (SUMS, self.strata.size)
        edges = self.strata.task.edges or (0.0,)
        centre = edges[len(edges) // 2] if method.centre is None else method.centre
        self.centre = float(centre)
        self.mix = float(method.squared_error)
        start = torch.cat([torch.zeros(self.m), lowered.start()]).to(torch.get_default_dtype())
        self.register_buffer("start", start, persistent=False)
        degrees = torch.tensor(lowered.degrees, dtype=start.dtype)
        self.register_buffer("degrees", degrees, persistent=False)
        bounds = torch.tensor([0.0, *lowered.bounds], dtype=start.dtype)
        self.register_buffer("bounds", bounds, persistent=False)
        equal = torch.tensor([float(w.equal) for w in lowered.wanted[1:]], dtype=start.dtype)
        self.register_buffer("equal", equal, persistent=False)

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> ErrorRows:
        return take_errors(self.strata, outputs, target, weight, group)

    def mass(self, rows: ErrorRows) -> tuple[Any, int]:
        mass = torch.as_tensor(float(rows.rows)) if rows.weight is None else rows.weight.sum()
        return mass.to(rows.logits), rows.rows

    def measure(self, rows: ErrorRows, step: Tensor) -> tuple[Any, Any]:
        del step
        return sums(rows, self.strata.size, self.centre), None

    def base(self, rows: ErrorRows) -> Any:
        return rows.weighed(rows.error * rows.error).sum()

    # --- prices ----------------------------------------------------------------------------------

    def spread(self, totals: Tensor) -> Tensor:
        """σ: as declared, else the standard deviation of the targets behind the totals."""
        if self.method.scale is not None:
            return torch.full_like(totals[0, 0], self.method.scale)
        mass = totals[WEIGHT].sum()
        first, second = totals[FIRST].sum(), totals[SECOND].sum()
        per = 1 / torch.where(mass > 0, mass, 1.0)
        mean, square = first * per, second * per
        variance = square - mean * mean
        # targets that do not vary, or not visibly: by their size, and all zero count as 1
        variance = torch.where(variance > 1e-9 * square, variance, square)
        return torch.where(variance > 0, variance, 1.0).sqrt()

    def _units(self, spread: Tensor) -> Tensor:
        """(1 + m,) what objective and violations are counted in."""
        return torch.where(self.bounds > 0, self.bounds, spread**self.degrees).to(spread.dtype)

    def price(self, totals: Any, multipliers: Any) -> Priced:
        spread = self.spread(totals)
        units = self._units(spread)

        def lagrangian(c: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
            values, pressed = self.lowered.read(c, multipliers[self.m :])
            broken = values[1:] / units[1:]
            old = multipliers[: self.m].to(broken.dtype)
            paid = old + PRESS * broken
            paid = torch.where(self.equal > 0, paid, paid.clamp(min=0))
            whole = values[0] + units[0] * (paid * paid - old * old).sum() / (2 * PRESS)
            return whole, (whole.detach(), broken.detach(), pressed)

        if torch.compiler.is_compiling():
            gradient, (value, broken, pressed) = torch.func.grad(lagrangian, has_aux=True)(totals)
        else:
            with torch.enable_grad():
                leaf = totals.detach().requires_grad_()
                whole, (value, broken, pressed) = lagrangian(leaf)
                (gradient,) = torch.autograd.grad(whole, leaf)
        prices = torch.zeros_like(gradient)
        prices[WEIGHT] = -units[0] / (spread * spread)
        prices[ABSOLUTE], prices[SQUARED] = -gradient[ABSOLUTE], -gradient[SQUARED]
        return Priced(value + self.lowered.offset, torch.cat([broken, pressed]), prices)

    def pull(
        self, rows: ErrorRows, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del memory, step
        share = on * (1 - self.mix)
        plain = (1 - share) * self._plain(prices)
        absolute, squared = prices[ABSOLUTE] * -share, prices[SQUARED] * -share + plain
        slope = rows.at(absolute) * rows.error.sign() + rows.at(2 * squared) * rows.error
        return rows.weighed(slope) * torch.as_tensor(scale).to(rows.logits)

    def _plain(self, prices: Tensor) -> Tensor:
        """What one unit of mean squared error counts in the loss."""
        if self.method.scale is None:
            return -prices[WEIGHT, 0]
        return torch.full_like(prices[0, 0], self.method.scale ** (self.lowered.degrees[0] - 2))

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self.mix)
        return share * priced.value + (1 - share) * self._plain(priced.prices) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        step = self.method.rate * torch.as_tensor(share).clamp(max=SHARE).to(multipliers)
        # far from its bound a constraint is pressed by κ v; a multiplier that grew there meanwhile
        # would take long to come back
        push = step * violations[: self.m].to(multipliers).clamp(-NEAR, NEAR)
        moved = (multipliers[: self.m] + push).clamp(-DEAREST, DEAREST)
        parts = [torch.where(self.equal > 0, moved, moved.clamp(min=0))]
        for at, stop, sign in self.lowered.slices:
            p, items = multipliers[self.m :][at:stop], violations[self.m :][at:stop]
            p = p * (step * sign * apart(p, items.to(multipliers))).exp()
            parts.append((1 - STAYS) * p / p.sum() + STAYS / (stop - at))
        return torch.cat(parts)

    # --- what a user should know -----------------------------------------------------------------

    def check(self, rows: ErrorRows) -> None:
        check_errors(rows)
        if rows.stratum is not None and bool((rows.stratum >= self.strata.size).any()):
            raise KindError("group holds a code that the task does not declare")

    def whole(self, totals: Any) -> Any:
        return totals[WEIGHT].sum()

    def presence(self, totals: Any) -> Any:
        return (totals[WEIGHT].reshape(-1, self.strata.bins).sum(0) > 0) * 1.0

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        mass = totals[WEIGHT].reshape(-1, self.strata.bins).sum(0)
        rare = [j for j in range(self.strata.bins) if mass[j] > 0 and float(unseen[j]) > RARE]
        if self.strata.bins == 1 or not rare:
            return []
        names = ", ".join(self.strata.bin_name(j) for j in rare)
        return [
            f"more than half of the batches hold no row of the target bins {names}: larger batches "
            "would say more about the goal, or wider bins"
        ]

    def recovered(self, totals: Tensor, multipliers: Tensor) -> Recovered:
        """Objective, violations and multipliers in the user's units."""
        c = totals.detach().double().cpu()
        value, *excess = copy.deepcopy(self.lowered).cpu().stated(c)
        units = self._units(self.spread(c).to(self.degrees)).tolist()
        paid = multipliers[: self.m].double().cpu().tolist()
        rows = zip(self.lowered.constraints, excess, paid, units[1:], strict=True)
        standings = (GoalStanding(text, e, u * units[0] / unit) for text, e, u, unit in rows)
        return Recovered(value, tuple(standings))
