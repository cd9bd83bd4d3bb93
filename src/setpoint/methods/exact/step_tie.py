"""The tie: a continuous function that is zero exactly where s is the step 1{a > t}.

    H_t(a, s) = s + [s + a − 1 − t]₊ − [s + a − t]₊,      s ∈ [0, 1],

    H = 0  ⟺  s = 1{a > t},  provided a ≠ t.

At a = t, the *singular* point, every s has H = 0: nothing ties them. Written out,

    [H]₊  = min(s, [t − a]₊)          s exceeds the step
    [−H]₊ = min(1 − s, [a − t]₊)      s falls short of it
    |H|   = min(|s − 1{a > t}|, |a − t|).

Everything works on tensors of one shape, with subgradients by autograd.

References
----------
Peng, Travadi, He, Cui, Sun, Exact Reformulation and Optimization for Direct Metric Optimization in
Binary Imbalanced Classification, arXiv 2507.15240 (eq. 3.3, there with t = 0).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor


def tie(a: Tensor, s: Tensor, t: Any) -> Tensor:
    """H_t(a, s), as it is defined."""
    return s + (s + a - 1 - t).clamp(min=0) - (s + a - t).clamp(min=0)


def exceeds(a: Tensor, s: Tensor, t: Any) -> Tensor:
    """[H]₊: by how much s is more than the step allows."""
    return s.minimum((t - a).clamp(min=0))


def falls_short(a: Tensor, s: Tensor, t: Any) -> Tensor:
    """[−H]₊: by how much s is less than the step demands."""
    return (1 - s).minimum((a - t).clamp(min=0))


def apart(a: Tensor, s: Tensor, t: Any) -> Tensor:
    """|H|: by how much s and the step differ."""
    return exceeds(a, s, t) + falls_short(a, s, t)
