"""Readings of the window: the operating point and its prices, the status, the alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from setpoint._core.notes import Note
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.guard.alarms import control_alarms, price_alarms, undecided, window_alarms
from setpoint.methods.guard.loss_status import ConstraintStatus, LossStatus
from setpoint.methods.guard.operating_point import (
    LIMIT,
    NEAR,
    ObservedPoint,
    intercept,
    near_threshold,
    operating_point,
    price_at,
)
from setpoint.methods.guard.price_control import observed_constraints
from setpoint.methods.guard.recent_rows import ObservedRows
from setpoint.methods.guard.window_decisions import (
    JudgedGoal,
    cell_mass,
    cell_of,
    class_shares,
    group_shares,
    row_count,
)
from setpoint.methods.guard.window_figures import block_cells, figures

FEW = 10.0  #: rows of each class from which a threshold is searched
# in trials with 4096 rows, margins of 0, ½ and 1 kept 86, 93 and 95 of 100 constraints
MARGIN = 1.5  #: standard errors
FARTHEST = 12.0  #: logit of a threshold's probability, at most: 6e-6 or 1 − 6e-6


class WindowReading(NamedTuple):
    """What the window shows: the operating point, the intercept a, and the prices there."""

    point: ObservedPoint
    calibration: float
    prices: np.ndarray


@dataclass(frozen=True)
class WindowReader:
    """Reads rows by a goal.

    Parameters
    ----------
    judge : JudgedGoal
    controls : numpy.ndarray
        (m,) whether a price is controlled; else it is solved for.
    """

    judge: JudgedGoal
    controls: np.ndarray

    @property
    def cells(self) -> Cells:
        """The layout of the decisions."""
        return self.judge.cells

    @property
    def searches(self) -> bool:
        """Whether one threshold decides."""
        return self.cells.kind == "binary"

    def reading(
        self, rows: ObservedRows, calibration: float, prices: np.ndarray
    ) -> WindowReading | None:
        """What rows show; None where there are too few (of a class).

        Parameters
        ----------
        rows : ObservedRows
        calibration : float
            The intercept at the last reading.
        prices : numpy.ndarray
            (m,) as they are; those that are controlled stay so.
        """
        if not self.searches:
            return self._decided(rows, prices)
        if min(rows.y.sum(), len(rows.y) - rows.y.sum()) < FEW:
            return None
        # a margin of what is controlled may be left at thresholds alone that decide nearly nobody
        point = operating_point(self.judge, rows, MARGIN, exempt=self.controls)
        calibration = intercept(rows.scores, rows.y, rows.weight, calibration)
        if not self.controls.any():
            prices = self.solved(rows, point, calibration)
        return WindowReading(point, calibration, prices)

    def _decided(self, rows: ObservedRows, prices: np.ndarray) -> WindowReading | None:
        """The decisions as they are; the share is −1 where one breaks a constraint, else 1."""
        if len(rows.y) < 2 * FEW * self.cells.labels:
            return None
        cells = cell_mass(self.cells, rows, 0.0)
        broken = bool((np.array(self.judge.stated(cells[None])[1:]) > NEAR).any())
        return WindowReading(ObservedPoint(0.0, -1.0 if broken else 1.0, cells), 0.0, prices)

    def steered(self, rows: ObservedRows) -> ObservedPoint:
        """The best threshold where constraints that are controlled do not count.

        One that paid for them would jump to where everybody is decided, or nobody.
        """
        charges = np.where(self.controls, 0.0, np.nan)
        return operating_point(self.judge, rows, MARGIN, charges)

    def solved(
        self,
        rows: ObservedRows,
        point: ObservedPoint,
        calibration: float,
        charges: np.ndarray | None = None,
    ) -> np.ndarray:
        """Prices at which the goal would choose the point; those of ``charges`` stand already."""
        offset = float(np.clip(calibration + point.threshold, -FARTHEST, FARTHEST))
        near = near_threshold(rows, point.threshold, self.cells.shape[0])
        probability = 1 / (1 + math.exp(-offset))
        return price_at(self.judge, point.cells, probability, LIMIT, near, charges)

    def status(
        self, rows: ObservedRows, read: WindowReading, known: Mapping[str, Any]
    ) -> LossStatus:
        """How the goal stands; ``known`` is what the rows do not show."""
        several, threshold = self.cells.kind == "multiclass", read.point.threshold
        known = {**known, "threshold": math.nan if several else threshold}
        count = len(rows.y) // self.cells.labels
        if not count:
            empty = {"count": 0, "decided": math.nan, "objective": None, "constraints": ()}
            return LossStatus(**known, rows=0, **empty)
        cell = cell_of(self.cells, rows, threshold)
        blocks = block_cells(cell, rows.weight, int(np.prod(self.cells.shape)))
        objective, constraints = figures(self.judge, self.judge.whole_goal, blocks, count)
        paid = np.bincount(self.judge.owner, read.prices, minlength=len(constraints))
        mass = blocks.sum(0)
        shares = group_shares(self.cells, mass)
        if not self.searches:
            shares = tuple((name, share) for name, _, share in class_shares(self.cells, mass))
        return LossStatus(
            **known,
            rows=count,
            count=0 if several else int((cell % 2).sum()),
            decided=math.nan if several else float(rows.weight @ (cell % 2) / rows.weight.sum()),
            objective=objective,
            constraints=tuple(
                ConstraintStatus(
                    **vars(c.figure), bound=c.bound, held=c.held, certain=c.certain, price=price
                )
                for c, price in zip(constraints, paid.tolist(), strict=True)
            ),
            shares=shares,
            alarms=self.alarms(rows, read),
        )

    def alarms(self, rows: ObservedRows, read: WindowReading) -> tuple[Note, ...]:
        """What the rows show to be wrong."""
        prices, threshold = read.prices.tolist(), read.point.threshold
        if self.searches:
            return window_alarms(self.judge, rows, threshold, read.point.share, prices)
        cells, count = cell_mass(self.cells, rows, threshold), row_count(self.cells, rows)
        seen = observed_constraints(self.judge, cells, count)
        return (
            *price_alarms(self.judge, prices),
            *control_alarms(self.judge, seen, prices),
            *undecided(class_shares(self.cells, cells), count),
        )
