"""The short way of the implicit method: levels on one class, one table, no weights.

As in :mod:`setpoint.methods.short`: the whole step in one function, with work arrays that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setpoint.methods.confusion.batch import ones

if TYPE_CHECKING:
    from setpoint.methods.implicit.implicit import ImplicitProgram


class ShortLevels:
    """T thresholds that follow their levels.

    Parameters
    ----------
    program : ImplicitProgram
        With levels, one constraint, no regulariser and no share of cross-entropy.
    """

    def __init__(self, program: ImplicitProgram) -> None:
        self.moving = program.reader
        host, t = program.lowered.host, program.reader.count
        tilt = np.array([[-1.0, 0], [1, 0], [0, -1], [0, 1]])  # cells to what one more decided adds
        self.read = host.read
        self.up, self.down = host.up @ tilt, host.down @ tilt  # (r, 2)
        #: (2, 1, r) weights of the fractions in the objective, a mean over T, and in what is held
        self.ends = host.mix.T[:, None, :] * np.array([1 / t, 1.0])[:, None, None]
        self.mean = host.mix[:, 0] / t
        self.offset, self.guard, self.kappa = program.lowered.offset, program.guard, program.kappa
        self.count, self.keeper = t, program.keeper
        #: ∂g/∂λ is negative of a cap and positive of a floor, and kept from 0
        self.sign = 1.0 if program.aim.at_least else -1.0
        self.work: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes work arrays of its own: they share their memory with views of theirs."""
        kept = {k: v for k, v in self.__dict__.items() if k not in ("pair", "views")}
        return {**kept, "work": None}

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray] | None:
        keeper, kappa, t, n = self.keeper, self.kappa, self.count, z.shape[0]
        scores, actual, unit = z.numpy(), y.numpy(), ones(n, np.float32)
        finite = float(scores @ unit)
        if finite - finite or n >= keeper.pool.size:
            return None
        due = keeper.settle_plainly(scores, actual)
        if self.work is None or self.work.shape[1] != n:
            self.work, self.pair = np.empty((2 * t, n), np.float32), np.ones((2, n), np.float32)
            self.views = torch.from_numpy(self.work).split(t)
        (m_, d_), m, d = self.views, self.work[:t], self.work[t:]
        where = self.moving._buffers["thresholds"].numpy() * kappa  # type: ignore[union-attr]
        np.subtract(scores * np.float32(kappa), where.astype(np.float32), out=m)
        torch.sigmoid(m_, out=m_)
        torch.addcmul(m_, m_, m_, value=-1, out=d_)
        if due:
            kernel = d.sum(1) ** 2 / np.maximum(np.einsum("tn,tn->t", d, d), 1e-30)
            keeper.kernel.copy_(torch.from_numpy(kernel))
        self.pair[0] = actual
        yes, whole = (self.work @ self.pair.T).T  # (2 T,) each
        no, p = whole - yes, float(actual @ unit)
        worth = prices[:, :2] * (-kappa / n)
        low, high = worth.astype(np.float32).T @ d
        gradient = high - low
        gradient *= actual
        gradient += low
        fresh = np.empty((t, 6))
        fresh[:, 1], fresh[:, 3], fresh[:, 4], fresh[:, 5] = no[:t], yes[:t], no[t:], yes[t:]
        fresh[:, 0], fresh[:, 2] = n - p - no[:t], p - yes[:t]
        new = fresh + totals * fading
        unit = new / float(new[0, :4].sum())
        r = self.up.shape[0]
        sums = unit[:, :4] @ self.read
        below = np.maximum(sums[:, r : 2 * r], sums[:, 2 * r :])
        share_of = 1 / below
        share = sums[:, :r] * share_of
        scale = self.ends * share_of  # (2, T, r)
        tilt = scale @ self.up + (scale * share) @ self.down  # (2, T, 2)
        slopes = -(tilt * unit[:, 4:]).sum(2) * kappa  # (2, T)
        held = np.maximum(self.sign * slopes[1], self.guard)
        mu = -self.sign * slopes[0] / held
        found = tilt[0] + mu[:, None] * tilt[1]
        finite = float(found.sum())
        if finite - finite == 0:
            totals[...] = new
            prices[:, :2] = -found
        value = float((share @ self.mean).sum()) + self.offset
        return value, gradient
