"""The verdict on a solution of the exact problem: does it hold, is it one, what does it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from setpoint.decisions.sensitivity.relaxations import caps_of
from setpoint.decisions.sensitivity.shadow_price import prices
from setpoint.decisions.sensitivity.value_function import Along
from setpoint.expressions import Columns
from setpoint.goals import Goal
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.exact.hard_decisions import HardRows
from setpoint.methods.exact.whole_problem import WholeProblem
from setpoint.methods.method import GoalStanding
from setpoint.solvers import Solution

CROSS_ENTROPY_START = "iterate 0"  #: where a run begins: cross-entropy at its best threshold
LAST_ITERATE = "the last iterate"  #: the solver's choice, since the judge ranks by their order
NEAR = 0.02  #: a probability so near the threshold is a singular point


class ConstraintExcess(NamedTuple):
    """By how much a constraint is broken, in its own units; <= 0 where it holds."""

    constraint: str
    excess: float


@dataclass(frozen=True)
class Stand:
    """The goal on some rows, by hard decisions at the model's own threshold.

    Attributes
    ----------
    value : float
        The objective, in its own units.
    feasible : bool
    constraints : tuple of ConstraintExcess
    """

    value: float
    feasible: bool
    constraints: tuple[ConstraintExcess, ...]

    @classmethod
    def at(cls, hard: HardRows, z: np.ndarray) -> Stand:
        """Of decisions z >= 0, or of the greatest."""
        goal, lowered = hard.lowered.goal, hard.lowered
        value, *excess = lowered.stated(hard.decided(z))
        both = zip(lowered.wanted[1:], excess, strict=True)
        held = tuple(ConstraintExcess(w.text, abs(x) if w.equal else x) for w, x in both)
        return cls(-goal.sign * value, hard.rank(z).feasible, held)


@dataclass(frozen=True)
class Verdict:
    """What came out.

    Attributes
    ----------
    train, tune : Stand, Stand or None
        The goal on the rows it was trained on, and on others if there were any.
    start : Stand
        The same on the training rows for iterate 0: cross-entropy at its best threshold there.
    origin : str
        Where the best model was found: iterate 0, a round of the penalty, a walk.
    near : int
        Rows whose probability lies within 0.02 of the threshold, where a membership is hardly tied
        to its decision (singular points); and ``rows``, of how many.
    ties : float
        The greatest distance |H| between a membership and its decision, where the penalty ended.
    stationarity, complementarity : float
        What is left of the conditions of an optimum there.
    multipliers : tuple of GoalStanding
        Of each constraint where the penalty ended: its excess on memberships, and what one unit of
        its bound is worth in units of the objective.
    prices : tuple of str
        What one point of each constraint costs, read from the training rows by moving the
        threshold of the model that was kept.
    status : str
        How the penalty ended, as a sentence.
    """

    train: Stand
    tune: Stand | None
    start: Stand
    origin: str
    near: int
    rows: int
    ties: float
    stationarity: float
    complementarity: float
    multipliers: tuple[GoalStanding, ...]
    prices: tuple[str, ...]
    status: str

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds on the training rows."""
        return self.train.feasible

    @property
    def value(self) -> float:
        """The objective on the training rows."""
        return self.train.value

    def brief(self) -> str:
        """One sentence: what it bought on the training rows, and what a constraint costs."""
        if self.origin == CROSS_ENTROPY_START:
            return "nothing better was found than cross-entropy, which is kept"
        broken = "" if self.feasible else " (and a constraint broken there)"
        said = f"{self.value:.4g}{broken} on the training rows, found by {self.origin}"
        than = f"cross-entropy at its best threshold there has {self.start.value:.4g}"
        return "; ".join([said, than, *self.prices])

    def __str__(self) -> str:
        lines = [
            f"train   {_stood(self.train)} (cross-entropy at its best threshold: "
            f"{_stood(self.start)}); found by {self.origin}",
        ]
        if self.tune is not None:
            lines.append(f"tune    {_stood(self.tune)}")
        share = self.near / max(self.rows, 1)
        lines.append(
            f"ties    greatest {self.ties:.2g}; {self.near} of {self.rows} rows ({share:.1%}) lie "
            f"within {NEAR:g} of the threshold"
        )
        lines.append(
            f"optimum stationarity {self.stationarity:.2g}, complementarity "
            f"{self.complementarity:.2g}; {self.status}"
        )
        lines += [f"price   {said}" for said in self.prices]
        lines += [f"paid    {paid(held)}" for held in self.multipliers]
        return "\n".join(lines)


