"""Dealing groups of rows to parts, so that each part has its share of each class.

Part b, which is to have the share t_b, gets the groups that keep

    Σ_b Σ_c (f_bc / n_c − t_b)² / t_b

small, where f_bc are its rows of class c and n_c all rows of that class. Groups with the same rows
of each class are dealt together: the minimum over real numbers of groups is known in closed form,
its whole part is dealt at random, the rest one by one. So rows that are groups of their own are
dealt within one row of t_b n_c, and a million of them take no longer than a sort.
"""

from __future__ import annotations

import numpy as np


def deal(
    counts: np.ndarray, kinds: np.ndarray, shares: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Deal groups to parts.

    Parameters
    ----------
    counts : numpy.ndarray, shape (s, c)
        Rows of each class in a group of each kind.
    kinds : numpy.ndarray of int, shape (g,)
        The kind of each group.
    shares : numpy.ndarray, shape (b,)
        The share of the rows that each part is to have; positive, of sum 1.
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray of int, shape (g,)
        The part of each group.

    Examples
    --------
    >>> rows = deal(np.eye(2), np.array([0] * 8 + [1] * 4), np.array([0.75, 0.25]),
    ...             np.random.default_rng(0))
    >>> np.bincount(rows[:8]).tolist(), np.bincount(rows[8:]).tolist()
    ([6, 2], [3, 1])
    """
    many = np.bincount(kinds, minlength=len(counts))
    shuffled = rng.permutation(len(kinds))
    shuffled = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    ends = np.cumsum(many)
    rows = many @ counts  # (c,) rows of each class
    relative = counts / np.maximum(rows, 1)  # (s, c)
    sizes = counts.sum(1) / max(rows.sum(), 1)  # (s,)
    filled = np.zeros((len(shares), counts.shape[1]))  # shares of each class dealt, (b, c)
    dealt = np.zeros(len(shares))  # shares of all rows dealt, (b,)
    part = np.empty(len(kinds), dtype=np.intp)
    # The large first: the small ones then level out what those left uneven.
    for kind in np.argsort(-counts.sum(1), kind="stable"):
        if not many[kind]:
            continue
        numbers = _whole(filled, relative[kind], shares, int(many[kind]))
        one = filled + numbers[:, None] * relative[kind]
        open_ = np.ones(len(shares), dtype=bool)
        for _ in range(many[kind] - numbers.sum()):
            cost = (2 * (one - shares[:, None]) * relative[kind]).sum(1)
            cost += 2 * (dealt + numbers * sizes[kind] - shares) * sizes[kind]  # parts of one size
            cost += (relative[kind] ** 2).sum() + sizes[kind] ** 2
            cost = np.where(open_, cost / shares, np.inf)
            tied = np.flatnonzero(cost <= cost.min() + 1e-12)
            taken = rng.choice(tied)
            numbers[taken] += 1
            open_[taken] = False
            one[taken] += relative[kind]
        members = shuffled[ends[kind] - many[kind] : ends[kind]]
        part[members] = np.repeat(np.arange(len(shares)), numbers)
        filled += numbers[:, None] * relative[kind]
        dealt += numbers * sizes[kind]
    return part


def _whole(filled: np.ndarray, group: np.ndarray, shares: np.ndarray, many: int) -> np.ndarray:
    """The whole part of the best real numbers x_b of groups: x_b = (λ t_b − a_b)₊ / q, Σ x_b = m.

    Here a_b = Σ_c g_c (f_bc − t_b) and q = Σ_c g_c², f and g in shares of each class.
    """
    slope = ((filled - shares[:, None]) * group).sum(1)  # a, (b,)
    curve = float((group**2).sum())
    active = np.ones(len(shares), dtype=bool)
    while True:
        level = (many * curve + slope[active].sum()) / shares[active].sum()
        numbers = np.where(active, (level * shares - slope) / curve, 0.0)
        if (numbers >= -1e-9).all():
            return np.floor(np.maximum(numbers, 0.0) + 1e-9).astype(int)
        active &= numbers > 0
