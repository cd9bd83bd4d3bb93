"""Search: several thresholds at once, from unrelaxed rates.

The thresholds of a goal that couples groups (equal positive rates), and the shifts of several
classes, cannot be read off one sorted list. Two thresholds are searched on the whole mesh of their
candidates; more of them start from equal shares decided in every slot and then move one at a time,
each to the best of its candidates. A candidate is judged by its objective plus a price times
what it breaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.implicit.level_thresholds import URGENT

CANDIDATES = 96  #: per threshold
SWEEPS = 4  #: over all thresholds in turn, at most; a search ends before where none moves
CLOSE = 0.02  #: a constraint so near its bound binds, and an equation so nearly met holds
CLOSE_ROWS = 2.0  #: and so many rows of the smallest class of a group away, where that is more
_MESH = 2  #: thresholds up to which every combination is tried: 96² tables of cells, not 96³


class ThresholdSearch:
    """Candidates of a goal, judged on rows.

    Parameters
    ----------
    lowered : Lowered
    place : numpy.ndarray
        (n,) of the rows.
    """

    def __init__(self, lowered: Lowered, place: np.ndarray) -> None:
        self.lowered = lowered
        self.equal = lowered.host.equal
        counts = np.bincount(place)
        self.close = max(CLOSE, CLOSE_ROWS / counts[counts > 0].min())

    def cost(self, cells: np.ndarray) -> np.ndarray:
        """Objective plus the price of what is broken, (c,) of cells (c, cells)."""
        values = self.lowered.read(cells)[0]
        return values[:, 0] + URGENT * np.maximum(self.excess(values), 0).sum(1)

    def excess(self, values: np.ndarray) -> np.ndarray:
        """By how much each constraint is broken, (c, m)."""
        violations = values[:, 1:]
        return np.where(self.equal > 0, np.abs(violations) - self.close, violations)

    def state(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which constraints bind, and which are broken, at one table of cells."""
        excess = self.excess(self.lowered.read(cells[None])[0])[0]
        binds = np.where(self.equal > 0, 1.0, (excess >= -self.close) * 1.0)
        return binds, (excess > self.close) * 1.0


