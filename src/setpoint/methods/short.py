"""Short ways: the step of the commonest batch, written out in one function each.

A training step of a small network takes under a millisecond, and a call in Python costs as much as
a hundred multiplications. So for a batch of float32 logits (n,) on the host, one table, no weights
and no constraints, a program may offer its whole step without the calls: totals, prices, gradient
and value as the general way computes them, to rounding. Tests hold the two ways equal.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint.methods.confusion.batch import ones
from setpoint.methods.confusion.goal_over_cells import Few, Lowered


class Short(Protocol):
    """A step: moves totals and prices (arrays) and gives the loss and its gradient (n,)."""

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray] | None:
        """One step on logits and targets; old totals count with ``fading``. None: not this one."""
        ...


class ShortSoft:
    """Soft-set at one threshold with outer slopes alike: H = c + m p + s clip(p, a, b)."""

    def __init__(self, even: tuple[float, ...], few: Few, offset: float, mix: float) -> None:
        self.even, self.few, self.offset, self.mix = even, few, offset, mix

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray]:
        p, actual, n = torch.sigmoid(z).numpy(), y.numpy(), z.shape[0]
        unit, (a, b, m, s, c), mix = ones(n, p.dtype), self.even, self.mix
        middle = np.minimum(np.maximum(p, a), b)
        yes = float(actual @ unit)
        tp = s * float(middle @ actual) + m * float(p @ actual) + c * yes
        fp = s * float(middle @ unit) + m * float(p @ unit) + c * n - tp
        entropy = (float(F.softplus(z).numpy() @ unit) - float(torch.dot(z, y))) / n
        # slope of H, times what one more unit decided is worth, times p (1 − p), plus p − y
        tn_, fp_, fn_, tp_ = prices[0].tolist()
        share, plain = (mix - 1) / n, mix / n
        no, more = (fp_ - tn_) * share, (tp_ - fn_ - fp_ + tn_) * share
        gradient = actual * more
        gradient += no
        slope = np.multiply(middle == p, s, dtype=p.dtype)
        slope += m
        gradient *= slope
        gradient *= 1 - p
        gradient += plain
        gradient *= p
        gradient -= plain * actual
        fresh, old = (n - yes - fp, fp, yes - tp, tp), totals[0].tolist()
        new = [x + fading * o for x, o in zip(fresh, old, strict=True)]
        whole = sum(new)
        value, found = self.few.objective([x / whole for x in new])
        finite = whole + sum(found)
        if finite - finite == 0:
            totals[0], prices[0] = new, found
        return (1 - mix) * (value + self.offset) + mix * entropy, gradient


class ShortCosts:
    """Costs of an unconstrained goal, without truncation."""

    def __init__(self, few: Few, offset: float, floor: float) -> None:
        self.few, self.offset, self.floor = few, offset, floor

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray]:
        p, actual, n = torch.sigmoid(z).numpy(), y.numpy(), z.shape[0]
        unit = ones(n, p.dtype)
        decided = (z.numpy() >= 0).astype(p.dtype)
        yes, tp = float(actual @ unit), float(decided @ actual)
        fp = float(decided @ unit) - tp
        tn_, fp_, fn_, tp_ = (prices[0] / n).tolist()
        gradient = actual * (fn_ + tp_ - tn_ - fp_)
        gradient += tn_ + fp_
        gradient *= p
        gradient -= actual * (tp_ - fp_)
        if fp_:
            gradient -= fp_
        fresh, old = (n - yes - fp, fp, yes - tp, tp), totals[0].tolist()
        new = [x + fading * o for x, o in zip(fresh, old, strict=True)]
        mass = 1 / sum(new)
        cells = [x * mass for x in new]
        value, (tn_, fp_, fn_, tp_) = self.few.objective(cells)
        no, more = tn_ - fp_, tp_ - fn_
        mean = (cells[0] + cells[1]) * abs(no) + (cells[2] + cells[3]) * abs(more)
        poison = 0 * float(p @ unit)  # NaN where a logit is
        if mean - mean + poison == 0:
            scale, right = (1 / mean, self.floor) if mean > 0 else (0.0, 1.0)
            no, more = no * scale, more * scale
            totals[0] = new
            wrong, missed = max(-no, 0.0), max(-more, 0.0)
            prices[0] = max(no, 0.0) + right, wrong, missed, max(more, 0.0) + right
        return value + self.offset + poison, gradient


class ShortEntropy:
    """Cross-entropy, plain (weights None), or weighted by class: "balanced", or two numbers."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray]:
        p, actual, n = torch.sigmoid(z).numpy(), y.numpy(), z.shape[0]
        unit = ones(n, p.dtype)
        yes = float(actual @ unit)
        entropy = (float(F.softplus(z).numpy() @ unit) - float(torch.dot(z, y))) / n
        no_, yes_ = (prices[0] / n).tolist() if self.weights is not None else (1 / n, 1 / n)
        gradient = actual * (yes_ - no_)
        gradient += no_
        gradient *= p - actual
        a, b = totals[0].tolist()
        a, b = n - yes + fading * a, yes + fading * b
        if (a - a) + (b - b) == 0:
            totals[0] = a, b
            if self.weights is None:
                prices[0] = a / (a + b), b / (a + b)
            else:
                u, v = (b, a) if self.weights == "balanced" else self.weights
                if self.weights == "balanced" and not a * b:
                    u, v = float(a > 0), float(b > 0)
                mean = (u * a + v * b) / (a + b)
                prices[0] = (u / mean, v / mean) if mean > 0 else (u, v)
        return entropy, gradient


