"""The program of the implicit method: soft totals, priced at thresholds that keep their levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import whole
from setpoint.goals import Goal
from setpoint.methods.balance import GUARD, multipliers, ratio
from setpoint.methods.confusion.batch import Batch
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.goal_program import MixedProgram
from setpoint.methods.implicit.level_thresholds import URGENT
from setpoint.methods.implicit.moving_thresholds import Moving, Thresholds
from setpoint.methods.implicit.soft_solution import soft_levels, soft_point
from setpoint.methods.implicit.threshold_tracker import Keeper
from setpoint.methods.method import Recovered, Standing
from setpoint.methods.rate_targets import Aim, area_of
from setpoint.methods.short_levels import ShortLevels
from setpoint.programs import Exchange, Priced

if TYPE_CHECKING:
    from setpoint.methods.implicit.implicit import Implicit


class ImplicitProgram(MixedProgram):
    """Prices at soft totals, with the multipliers that keep what is held.

    Parameters
    ----------
    goal : Goal
        As it was stated.
    lowered : Lowered
    moving : Moving
        Fills the cells, at thresholds that the keeper moves.
    aim : Aim
    method : Implicit
    """

    settles = True
    reader: Moving

    def __init__(
        self, goal: Goal, lowered: Lowered, moving: Moving, aim: Aim, method: Implicit
    ) -> None:
        super().__init__(lowered, moving, (), method.cross_entropy)
        self.goal, self.aim, self.method = goal, aim, method
        self.refreshes = method.correction == "exact"
        self.together = method.correction == "soft" or method.pool == 0
        self.shape = (moving.count, moving.width)
        self.kappa, self.guard = moving.sharpness, GUARD * moving.sharpness
        self.keeper = Keeper(lowered, moving, aim, method)
        self.follows = method.follow and len(aim.levels) > 0
        self._apart = bool(method.regulariser) and isinstance(moving, Thresholds)
        self._last: Any = None  #: logits of the last batch, and the densities of what is held
        plain = len(aim.levels) > 0 and self.shape[1] == 6 and not self.mix
        if plain and method.correction == "exact" and not (self._apart or self.follows):
            self.short = ShortLevels(self)

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
        held = [moving.slopes(totals, g) for g in G]
        if self.aim.levels:
            return values, F, G, ratio(down, held[0], self.guard)
        if isinstance(values, np.ndarray):
            on, off, stack = self.keeper.binds.double().numpy(), self.urgent, np.stack
        else:
            on, off = (x.to(values) for x in (self.keeper.binds, URGENT * self.keeper.broken))
            stack = torch.stack
        equal = lowered.equal_of(values)
        mu = multipliers(down[0], stack([h[0] for h in held]), on, equal, self.guard)
        return values, F, G, (mu + off)[None]

    def price(self, totals: Any, multipliers: Any) -> Priced:
        values, F, G, mu = self.read_point(totals)
        prices = F
        for k, g in enumerate(G):
            prices = prices + mu[:, k : k + 1] * g
        value = whole(values[:, 0]) / len(values) + self.lowered.offset
        full, worth = totals * 0.0, self.reader.packed(-prices)
        full[:, : worth.shape[1]] = worth
        if self._apart and len(G) == 1:
            full[:, self.reader.cells :] = self._spread_out(totals, G[0])
        return Priced(value, multipliers, full)

    def _spread_out(self, totals: Any, held: Any) -> Any:
        """−ρ ∂(∂g/∂λ)² of a unit of each density, (T, places), thresholds held."""
        tilt = -self.reader.packed(held)  # ∂g/∂λ = κ Σ tilt · density
        slope = self.reader.slopes(totals, held)[:, :1]
        rate = 2 * self.method.regulariser * self.reader.sharpness / len(held)
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
        return whole(totals[0, : self.reader.cells]) / self.labels

    def _actual(self, totals: Any) -> Any:
        return super()._actual(totals[:, : self.reader.cells])

    def shown(self, totals: Tensor) -> dict[str, Any]:
        """The thresholds, and the fewest rows of a batch under the kernel of one."""
        del totals
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
        held = [self.aim.text] if self.aim.levels else lowered.constraints
        rows = zip(held, excess, np.asarray(mu).mean(0).tolist(), strict=True)
        where = tuple(self.reader.thresholds.flatten().tolist())
        standing = tuple(Standing(*row) for row in rows)
        slope, start = area_of(self.goal)
        return Recovered(start - slope * lowered.goal.sign * value, standing, where)


def _one(like: Any, column: int) -> Any:
    """Zeros like an array, with ones in one column."""
    made = 0 * like
    made[:, column] = 1.0
    return made
