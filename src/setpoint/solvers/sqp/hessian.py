"""Curvature: H, an approximation of the inverse Hessian, by BFGS.

    H₊ = (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ,      ρ = 1 / sᵀy

y is *damped* where the curvature along s is too small for H₊ to stay positive definite,

    y ← θ y + (1 − θ) B s   so that   sᵀy = share · sᵀB s,         B = H⁻¹

and B s costs nothing: a step s = t d of d = −H w has B s = −t w. The first update scales H by
sᵀy / yᵀy. Two forms: the whole matrix, and the last pairs of s and y in compact form,

    H = γ I + [S, γY] M [S, γY]ᵀ

which asks for 2·memory·n numbers and a product with all columns at once.

References
----------
Nocedal, Wright, Numerical optimization, 2006, equations 6.17, 7.24 and 18.14–18.16.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SHARE = 0.2  #: of sᵀB s that sᵀy is made to have at least


def damped(s: Tensor, y: Tensor, Bs: Tensor) -> Tensor:
    """Y with enough curvature along s."""
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0 or sy >= SHARE * sBs:
        return y
    theta = (1 - SHARE) * sBs / (sBs - sy)
    return theta * y + (1 - theta) * Bs


class Full:
    """H as a matrix (n, n)."""

    def __init__(self, like: Tensor, scale: float = 1.0) -> None:
        self.like = like
        self.H = scale * torch.eye(len(like), dtype=like.dtype, device=like.device)
        self.fresh = True

    def apply(self, V: Tensor) -> Tensor:
        """H V, of a vector (n,) or columns (n, k)."""
        return self.H[0, 0] * V if self.fresh else self.H @ V

    def columns(self, index: Tensor) -> Tensor:
        """Columns of H, (n, k)."""
        return self.H[:, index]

    def update(self, s: Tensor, y: Tensor) -> None:
        """Learn from a step s and the change y of the gradient."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > 1e-300 or not yy > 0 or sy < 1e-14 * float(s.norm()) * yy**0.5:
            return
        if self.fresh:
            self.H.diagonal().fill_(sy / yy)
            self.fresh = False
        Hy = self.H @ y
        a = (0.5 * (1 + float(y @ Hy) / sy) / sy) * s - Hy / sy
        self.H.addmm_(torch.stack([s, a], 1), torch.stack([a, s]))

    def state(self) -> dict[str, Any]:
        return {"H": self.H.clone(), "fresh": self.fresh}

    def load(self, state: dict[str, Any]) -> None:
        self.H, self.fresh = state["H"].clone().to(self.like), bool(state["fresh"])


class Compact:
    """H by the last ``memory`` pairs."""

    def __init__(self, like: Tensor, memory: int, scale: float = 1.0) -> None:
        self.like, self.memory = like, memory
        self.S, self.Y = like.new_zeros((len(like), 0)), like.new_zeros((len(like), 0))
        self.gamma = scale
        self.fresh = True
        self._made()

    def _made(self) -> None:
        """M (2k, 2k) and the columns (n, 2k) it stands between."""
        S, Y, gamma = self.S, self.Y, self.gamma
        self.wide = torch.cat([S, gamma * Y], 1)
        k = S.shape[1]
        if not k:
            self.M = S.new_zeros((0, 0))
            return
        SY = S.T @ Y
        R = SY.triu()
        eye = torch.eye(k, dtype=S.dtype, device=S.device)
        Ri = torch.linalg.solve_triangular(R, eye, upper=True)
        first = Ri.T @ (torch.diag(SY.diagonal()) + gamma * (Y.T @ Y)) @ Ri
        self.M = torch.cat(
            [torch.cat([first, -Ri.T], 1), torch.cat([-Ri, torch.zeros_like(Ri)], 1)]
        )

    def apply(self, V: Tensor) -> Tensor:
        """H V, of a vector (n,) or columns (n, k)."""
        return self.gamma * V + self.wide @ (self.M @ (self.wide.T @ V))

    def columns(self, index: Tensor) -> Tensor:
        """Columns of H, (n, k)."""
        out = self.wide @ (self.M @ self.wide[index].T)
        out[index, torch.arange(len(index), device=index.device)] += self.gamma
        return out

    def update(self, s: Tensor, y: Tensor) -> None:
        """Learn from a step s and the change y of the gradient."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > 1e-300 or not yy > 0 or sy < 1e-14 * float(s.norm()) * yy**0.5:
            return
        keep = slice(max(0, self.S.shape[1] + 1 - self.memory), None)
        self.S = torch.cat([self.S[:, keep], s[:, None]], 1)
        self.Y = torch.cat([self.Y[:, keep], y[:, None]], 1)
        self.gamma, self.fresh = sy / yy, False
        self._made()

    def state(self) -> dict[str, Any]:
        return {"S": self.S.clone(), "Y": self.Y.clone(), "gamma": self.gamma, "fresh": self.fresh}

    def load(self, state: dict[str, Any]) -> None:
        self.S, self.Y = state["S"].clone().to(self.like), state["Y"].clone().to(self.like)
        self.gamma, self.fresh = float(state["gamma"]), bool(state["fresh"])
        self._made()


Hessian = Full | Compact
