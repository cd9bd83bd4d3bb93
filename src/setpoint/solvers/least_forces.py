"""The forces that come nearest to a balance: least squares over a box, one-sided at bounds.

    minimise ½ ‖r̂(λ)‖²   over   low <= λ <= high,      r(λ) = g + Jᵀ λ

r̂ is r where a coordinate is free, min(r, 0) where it is at its lower bound (the bound holds up the
rest), max(r, 0) at its upper one, 0 at both. Convex and piecewise quadratic in λ. With J at hand by
bounded least squares on the coordinates that count, which gives a direction that descends; without
it, from products with J and Jᵀ alone, by spectral projected gradients, whose steps are 1/curvature
along the last one. A few constraints that touch everything beside thousands that touch a row each
are a few great eigenvalues beside equal ones, which such steps find in a few tens.

References
----------
Stark, Parker, Bounded-variable least squares, 1995; Birgin, Martínez, Raydan, Nonmonotone spectral
projected gradient methods on convex sets, 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import lsq_linear
from torch import Tensor

CHANGES = 30  #: of the set of coordinates that count
HALVINGS = 20  #: of a step that goes too far
ITERATIONS = 150  #: of the spectral gradients
MEMORY = 10  #: values that a new one must not exceed all

Box = tuple[Tensor, Tensor]  #: the least and the greatest λ
Counted = Callable[[Tensor], Tensor]  #: r -> r̂


@dataclass(frozen=True, eq=False)
class Resting:
    """Which coordinates rest on a bound, (p,) each."""

    low: Tensor
    high: Tensor

    def counted(self, r: Tensor) -> Tensor:
        """r̂: what no bound holds up."""
        r = torch.where(self.low, r.clamp(max=0), r)
        return torch.where(self.high, r.clamp(min=0), r)

    def counts(self, r: Tensor) -> Tensor:
        """Which coordinates count, or would as soon as r moves the wrong way."""
        return ~(self.low & (r > 0)) & ~(self.high & (r < 0)) & ~(self.low & self.high)

    def cpu(self) -> Resting:
        """The same on the host."""
        return Resting(self.low.cpu(), self.high.cpu())


def direct(rows: Tensor, g: Tensor, resting: Resting, box: Box) -> Tensor:
    """λ (k,) from J (k, p), both in double precision on the host."""
    low, high = (side.numpy() for side in box)
    paid = torch.zeros(len(rows), dtype=rows.dtype).clamp(*box)
    r = g + paid @ rows
    value = float(resting.counted(r).square().sum())
    for _ in range(CHANGES):
        kept = resting.counts(r)
        matrix, right = rows[:, kept].T.numpy(), -g[kept].numpy()
        if not matrix.size:
            break
        aim = torch.as_tensor(_bounded(matrix, right, low, high))
        for halving in range(HALVINGS):
            tried = paid + 0.5**halving * (aim - paid)
            after = g + tried @ rows
            reached = float(resting.counted(after).square().sum())
            if reached < value:
                break
        else:
            break
        paid, r, before, value = tried, after, value, reached
        settled = halving == 0 and torch.equal(resting.counts(r), kept)
        if settled or before - value <= 1e-14 * before:
            break
    return paid


def _bounded(
    matrix: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The λ in a box with the least ‖A λ − b‖, by way of the small triangle of A = Q R."""
    if matrix.shape[0] > matrix.shape[1]:
        q, matrix = np.linalg.qr(matrix)
        right = q.T @ right
    return lsq_linear(matrix, right, (low, high), method="bvls").x


def spectral(
    pull: Callable[[Tensor], Tensor],
    push: Callable[[Tensor], Tensor],
    g: Tensor,
    counted: Counted,
    box: Box,
    start: Tensor,
    sizes: Tensor,
) -> Tensor:
    """λ (m,) from products alone.

    Parameters
    ----------
    pull, push : callable
        λ -> Jᵀ λ (p,) and r -> J r (m,).
    g : torch.Tensor
        (p,)
    counted : callable
        r -> r̂; minus the projection of −r onto the directions that are open.
    box : tuple of torch.Tensor
    start : torch.Tensor
        Where to begin; the answer is no worse.
    sizes : torch.Tensor
        (m,) about the norms of the rows of J, 0 for those that are to be left alone.
    """
    # in units of 1/norm all rows are alike, and a step that suits one suits the others
    units = torch.where(sizes > 0, 1 / sizes.clamp(min=torch.finfo(sizes.dtype).tiny), 0)
    paid = start.clamp(*box)
    r = g + pull(paid)
    left = counted(r)
    value = float(left.square().sum())
    best, least, values, length = paid, value, [value], 1.0
    slope = push(left)
    for _ in range(ITERATIONS):
        way = (paid - length * units.square() * slope).clamp(*box) - paid
        along, falls = pull(way), float((slope * way).sum())
        if not falls < 0:
            break
        share, highest = 1.0, max(values[-MEMORY:])
        for _ in range(HALVINGS):  # r is linear along the way: no passes are needed
            left = counted(r + share * along)
            value = float(left.square().sum())
            if value <= highest + 1e-4 * share * falls:
                break
            share *= 0.5
        paid, r = paid + share * way, r + share * along
        values.append(value)
        if value < least:
            best, least = paid, value
        before, slope = slope, push(left)
        bent = float(((slope - before) * way).sum())
        square = float((way * sizes).square().sum())
        length = min(max(share * square / bent, 1e-10), 1e10) if bent > 0 else 1e10
    return best
