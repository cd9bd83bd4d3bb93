"""Soft solutions: thresholds that meet a goal on its own soft rates, to the last digit.

There the gradient of the implicit method is exactly that of s ↦ f(s, h(s)). It costs many readings
of a batch; in data, thresholds of unrelaxed rates do as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import brentq, minimize, root
from scipy.special import expit
from torch import Tensor

from setpoint.methods.confusion.batch import Batch
from setpoint.methods.implicit.level_thresholds import URGENT
from setpoint.methods.implicit.moving_thresholds import Moving
from setpoint.methods.rate_targets import Aim
from setpoint.surrogates.sigmoid import logistic

if TYPE_CHECKING:
    from setpoint.methods.implicit.implicit import ImplicitProgram

HALVINGS = 100  #: of a bracket: 2⁻¹⁰⁰ is far below the last digit of float64
GRID = 1001  #: thresholds looked at
BEYOND = 8.0  #: as far as this beyond the scores, in units of 1/κ
SLACK = 1e-9  #: rounding that a constraint may be broken by
WIDER = 1e-5  #: and where logits are narrower than float64
NEAR = 1e-5  #: and so near, before it is polished
BINDING = 1e-7  #: a constraint so near its bound binds
REACH = 40.0  #: so far from the scores, in units of 1/κ, a soft step is 0 or 1


def soft_levels(moving: Moving, aim: Aim, rows: Batch) -> Tensor:
    """Thresholds (T,) at which the soft share of a class is each level, by bisection."""
    z, y, w = rows.logits.double(), rows.actual.double(), rows.weight
    w = torch.ones_like(z) if w is None else w.double()
    w = {"all": w, "positive": w * y, "negative": w * (1 - y)}[aim.condition]
    levels = torch.tensor(aim.levels, dtype=z.dtype, device=z.device)
    reach = REACH / moving.sharpness
    low = (z.min() - reach).expand_as(levels)
    high = (z.max() + reach).expand_as(levels)
    thresholds = moving.thresholds[:, 0]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rate = logistic(z - middle[:, None], moving.sharpness) @ w / w.sum()
        over = rate > levels
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    return torch.where(w.sum() > 0, (low + high) / 2, thresholds.to(z))


def soft_point(program: ImplicitProgram, rows: Batch) -> None:
    """Move the thresholds to the best soft point, and note the constraints that bind there."""
    moving, keeper = program.reader, program.keeper
    start = moving.thresholds.clone()
    zero = torch.zeros((), dtype=torch.long)

    def at(x: Any) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """F with the price of what is broken, v, and their slopes in λ."""
        moving.thresholds.copy_(torch.as_tensor(x, dtype=torch.float64).view_as(start))
        totals = np.asarray(torch.as_tensor(moving.read(rows, zero)[0]).cpu(), dtype=np.float64)
        totals = totals / program.whole(totals)
        values, F, G, _ = program.read_point(totals)
        slopes = np.array([moving.slopes(totals, g)[0] for g in G]).reshape(len(G), start.shape[1])
        f, v, slope = float(values[0, 0]), values[0, 1:], moving.slopes(totals, F)[0]
        urgent = program.urgent
        return f + urgent @ v, v, slope + urgent @ slopes, slopes

    equal = program.lowered.host.equal
    if rows.weight is not None and not bool((rows.weight > 0).any()):
        return
    if start.shape[1] > 1:
        solution = _several(at, equal, start[0].cpu().numpy())
        binds = (equal > 0) | (np.abs(at(solution)[1]) < BINDING)
    else:
        solution, binds, broken = _one(program, rows, at)
        keeper.broken.copy_(torch.as_tensor(broken))
    good = np.isfinite(solution).all()
    new = torch.as_tensor(solution, dtype=torch.float64) if good else start
    moving.thresholds.copy_(new.view_as(start))
    keeper.binds.copy_(torch.as_tensor(binds * 1.0))


def _one(program: ImplicitProgram, rows: Batch, at: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """One threshold: the best of a grid that keeps the constraints, then to the last digit."""
    lowered, kappa = program.lowered, program.reader.sharpness
    slack = SLACK if rows.logits.dtype == torch.float64 else WIDER
    z = rows.logits.double().cpu().numpy()
    w = np.ones(len(z)) if rows.weight is None else rows.weight.double().cpu().numpy()
    place, equal = np.asarray(torch.as_tensor(rows.place).cpu()), lowered.host.equal
    grid = np.linspace(z.min() - BEYOND / kappa, z.max() + BEYOND / kappa, GRID)
    by = np.zeros((len(z), 2 * lowered.cells.shape[0]))
    by[np.arange(len(z)), place] = w
    high, mass = expit(kappa * (z - grid[:, None])) @ by, by.sum(0)
    cells = np.stack([mass - high, high], 2).reshape(GRID, -1) / mass.sum()
    values = lowered.read(cells)[0]
    f, v = values[:, 0], values[:, 1:]
    crossed = np.abs(v) <= np.abs(np.gradient(v, axis=0)) if v.shape[1] else v > 0
    holds = np.where(equal > 0, crossed, v <= 0)
    feasible, none = holds.all(1), np.zeros(v.shape[1])
    broken = none
    if not feasible.any():
        price = f + URGENT * np.maximum(np.where(equal > 0, np.abs(v), v), 0).sum(1)
        best = int(price.argmin())
        broken = (v[best] > 0) * 1.0
        program.keeper.broken.copy_(torch.as_tensor(broken))
        point = _zero(lambda t: at([t])[2][0], grid, best)
        return grid[best] if point is None else point, none, broken
    program.keeper.broken.zero_()
    best = int(np.where(feasible, f, np.inf).argmin())
    point, binds = _zero(lambda t: at([t])[2][0], grid, best), none.copy()
    beside = [k for k in range(v.shape[1]) if equal[k] or not holds[_around(best)].all(0)[k]]
    over = point is None or (at([point])[1] > slack).any()
    for k in beside if over or equal.any() else ():
        crossing = _zero(lambda t, k=k: at([t])[1][k], grid, best)
        if crossing is not None and (np.where(equal > 0, 0, at([crossing])[1]) <= slack).all():
            binds[:] = 0
            point, binds[k] = crossing, 1.0
    return grid[best] if point is None else point, binds, broken


def _around(place: int) -> slice:
    return slice(max(place - 1, 0), place + 2)


def _zero(value: Any, grid: np.ndarray, place: int) -> float | None:
    """Where a function is 0 beside a point of a grid; None where it does not cross."""
    low, middle, high = grid[max(place - 1, 0)], grid[place], grid[min(place + 1, len(grid) - 1)]
    for a, b in ((low, middle), (middle, high)):
        ends = value(a), value(b)
        if 0 in ends:
            return float((a, b)[ends.index(0)])
        if a < b and (ends[0] > 0) != (ends[1] > 0):
            return brentq(value, a, b, xtol=1e-15)  # type: ignore[return-value]
    return None


def _several(at: Any, equal: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Least f under the constraints."""
    rules = []
    for kind, own in (("eq", np.flatnonzero(equal > 0)), ("ineq", np.flatnonzero(equal == 0))):
        if len(own):
            value = {"fun": lambda x, own=own: -at(x)[1][own]}
            rules.append({"type": kind, **value, "jac": lambda x, own=own: -at(x)[3][own]})
    solution = minimize(
        lambda x: at(x)[0],
        start,
        jac=lambda x: at(x)[2],
        method="SLSQP",
        constraints=rules,
        options={"ftol": 1e-16, "maxiter": 300},
    )
    return _polished(at, equal, solution.x)


def _polished(at: Any, equal: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The zero of ∂f/∂λ + Σ μ ∂v/∂λ and of the constraints that bind, beside a solution."""
    _, v, slope, slopes = at(x)
    on = np.flatnonzero((equal > 0) | (np.abs(v) < NEAR))
    start = np.linalg.lstsq(slopes[on].T, -slope, rcond=None)[0]

    def residual(both: np.ndarray) -> np.ndarray:
        _, v, slope, slopes = at(both[: len(x)])
        return np.r_[slope + both[len(x) :] @ slopes[on], v[on]]

    solution = root(residual, np.r_[x, start], tol=1e-15)
    better = np.abs(residual(solution.x)).max() < np.abs(residual(np.r_[x, start])).max()
    return solution.x[: len(x)] if better else x