def read_verdict(
    whole: WholeProblem,
    solution: Solution,
    start: Stand,
    origin: str,
    stands: tuple[Stand, Stand | None],
    margins: Tensor,
    said: tuple[str, ...],
) -> Verdict:
    """The verdict, from where the penalty ended and from the model that was kept."""
    x = solution.best
    with torch.no_grad():
        tied = whole.ties(whole.margins(x), x[-2])
    train, tune = stands
    return Verdict(
        train=train,
        tune=tune,
        start=start,
        origin=origin,
        near=whole.near(margins, NEAR),
        rows=len(whole.place),
        ties=float(tied.max()),
        stationarity=solution.stationarity,
        complementarity=solution.complementarity,
        multipliers=_multipliers(whole, solution, x[-2]),
        prices=said,
        status=solution.status,
    )


def _multipliers(whole: WholeProblem, solution: Solution, s: Tensor) -> tuple[GoalStanding, ...]:
    """The goal's own multipliers, from cleared constraints to the units they are stated in.

    A cleared constraint v and the stated one e, both <= 0, have gradients that are parallel where
    they bind: ∇v = k ∇e. A unit of e is k units of v, so it is worth k times the multiplier.
    """
    lowered = whole.lowered
    stated = Lowered(lowered.goal, lowered.cells, clear=False)
    with torch.no_grad():
        cells = whole.filled(s).double().cpu().numpy()
    kept = whole.kept.cpu().numpy()
    first, ties = int(kept.sum()), len(whole.place)
    paid = np.empty(len(kept))
    paid[kept], paid[~kept] = solution.multipliers[:first], solution.multipliers[first + ties :]
    _, *excess = stated.stated(cells)
    rows = []
    for j, text in enumerate(lowered.constraints):
        v, e = (_gradient(x, cells, j + 1) for x in (lowered, stated))
        scale = float(v @ e / max(e @ e, 1e-300))
        rows.append(GoalStanding(text, float(excess[j]), float(paid[j]) * scale))
    return tuple(rows)


def _gradient(lowered: Any, cells: np.ndarray, j: int) -> np.ndarray:
    values, memory = lowered.read(cells)
    one = np.zeros_like(values)
    one[:, j] = 1.0
    return lowered.prices(cells, memory, one)[0]


def paid(held: GoalStanding) -> str:
    """What the penalty paid for a constraint, in words."""
    if abs(held.multiplier) < 1e-9:
        return f"nothing by the penalty for {held.constraint}"
    return f"{held.multiplier:.2g} of the objective by the penalty for a unit of {held.constraint}"


def prices_of(goal: Goal, columns: Columns) -> tuple[str, ...]:
    """What one point of each constraint costs where thresholds alone move, as sentences."""
    if not goal.constraints or columns.task.kind != "binary":
        return ()
    land = Along(goal, columns)
    return tuple(price.sentence() for price in prices(land, caps_of(land, goal)))


def _stood(stand: Stand) -> str:
    held = "; ".join(
        f"{c.constraint} {'holds' if c.excess <= 1e-9 else f'broken by {c.excess:.3g}'}"
        for c in stand.constraints
    )
    return f"{stand.value:.4f}" + (f", {held}" if held else "")
