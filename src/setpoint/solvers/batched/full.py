"""The whole inverse Hessian of each row: H (B, n, n), by BFGS.

    H⁺ = (I − ρ s y') H (I − ρ y s') + ρ s s',    ρ = 1 / s'y

Coordinates that rest on a bound are held still: among the free ones F the inverse of the Hessian's
block is (B_FF)⁻¹ = H_FF − H_FN (H_NN)⁻¹ H_NF, not H_FF.

References
----------
Nocedal, Wright, Numerical optimization, 2006, equation 6.17.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)
class FullMemory:
    """H (B, n, n), and which rows have not been updated yet."""

    h: Tensor
    fresh: Tensor  # (B,) bool

    @classmethod
    def start(cls, x: Tensor) -> FullMemory:
        """The identity for each row of x (B, n)."""
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return cls(eye.expand(len(x), -1, -1).clone(), x.new_ones(len(x)).bool())

    def take(self, index: Tensor) -> FullMemory:
        """The memory of some rows."""
        return FullMemory(self.h.index_select(0, index), self.fresh.index_select(0, index))

    def put(self, index: Tensor, other: FullMemory) -> None:
        """Write the memory of some rows."""
        self.h.index_copy_(0, index, other.h)
        self.fresh.index_copy_(0, index, other.fresh)

    def apply(self, vectors: Tensor, free: Tensor | None) -> Tensor:
        """(B, k, n) H v of each vector v, among the free coordinates (B, n) where given."""
        if free is None:
            return vectors @ self.h
        still = (~free).to(vectors.dtype)
        u = (vectors * free[:, None]) @ self.h
        held = still[:, :, None] * still[:, None, :] * self.h
        held = held + torch.diag_embed(free.to(vectors.dtype))
        factor = torch.linalg.cholesky_ex(held)[0]
        z = torch.cholesky_solve((u * still[:, None]).mT, factor).mT
        found = u - z @ self.h
        found = torch.where(found.isfinite(), found, u)  # a block that lost its definiteness
        return found * free[:, None]

    def update(self, s: Tensor, y: Tensor, where: Tensor) -> None:
        """Take in the pair (s, y) (B, n) in the rows ``where`` (B,), which have s'y > 0."""
        sy = (s * y).sum(-1)
        yy = (y * y).sum(-1)
        where = where & (sy > 0) & (yy > 0)
        first = where & self.fresh
        scale = torch.where(first, sy / torch.where(first, yy, 1.0), 1.0)
        self.h.mul_(scale[:, None, None])
        self.fresh = self.fresh & ~where
        s, y = (torch.where(where[:, None], a, torch.zeros_like(a)) for a in (s, y))
        rho = torch.where(where, 1 / torch.where(where, sy, 1.0), 0.0)
        hy = (self.h @ y[:, :, None])[:, :, 0]
        both = rho * (1 + rho * (y * hy).sum(-1))
        left = torch.stack([both[:, None] * s - rho[:, None] * hy, -rho[:, None] * s], dim=2)
        right = torch.stack([s, hy], dim=1)
        self.h.baddbmm_(left, right)