class ShortGrid:
    """Soft-set at several thresholds: two histograms over the pieces between all knots.

    For a goal of one fraction. Where all knots are multiples of 1/K, the piece of p is found by
    ⌊K p⌋ in a table; a p within rounding of a knot may fall to either side, where H is the same.
    """

    def __init__(self, tables: Any, lowered: Lowered, count: int, mix: float) -> None:
        self.borders, self.alpha, self.beta = tables
        self.count, self.mix, self.offset = count, mix, lowered.offset
        matrices = lowered.host
        self.read, self.top, self.down = matrices.read, matrices.up[0], matrices.down[0]
        self.scale = float(matrices.mix[0, 0])
        fine = range(4, 257)
        knots = np.asarray(self.borders, dtype=np.float64)
        even = [k for k in fine if np.abs(knots * k - np.round(knots * k)).max() < 1e-4]
        self.fine = even[0] if even else 0
        middles = (np.arange(self.fine + 1) + 0.5) / max(self.fine, 1)
        self.pieces = self.borders.searchsorted(middles, "right")

    def __call__(
        self, z: Tensor, y: Tensor, totals: Any, prices: Any, fading: float
    ) -> tuple[float, np.ndarray] | None:
        p, actual, n = torch.sigmoid(z).numpy(), y.numpy(), z.shape[0]
        unit, mix, beta, count = ones(n, p.dtype), self.mix, self.beta, self.count
        pieces = len(self.borders) + 1
        if not float(p @ unit) >= 0:  # NaN has no place in a histogram: the general way
            return None
        if self.fine:
            place = self.pieces.take((p * self.fine).astype(np.intp))
        else:
            place = self.borders.searchsorted(p, "right")
        place += actual.astype(np.intp) * pieces
        mass = np.bincount(place, None, 2 * pieces).reshape(2, pieces)
        first = np.bincount(place, p, 2 * pieces).reshape(2, pieces)
        cells = (mass @ self.alpha + first @ beta).reshape(2, count, 2)
        fresh = cells.swapaxes(0, 1).reshape(count, 4)
        entropy = (float(F.softplus(z).numpy() @ unit) - float(torch.dot(z, y))) / n
        worth = prices.reshape(count, 2, 2).swapaxes(0, 1).reshape(2, 2 * count)
        table = worth @ beta.T
        table *= (mix - 1) / n
        gradient = table.astype(p.dtype).reshape(-1).take(place)
        plain = mix / n
        gradient *= 1 - p
        gradient += plain
        gradient *= p
        gradient -= plain * actual
        new = totals * fading
        new += fresh
        whole = sum(new[0].tolist())
        sums = (new * (1 / whole)) @ self.read  # (T, 3): top, bottom, floor
        below = np.maximum(sums[:, 1], sums[:, 2])
        share = sums[:, 0] / below
        each = (self.scale / -count) / below
        found = each[:, None] * self.top
        found += (each * share)[:, None] * self.down
        value = self.scale * sum(share.tolist()) / count
        if value - value + whole - whole == 0:
            totals[...], prices[...] = new, found
        return (1 - mix) * (value + self.offset) + mix * entropy, gradient
