"""Prices by control: multipliers that follow the hard violations of recent rows.

Where one threshold cannot keep a constraint (groups, several classes, labels) its price cannot be
solved for. It is moved at each reading of the window, in multiples of the *equal pull*

    unitⱼ = σ(e₀) / σ(vⱼ),      σ(x)² = Σ c gₓ² − (Σ c gₓ)²,   gₓ = ∂x/∂c at hard cells c,

at which a constraint moves the cells as hard as the objective e₀ does. With the signal

    sⱼ = clip((vⱼ + z errorⱼ) / (TAU + errorⱼ), −1, 1),      errorⱼ = σ(vⱼ) / √n

the integral and the price are, for a reading that renews a share of the window,

    Iⱼ ← Iⱼ + RATE · share · sⱼ · (1 + Iⱼ),      λⱼ = unitⱼ · clip(Iⱼ + KAPPA · sⱼ, 0, most),

so how dear a constraint can get depends on what it does to the decisions, in no unit of a metric.
The proportional part damps the swings of the integral, which does not move while the price is at
either end and would go further (nothing winds up). An empty rate has the signal −1: a floor on
precision that has driven all decisions away is held by none, and gets cheaper until some are back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.operating_point import LIMIT, spread

# with .05, and 128 steps, prices of parity went round at rates of 1e-2: a pull moves a gap by .4 or
# so, and the model, its running totals and the reading answer after about 150 steps together
TAU = 0.2  #: a violation of this size moves a price at full pace
RATE = 1.0  #: of the integral, for one renewal of the window
# with 1.0 the gap of costs, whose prices act at once, went round at rates of 1e-2
KAPPA = 0.4  #: equal pulls that a full signal adds at once
MARGIN = 1.0  #: standard errors that a constraint is asked to hold with
TURN = 384  #: steps in which a window counts as renewed, at least
MOST = 20.0  #: equal pulls of a price: then the objective and the anchor have hardly a say
OUTWEIGHS = 5.0  #: equal pulls from which a broken constraint is said to be out of reach
SURE = 2.0  #: standard errors by which it is then broken


class ObservedConstraints(NamedTuple):
    """Violations (m,) of hard cells, their standard errors, equal pulls, and whether each is empty.

    ``equal`` says which are equations.
    """

    violations: np.ndarray
    errors: np.ndarray
    units: np.ndarray
    empty: np.ndarray
    equal: np.ndarray

    @property
    def signals(self) -> np.ndarray:
        """(m,) in [−1, 1]: how far each price should move."""
        margin = MARGIN * self.errors * ~self.equal
        signal = ((self.violations + margin) / (TAU + self.errors)).clip(-1, 1)
        return np.where(self.empty, -1.0, signal)


def observed_constraints(lowered: Lowered, cells: np.ndarray, size: float) -> ObservedConstraints:
    """The constraints at hard cells.

    Parameters
    ----------
    lowered : Lowered
    cells : numpy.ndarray
        (cells,) per unit of mass.
    size : float
        Rows they are of.
    """
    m = len(lowered.constraints)
    values, memory = lowered.read(cells[None])
    sizes = np.zeros(1 + m)
    for j in range(1 + m):
        one = np.zeros_like(values)
        one[:, j] = 1
        slope = lowered.prices(cells[None], memory, one)
        sizes[j] = np.sqrt(spread(cells[None], slope, lowered.cells.labels)[0])
    totals = dict(zip(lowered.leaves, (lowered.host.count @ cells).tolist(), strict=True))
    empty = [not bool(w.expression.read(totals).defined) for w in lowered.wanted[1:]]
    known = (sizes[1:] > 0) & (sizes[0] > 0)
    units = np.where(known, sizes[0] / np.where(sizes[1:] > 0, sizes[1:], 1.0), 1.0)
    equal = np.asarray(lowered.equal_of(values)) > 0
    return ObservedConstraints(
        values[0, 1:], sizes[1:] / np.sqrt(max(size, 1.0)), units, np.array(empty, bool), equal
    )


class ControlledPrices(NamedTuple):
    """Integrals in equal pulls, and prices in units of the objective, each (m,)."""

    integrals: np.ndarray
    prices: np.ndarray


def controlled(
    integrals: np.ndarray, observed: ObservedConstraints, share: float
) -> ControlledPrices:
    """Integrals and prices after a reading that renews this share of the window.

    Examples
    --------
    >>> seen = ObservedConstraints(*map(np.array, ([0.1], [0.0], [2.0], [False], [False])))
    >>> controlled(np.array([0.5]), seen, 0.1)
    ControlledPrices(integrals=array([0.575]), prices=array([1.55]))
    """
    signals = observed.signals
    most = np.minimum(LIMIT / observed.units, MOST)
    least = np.where(observed.equal, -most, 0.0)
    ahead = KAPPA * signals
    moved = integrals + RATE * share * signals * (1 + np.abs(integrals))
    # what would take the price beyond an end is not stored; a price of 0 may still have an integral
    top, bottom = np.maximum(integrals, most - ahead), np.minimum(integrals, least - ahead)
    moved = np.where(signals > 0, np.minimum(moved, top), moved)
    moved = np.where((signals < 0) & observed.equal, np.maximum(moved, bottom), moved)
    moved = moved.clip(least, most)
    return ControlledPrices(moved, observed.units * (moved + ahead).clip(least, most))
