"""Corrections: thresholds from unrelaxed rates, decided where score >= threshold.

A level on one class fixes a threshold by an order statistic,

    cap b (fpr):        the lowest border above which at most b of the weight lies,
    floor r (recall):   the highest border below which at most 1 − r of it lies,

tied rows being decided together. Any other goal has the best border at which its constraints hold;
the constraint that stops the threshold there is the one that *binds*. A border lies midway between
two scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import cast, join, namespace
from setpoint.methods.confusion.goal_over_cells import Lowered

NEAR = 1e-9  #: rounding that a rate may exceed its level by
FAR = 1e30  #: beyond every score
URGENT = 10.0  #: what breaking a constraint by one unit costs where none can hold


class Settled(NamedTuple):
    """Where a threshold came to stand.

    ``binds`` (m,) is 1 for the constraint that stops it, ``broken`` (m,) 1 for those that hold
    nowhere.
    """

    threshold: Tensor
    binds: Tensor
    broken: Tensor


def level_thresholds(
    scores: Any, weight: Any, mass: Any, levels: Any, at_least: bool, step: float
) -> Any:
    """Thresholds (T,) at which a class is decided up to, or from, each level.

    Parameters
    ----------
    scores, weight : numpy.ndarray or torch.Tensor
        (n,) of the rows of the class, or of that end of them which the levels reach; rows that do
        not count have weight 0.
    mass : number
        Of all rows of the class.
    levels : like the scores
        (T,) shares of the mass.
    at_least : bool
        Whether a level is a floor.
    step : float
        How far beyond the last score a border lies.
    """
    if at_least:
        return -level_thresholds(-scores, weight, mass, 1 - levels, False, step)
    xp = namespace(scores)
    falling = xp.where(weight > 0, -scores, FAR)
    if xp is np and len(weight) and (weight == weight[0]).all():  # values alone sort much faster
        value, above = np.sort(falling), weight[0] * np.arange(1, len(weight) + 1)
    else:
        order = falling.argsort()
        value, above = falling[order], weight[order].cumsum(0)
    value = join([value, cast(levels[:1] * 0 + FAR, value)], 0)
    side = {"side": "right"} if xp is np else {"right": True}
    last = xp.searchsorted(above, levels * mass * (1 + NEAR), **side)  # first not decided
    last = xp.searchsorted(value, value[last])  # and all that are tied with it
    low, high = value[last], value[(last - 1) * (last > 0)]
    low = xp.where(low >= FAR, high + 2 * step, low)
    return -xp.where(last == 0, value[0], (low + high) / 2)


def tail(
    scores: Tensor, weight: Tensor, mass: Tensor, level: float, at_least: bool
) -> tuple[Tensor, Tensor]:
    """The rows of one process that can matter to levels up to (or from) this one on all of them.

    Rows of a process above the global border weigh at most level · mass, so its highest ones up to
    that weight, and the next, are enough for the exact border.
    """
    if at_least:
        values, weights = tail(-scores, weight, mass, 1 - level, False)
        return -values, weights
    there = weight > 0
    scores, weight = scores[there], weight[there]
    order = scores.argsort(descending=True)
    above = weight[order].cumsum(0)
    enough = int(torch.searchsorted(above, level * mass * (1 + 2 * NEAR), right=True)) + 1
    return scores[order[:enough]], weight[order[:enough]]


def best_threshold(
    lowered: Lowered, scores: Tensor, place: Tensor, weight: Tensor, step: float
) -> Settled:
    """The threshold of best objective among those that keep every constraint.

    Parameters
    ----------
    lowered : Lowered
    scores, place, weight : torch.Tensor
        (n,) rows; ``place`` the index of (table, actual).
    step : float
        How far beyond the outermost scores the outer borders lie.
    """
    places = 2 * lowered.cells.shape[0]
    order = torch.where(weight > 0, scores, -FAR).argsort(descending=True)
    value, w = scores[order], weight[order]
    lowest = torch.where(w > 0, value, FAR).amin()
    value = torch.where(w > 0, value, lowest - 2 * step)
    per = torch.zeros(len(value), places, dtype=w.dtype, device=w.device)
    per.scatter_(1, place[order][:, None], w[:, None])
    high = torch.cat([per.new_zeros(1, places), per.cumsum(0)])  # (n + 1, places): first i decided
    mass = high[-1]
    cells = torch.stack([mass - high, high], 2).reshape(len(high), -1)
    values = read(lowered, cells / mass.sum().clamp(min=1e-30))  # (n + 1, 1 + m)
    border = torch.ones(len(high), dtype=torch.bool, device=w.device)
    border[1:-1] = value[1:] != value[:-1]
    merit, violations = values[:, 0], values[:, 1:]
    merit = torch.where(border, merit, torch.inf)
    equal = lowered.equal_of(values).to(violations)
    row = 1 / len(value)  # an equation is met within one row
    excess = torch.where(equal > 0, violations.abs() - row, violations)
    worst = excess.amax(1) if violations.shape[1] else torch.zeros_like(merit) - 1
    feasible = (worst <= NEAR) & border
    inside = torch.where(feasible, merit, torch.inf)
    least = merit + URGENT * excess.clamp(min=0).sum(1)
    some = feasible.any()
    here = torch.where(some, inside.argmin(), least.argmin())
    free = merit.argmin()
    # from here towards the free optimum, the first border at which something is broken
    index = torch.arange(len(high), device=w.device)
    ahead = torch.where(free > here, index > here, index < here) & border & ~feasible
    near = torch.where(ahead, (index - here).abs(), len(high)).argmin()
    stopped = some & ahead.any() & (free != here)
    m, last = violations.shape[1], len(value) - 1
    binds = broken = violations[0]
    if m:
        stops = torch.arange(m, device=w.device) == _at(excess, near).argmax()
        binds = stops * stopped * (1 - equal) + equal * some
        broken = (_at(excess, here) > NEAR) * ~some
    above = torch.where(here == 0, value[0] + step, _at(value, (here - 1).clamp(min=0)))
    below = torch.where(here > last, value[-1] - step, _at(value, here.clamp(max=last)))
    return Settled((above + below) / 2, binds.to(scores), broken.to(scores))


def _at(x: Tensor, place: Tensor) -> Tensor:
    """x[place], without asking a device where that is."""
    return x.index_select(0, place.view(1))[0]


def read(lowered: Lowered, cells: Tensor) -> Tensor:
    """Objective and violations at each table of cells; on the host in float64."""
    if cells.is_cpu and not torch.compiler.is_compiling():
        values: Any = lowered.read(cells.double().numpy())[0]
        return torch.from_numpy(values).to(cells.dtype)
    return lowered.read(cells)[0]
