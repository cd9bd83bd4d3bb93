"""The merit of a point, row by row: what the line search descends.

    φ(x; μ) = μ f(x) + V(x),    V = Σ max(cᵢ, 0) + Σ |eⱼ|

and its model along a step s: φ̃(s) = μ (f + g's) + Σ max(c + J s, 0) + Σ |e + J s|. All rows at
once: f (B,), v = (c, e) (B, p), ``equal`` (p,) says which sides are equalities.
"""

from __future__ import annotations

import torch
from torch import Tensor


def broken(v: Tensor, equal: Tensor) -> Tensor:
    """(B, p) by how much each side is broken: max(c, 0), |e|."""
    return torch.where(equal, v.abs(), v.clamp_min(0))


def total(v: Tensor, equal: Tensor) -> Tensor:
    """(B,) V, the sum of what is broken."""
    return broken(v, equal).sum(dim=-1)


def greatest(v: Tensor, equal: Tensor) -> Tensor:
    """(B,) by how much the most broken side is broken."""
    if v.shape[-1] == 0:
        return v.new_zeros(v.shape[:-1])
    return broken(v, equal).amax(dim=-1)


def weights(v: Tensor, equal: Tensor) -> Tensor:
    """(B, p) ∂V/∂v: 1 where an inequality is broken, the sign of an equality."""
    return torch.where(equal, v.sign(), (v > 0).to(v.dtype))


def slope(mu: Tensor, gd: Tensor, v: Tensor, jd: Tensor, equal: Tensor) -> Tensor:
    """(B,) derivative of φ along d, from g'd (B,) and J d (B, p)."""
    at_kink = torch.where(equal, jd.abs(), jd.clamp_min(0))
    parts = torch.where(v == 0, at_kink, weights(v, equal) * jd)
    return mu * gd + parts.sum(dim=-1)


def pulled(mu: Tensor, g: Tensor, y: Tensor, jacobian: Tensor) -> Tensor:
    """(B, n) μ g + J'y."""
    return mu[:, None] * g + torch.einsum("bp,bpn->bn", y, jacobian)