def search_slots(
    lowered: Lowered,
    slot: np.ndarray,
    scores: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    step: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds (L,) of slots, which constraints bind (m,), which are broken (m,).

    Parameters
    ----------
    lowered : Lowered
    slot : numpy.ndarray
        (places,) the threshold that decides each place (table, actual).
    scores, place, weight : numpy.ndarray
        (n,) rows of positive weight.
    step : float
        How far beyond the outermost scores the outer candidates lie.
    """
    search, places = ThresholdSearch(lowered, place), len(slot)
    mass = np.bincount(place, weight, places)
    whole = mass.sum()
    cuts, high = [], []  # thresholds (c,) and decided weight by place (c, places), by slot
    for one in range(int(slot.max()) + 1):
        own = np.flatnonzero(slot[place] == one)
        order = own[np.argsort(-scores[own], kind="stable")]
        cut = borders(scores[order], step)
        weights = np.zeros((len(order) + 1, places))
        weights[np.arange(1, len(order) + 1), place[order]] = weight[order]
        cuts.append(cut[1])
        high.append(weights.cumsum(0)[cut[0]])

    def cells(decided: np.ndarray) -> np.ndarray:
        return np.stack([mass - decided, decided], 2).reshape(len(decided), -1) / whole

    if len(cuts) <= _MESH:
        mesh = np.meshgrid(*(np.arange(len(c)) for c in cuts), indexing="ij")
        at = np.stack([m.ravel() for m in mesh], 1)
    else:
        at = _alike(high, slot, mass)
    total = np.sum([h[at[:, i]] for i, h in enumerate(high)], 0)
    best = at[int(search.cost(cells(total)).argmin())].copy()
    for _ in range(SWEEPS if len(cuts) > _MESH else 0):
        before = best.copy()
        for i, h in enumerate(high):
            rest = np.sum([o[best[j]] for j, o in enumerate(high) if j != i], 0)
            best[i] = int(search.cost(cells(h + rest)).argmin())
        if (best == before).all():
            break
    chosen = np.sum([h[best[i]] for i, h in enumerate(high)], 0)
    binds, broken = search.state(cells(chosen[None])[0])
    return np.array([c[i] for c, i in zip(cuts, best, strict=True)]), binds, broken


def _alike(high: list[np.ndarray], slot: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Candidates at which every slot decides the same share of its rows, positives or negatives."""
    candidates = []
    levels = np.linspace(0, 1, CANDIDATES)
    classes = np.arange(len(slot)) % 2
    for kind in (classes >= 0, classes == 1, classes == 0):
        columns = []
        for i, h in enumerate(high):
            own = kind & (slot == i)
            share = h[:, own].sum(1) / max(mass[own].sum(), 1e-30)
            columns.append(np.abs(share[:, None] - levels).argmin(0))
        candidates.append(np.stack(columns, 1))
    return np.concatenate(candidates)


def search_shifts(
    lowered: Lowered,
    scores: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    step: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shifts (K,) of classes decided by argmax (score − shift), and the state of constraints.

    The better of two searches, from ``start`` and from no shifts: a class that was shifted out of
    sight would not come back by itself.

    Parameters
    ----------
    lowered : Lowered
    scores : numpy.ndarray
        (n, K).
    place, weight : numpy.ndarray
        (n,); ``place`` the index of (table, actual).
    start : numpy.ndarray
        (K,).
    step : float
    """
    search = ThresholdSearch(lowered, place)
    starts = [start] if not start.any() else [start, 0 * start]
    solutions = [_shifted(search, scores, place, weight, one, step) for one in starts]
    shifts, cells = min(solutions, key=lambda both: float(search.cost(both[1][None])[0]))
    return shifts, *search.state(cells)


def _shifted(
    search: ThresholdSearch,
    scores: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    step: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Shifts and cells where no shift alone can do better."""
    (n, k), size, whole = scores.shape, int(np.prod(search.lowered.cells.shape)), weight.sum()
    shifts, cells = start.astype(np.float64).copy(), np.zeros(0)
    for _ in range(SWEEPS):
        before = shifts.copy()
        for c in range(k):
            rest = scores - shifts
            rest[:, c] = -np.inf
            other = rest.argmax(1)
            margin = scores[:, c] - rest[np.arange(n), other]  # decided c where shift <= margin
            order = np.argsort(-margin, kind="stable")
            first, cuts = borders(margin[order], step)
            group = np.empty(n, np.intp)
            group[order] = np.searchsorted(first, np.arange(n), "right")  # first candidate with it
            base = np.bincount(place * k + other, weight, size)
            moved = np.zeros((len(cuts) + 1, size))
            np.add.at(moved, (group, place * k + c), weight)
            np.add.at(moved, (group, place * k + other), -weight)
            table = (base + moved.cumsum(0)[: len(cuts)]) / whole
            best = int(search.cost(table).argmin())
            shifts[c], cells = cuts[best], table[best]
        shifts -= shifts.mean()
        if np.allclose(shifts, before):
            break
    return shifts, cells


def borders(values: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Up to ``CANDIDATES`` borders of falling values: how many lie above each, and where it lies.

    Examples
    --------
    >>> borders(np.array([3.0, 1.0, 1.0]), 0.5)
    (array([0, 1, 3]), array([3.5, 2. , 0.5]))
    """
    inner = np.flatnonzero(values[1:] < values[:-1]) + 1
    many = np.unique(np.round(np.linspace(0, len(inner) - 1, CANDIDATES)).astype(int))
    inner = inner[many] if len(inner) else inner
    middle = (values[inner] + values[inner - 1]) / 2 if len(inner) else values[:0]
    if not len(values):
        return np.zeros(1, np.intp), np.zeros(1)
    ends = values[0] + step, values[-1] - step
    return np.r_[0, inner, len(values)], np.r_[ends[0], middle, ends[1]]


def as_arrays(*tensors: Any) -> list[np.ndarray]:
    """Tensors on the host; real numbers in float64."""
    columns = [x.detach().cpu() for x in tensors]
    return [(x.double() if x.is_floating_point() else x).numpy() for x in columns]
