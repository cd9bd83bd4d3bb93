"""Soft solutions: thresholds that meet a goal on its own soft rates, to the last digit.

There the gradient of the implicit method is exactly that of s ↦ f(s, h(s)). It costs many readings
of a batch; in data, thresholds of unrelaxed rates do as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import brentq, minimize, root
from torch import Tensor

from setpoint.methods.aims import Aim
from setpoint.methods.batch import Batch
from setpoint.methods.moving import Moving

if TYPE_CHECKING:
    from setpoint.methods.implicit_program import ImplicitProgram

HALVINGS = 100
NEAR = 1e-5  #: and so near, before it is polished
HELD = 1e-7  #: a constraint so near its bound binds
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
    known = moving.thresholds[:, 0]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rate = torch.sigmoid(moving.sharpness * (z - middle[:, None])) @ w / w.sum()
        over = rate > levels
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    return torch.where(w.sum() > 0, (low + high) / 2, known.to(z))


def soft_point(program: ImplicitProgram, rows: Batch) -> None:
    """Move the thresholds to the soft optimum beside them, with the same constraints binding."""
    moving, start = program.reader, program.reader.thresholds.clone()
    zero = torch.zeros((), dtype=torch.long)
    urgent = program.urgent

    def at(x: Any) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """F with the price of what is broken, v, and their slopes in λ."""
        moving.thresholds.copy_(torch.as_tensor(x, dtype=torch.float64).view_as(start))
        totals = np.asarray(torch.as_tensor(moving.read(rows, zero)[0]).cpu(), dtype=np.float64)
        totals = totals / program.whole(totals)
        values, F, G, _ = program.read_point(totals)
        held = np.array([moving.slopes(totals, g)[0] for g in G]).reshape(len(G), start.shape[1])
        f, v, slope = float(values[0, 0]), values[0, 1:], moving.slopes(totals, F)[0]
        return f + urgent @ v, v, slope + urgent @ held, held

    on = np.flatnonzero(program.keeper.binds.cpu().numpy())
    x = start[0].cpu().numpy()
    if len(x) > 1:
        equal = program.lowered.host.equal
        found = _several(at, equal, x)
        held = np.where((equal > 0) | (np.abs(at(found)[1]) < HELD), 1.0, 0.0)
        program.keeper.binds.copy_(torch.as_tensor(held))
    elif len(on) == 1:
        found = _root(lambda t: float(at([t])[1][on[0]]), float(x[0]), moving.sharpness)
    else:
        found = _root(lambda t: float(at([t])[2][0]), float(x[0]), moving.sharpness)
    good = found is not None and np.isfinite(found).all()
    new = torch.as_tensor(found, dtype=torch.float64) if good else start
    moving.thresholds.copy_(new.view_as(start))


def _root(value: Any, start: float, sharpness: float) -> float | None:
    """The zero nearest to a start, within the reach of a few steps."""
    here = value(start)
    for k in range(1, 400):
        for side in (1, -1):
            far = start + side * k * 0.1 / sharpness
            near = start + side * (k - 1) * 0.1 / sharpness
            if value(near) * value(far) <= 0 and here != 0:
                return brentq(value, min(near, far), max(near, far), xtol=1e-15)  # type: ignore[return-value]
    return None


def _several(at: Any, equal: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Least f under the constraints."""
    rules = []
    for kind, own in (("eq", np.flatnonzero(equal > 0)), ("ineq", np.flatnonzero(equal == 0))):
        if len(own):
            value = {"fun": lambda x, own=own: -at(x)[1][own]}
            rules.append({"type": kind, **value, "jac": lambda x, own=own: -at(x)[3][own]})
    found = minimize(
        lambda x: at(x)[0],
        start,
        jac=lambda x: at(x)[2],
        method="SLSQP",
        constraints=rules,
        options={"ftol": 1e-16, "maxiter": 300},
    )
    return _polished(at, equal, found.x)


def _polished(at: Any, equal: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The zero of ∂f/∂λ + Σ μ ∂v/∂λ and of the constraints that bind, beside a solution."""
    _, v, slope, held = at(x)
    on = np.flatnonzero((equal > 0) | (np.abs(v) < NEAR))
    start = np.linalg.lstsq(held[on].T, -slope, rcond=None)[0]

    def residual(both: np.ndarray) -> np.ndarray:
        _, v, slope, held = at(both[: len(x)])
        return np.r_[slope + both[len(x) :] @ held[on], v[on]]

    found = root(residual, np.r_[x, start], tol=1e-15)
    better = np.abs(residual(found.x)).max() < np.abs(residual(np.r_[x, start])).max()
    return found.x[: len(x)] if better else x
