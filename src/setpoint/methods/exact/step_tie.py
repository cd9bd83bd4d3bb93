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

import numpy as np
from torch import Tensor

from setpoint.methods.confusion.goal_over_cells import Lowered


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


# Which way a goal wants each membership to move, where it always wants the same.
#
# A row of class a in table g adds s to cell (g, a, decided) and 1 − s to (g, a, not decided). Where
# the objective and every constraint agree that more of it is never worse (recall, precision:
# positives), s may be asked to be *at most* the step and still ends on it; never better, at least.
# Where they disagree, or one changes its mind, s has to equal the step.
#
# Sums of fractions N/D have derivatives whose sign is that of N'D − ND'; the sign is read at many
# tables drawn at random, which finds every change of mind that is not a set of measure next to
# none.


DRAWS = 4096  #: tables at which the signs are read
TINY = 1e-9  #: a slope smaller than this share of the greatest is rounding


def directions(lowered: Lowered) -> np.ndarray:
    """For each (table, class), flattened: 1 up, −1 down, 0 neither; (places,).

    Of several classes 1 says that the right decision is never worse than a wrong one.

    Examples
    --------
    >>> from setpoint.goals import Goal, Task
    >>> from setpoint.methods.confusion.confusion_cells import Cells
    >>> goal = Goal.parse("maximize recall subject to precision >= 0.8")
    >>> directions(Lowered(goal, Cells(Task.binary())))
    array([-1,  1])
    """
    tables, side, _ = lowered.cells.shape
    cells = _drawn(tables * side * side)
    values, memory = lowered.read(cells)
    equal = lowered.host.equal > 0
    low, high = np.full(tables * side, np.inf), np.full(tables * side, -np.inf)
    for j in range(values.shape[1]):
        one = np.zeros_like(values)
        one[:, j] = -1.0
        worth = lowered.prices(cells, memory, one).reshape(-1, tables, side, side)
        gain = _gain(worth, lowered.cells.task.kind == "multiclass").reshape(len(worth), -1, side)
        if j and equal[j - 1]:  # an equation wants neither
            gain = np.concatenate([gain, -gain])
        scale = np.abs(gain).max(initial=TINY)
        least, most = gain.reshape(len(gain), -1).min(0), gain.reshape(len(gain), -1).max(0)
        low = np.minimum(low, np.where(np.abs(least) < TINY * scale, 0.0, least))
        high = np.maximum(high, np.where(np.abs(most) < TINY * scale, 0.0, most))
    return np.where((low >= 0) & (high > 0), 1, np.where((high <= 0) & (low < 0), -1, 0))


def _drawn(size: int) -> np.ndarray:
    """Tables of every kind: even ones, lopsided ones, nearly empty cells."""
    rng = np.random.default_rng(0)
    cells = rng.gamma(rng.choice([0.02, 0.1, 0.5, 2.0], (DRAWS, 1)), size=(DRAWS, size)) + 1e-4
    return cells / cells.sum(1, keepdims=True)


def _gain(worth: np.ndarray, several: bool) -> np.ndarray:
    """(T, tables, side): deciding rather than not; of several classes, right rather than wrong."""
    if not several:
        return worth[..., 1] - worth[..., 0]
    right = np.diagonal(worth, axis1=2, axis2=3)
    wrong = worth.copy()
    index = np.arange(worth.shape[-1])
    wrong[..., index, index] = -np.inf
    return right - wrong.max(-1)
