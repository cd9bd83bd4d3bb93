"""The shortest way back to the constraints, in the mean over all batches.

    minimise ½ ‖d‖²  subject to  c + J d <= 0,  e + J d = 0;        d = −Jᵀ y,
    y = argmin ½ ‖Jᵀ y‖² − vᵀ y   over  y >= 0 (an equation's has either sign)

Steps of a falling rate end near the constraints, within noise. A step or two of this, over the
constraints that are broken or nearly so, end on them; f changes by about λᵀ v. A coordinate that a
bound would stop is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import lsq_linear
from torch import Tensor

from setpoint.solvers.augmented.mean_functions import Reading, Whole, at_bounds, flat
from setpoint.solvers.box_projection import project
from setpoint.solvers.kkt import DIRECT, ENTRIES

RIDGE = 1e-12  #: relative, for constraints that depend on each other


def restored(
    whole: Whole, parts: Sequence[Tensor], at: Reading, slack: float
) -> list[Tensor] | None:
    """The parts after a step; None where it is not to be had.

    Parameters
    ----------
    whole : Whole
    parts : sequence of torch.Tensor
    at : Reading
        At the parts.
    slack : float
        Within which a constraint that is kept takes part.
    """
    rows = (at.equal | (at.v >= -slack)).nonzero().reshape(-1).tolist()
    size = sum(part.numel() for part in parts)
    if not rows or len(rows) > min(DIRECT, ENTRIES // max(size, 1)):
        return None
    slopes = whole.slopes(parts, torch.zeros_like(at.v), None, rows)[1:]
    v, equal = at.v[rows].cpu(), at.equal[rows].cpu()
    resting = at_bounds(parts, whole.box, 0.0).cpu()
    step = torch.zeros(size, dtype=torch.float64)
    for _ in range(2):  # the second time without what a bound stops
        step = _shortest(slopes, v, equal)
        stopped = (resting.low & (step < 0)) | (resting.high & (step > 0))
        if not bool(stopped.any()):
            break
        slopes = slopes * ~stopped
    moved = (flat(parts).double().cpu() + step).split([part.numel() for part in parts])
    back = [x.reshape(part.shape).to(part) for x, part in zip(moved, parts, strict=True)]
    project(back, whole.box)
    return back


def _shortest(slopes: Tensor, v: Tensor, equal: Tensor) -> Tensor:
    """D (n,) for gradients (k, n) and values (k,)."""
    gram = (slopes @ slopes.T).numpy()
    ridge = RIDGE * max(float(np.trace(gram)), np.finfo(float).tiny)
    root = np.linalg.cholesky(gram + ridge * np.eye(len(gram)))
    low = np.where(equal.numpy(), -np.inf, 0.0)
    paid = lsq_linear(root.T, np.linalg.solve(root, v.numpy()), (low, np.inf), method="bvls").x
    return -torch.as_tensor(paid) @ slopes
