"""Hard rows: a goal on decisions, and its best point on a line of scores, exactly.

Along z + γ q a row changes sides where γ = −zᵢ/qᵢ, so the confusion cells are the same between two
neighbouring borders, and running sums over the sorted borders give them all: the best γ of any goal
of totals costs one sort. A threshold is the line q = −1; a step of a linear layer the line φ·v.

Of several classes a row may change sides up to K − 1 times; there the borders are those at which
its decided class meets another one, and a few of them are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import check_values, take_batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered

SLACK = 1e-9  #: by so much a constraint may be broken by rounding
DIGITS = 11  #: to which ranks are told apart
TRIED = 48  #: points of a line that are tried, of several classes
BLOCK = 2_000_000  #: numbers of a block of cells, over places
THIN = 5e-7  #: an interval thinner than this share of its ends is rounding to float32
OUTER = 1e-3  #: least width of the outermost intervals, as a share of the farthest border


class Rank(NamedTuple):
    """How good decisions are, less is better.

    First the excess of the constraints, then the objective, then the tightest constraint, which has
    the more to spare the less it is.
    """

    excess: float
    objective: float
    slack: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return self.excess <= 0


class HardRows:
    """The rows of a goal, to be decided.

    Parameters
    ----------
    goal : Goal
        With operating points lowered to constraints.
    task : Task
    outputs, target, weight, group
        As for a loss; the outputs give only the shape.
    """

    def __init__(
        self,
        goal: Goal,
        task: Task,
        outputs: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        group: Any = None,
    ) -> None:
        self.cells = Cells(task)
        self.lowered = Lowered(goal, self.cells, clear=False)
        host = {k: v.cpu() for k, v in group.items()} if isinstance(group, dict) else group
        host = host.cpu() if isinstance(host, Tensor) else host
        weight = None if weight is None else weight.cpu()
        batch = take_batch(self.cells, outputs.detach().cpu(), target.cpu(), weight, host)
        check_values(batch, self.cells)
        self.several = batch.logits.ndim == 2
        self.place = np.asarray(batch.place, dtype=np.intp)
        n = len(self.place)
        self.weight = np.ones(n) if batch.weight is None else batch.weight.double().numpy()
        self.places = self.cells.shape[0] * self.cells.side
        self.mass = np.bincount(self.place, self.weight, self.places)
        self.whole = max(float(self.mass.sum()) / self.cells.labels, 1e-300)

    # --- reading ---------------------------------------------------------------------------------

    def scores(self, outputs: Any) -> np.ndarray:
        """Outputs as they are decided on: (N,), or (N, K) of several classes; float64."""
        z = outputs.detach().double().cpu().numpy() if isinstance(outputs, Tensor) else outputs
        return z if self.several else z.reshape(-1)

    def decided(self, z: np.ndarray) -> np.ndarray:
        """Cells (1, cells) per unit of mass of decisions z >= 0, or argmax."""
        chosen = z.argmax(1) if self.several else (z >= 0).astype(np.intp)
        cell = self.place * self.cells.side + chosen
        size = self.places * self.cells.side
        return np.bincount(cell, self.weight, size)[None] / self.whole

    def rank(self, z: np.ndarray) -> Rank:
        """How good the decisions z >= 0 (argmax) are."""
        return Rank(*(float(x[0]) for x in self._ranked(self.decided(z))))

    def mistakes(self, z: np.ndarray, output: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that an output misses, and those that it decides wrongly.

        Of labels side by side the scores are those of all labels, row after row.
        """
        actual = self.place % self.cells.side
        if self.several:
            chosen = z.argmax(1)
            right, decided = actual == output, chosen == output
        else:
            z, actual = z[output::outputs], actual[output::outputs]
            right, decided = actual > 0, z >= 0
        return np.flatnonzero(right & ~decided), np.flatnonzero(decided & ~right)

    def _ranked(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The parts of the rank of each of T tables, (T,)."""
        values, _ = self.lowered.read(cells)
        violations = values[:, 1:]
        excess = worst = np.zeros(len(values))
        if violations.shape[1]:
            broken = np.where(self.lowered.host.equal > 0, np.abs(violations), violations)
            worst = broken.max(1)
            excess = np.where(worst > SLACK, worst, 0.0)
        # running sums round otherwise than counts: what differs by rounding is the same
        return excess.round(DIGITS), values[:, 0].round(DIGITS), worst.round(DIGITS)

    # --- the best point of a line ----------------------------------------------------------------

    def along(self, z: np.ndarray, q: np.ndarray) -> tuple[float, Rank]:
        """The γ at which decisions by z + γ q are best, and how good they are there.

        In the middle between two borders; of equally good places the widest.
        """
        low, high, rank = self._best(z, q, THIN)
        return (low + high) / 2, rank

    def threshold(self, z: np.ndarray) -> tuple[float, Rank]:
        """The threshold at which decisions z >= threshold are best, and how good they are there.

        One that float32 tells apart from the score below it.
        """
        low, high, rank = self._best(z, -np.ones_like(z), 0.0)
        middle = float(np.float32((low + high) / 2))
        return (middle if low < middle <= high else high), rank

    def _best(self, z: np.ndarray, q: np.ndarray, thin: float) -> tuple[float, float, Rank]:
        """The ends of the best interval of a line, and how good it is."""
        borders, blocks = self._tried(z, q) if self.several else self._borders(z, q)
        if not len(borders):
            return 0.0, 0.0, self.rank(z)
        ends = _with_ends(borders)
        width = np.diff(ends)
        least = thin * np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))
        best, start = None, 0
        for cells in blocks:
            parts = self._ranked(cells)
            wide = width[start : start + len(cells)]
            left = np.flatnonzero(wide > least[start : start + len(cells)])
            for part in parts:  # those that are best in it, of those that were best before
                here = part[left]
                left = left[here == here.min(initial=np.inf)]
            if len(left):
                i = int(left[wide[left].argmax()])
                interval = Rank(*(float(x[i]) for x in parts)), -float(wide[i]), start + i
                best = interval if best is None else min(best, interval)
            start += len(cells)
        assert best is not None  # the ends are wide
        return float(ends[best[2]]), float(ends[best[2] + 1]), best[0]

    def _borders(self, z: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, Iterator[np.ndarray]]:
        """The sorted borders (b,), and the cells between them, (b + 1, cells) in blocks."""
        moves = np.abs(q) > 1e-12 * max(float(np.abs(q).max(initial=0.0)), 1e-300)
        at = -z[moves] / q[moves]
        order = np.argsort(at, kind="stable")
        up = q[moves] > 0
        place, weight = self.place[moves], self.weight[moves]
        still = self.place[~moves], self.weight[~moves] * (z[~moves] >= 0)
        start = np.zeros(self.places) + np.bincount(still[0], still[1], self.places)
        start += np.bincount(place, weight * ~up, self.places)  # far below every border
        change = np.where(up, weight, -weight)[order]
        return at[order], self._cells(start, place[order], change)

    def _cells(
        self, start: np.ndarray, place: np.ndarray, change: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Running sums of changes of what is decided, block by block."""
        size = max(1, BLOCK // self.places)
        for i in range(-1, len(place), size):  # the first has no change before it
            here, by = place[max(i, 0) : i + size], change[max(i, 0) : i + size]
            lead = int(i < 0)
            yes = np.empty((len(here) + lead, self.places))
            for p in range(self.places):
                yes[:lead, p] = start[p]
                yes[lead:, p] = start[p] + np.cumsum(np.where(here == p, by, 0.0))
            start = yes[-1]
            yield np.stack([self.mass - yes, yes], 2).reshape(len(yes), -1) / self.whole

    def _tried(self, z: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, Iterator[np.ndarray]]:
        """Some borders of several classes, and the cells in the middle between them."""
        rows = np.arange(len(z))
        first = z.argmax(1)
        apart = z[rows, first][:, None] - z  # (N, K), >= 0
        closing = q - q[rows, first][:, None]  # the speed at which another class comes up
        with np.errstate(divide="ignore", invalid="ignore"):
            at = apart / closing
        at = at[np.isfinite(at) & (np.abs(closing) > 1e-12)]
        if not len(at):
            return at, iter(())
        shares = np.linspace(0, 1, TRIED)
        borders = np.unique(
            np.concatenate(
                [np.quantile(part, shares) for part in (at[at > 0], at[at < 0]) if len(part)]
                + [[-1e-9, 1e-9]]
            )
        )
        ends = _with_ends(borders)
        middle = (ends[1:] + ends[:-1]) / 2
        return borders, iter([np.concatenate([self.decided(z + g * q) for g in middle])])


def _with_ends(borders: np.ndarray) -> np.ndarray:
    """Sorted borders between two ends, as far out as a border usually is, and never too thin."""
    far = np.abs(borders)
    beyond = 2 * max(float(np.median(far)), OUTER * float(far.max()), 1e-12)
    return np.concatenate([[borders[0] - beyond], borders, [borders[-1] + beyond]])


# A walk of a linear layer on the goal itself: one exact line search after the other.
#
#     W ← W + γ* e_c vᵀ,      γ* = argmin over γ of the goal, at hard decisions by Φ (W + γ e_c vᵀ)ᵀ
#
# Φ are the rows' features with a 1 for the bias, c an output, v a direction: one feature, a random
# combination, a row that is missed minus one that is wrongly decided, the bias alone. Each step
# minimises the exact problem over s and γ together and is never worse than the last.


def walk(
    hard: HardRows,
    features: np.ndarray,
    weights: np.ndarray,
    steps: int,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[np.ndarray, Rank]:
    """The weights after so many line searches, and how good their decisions are.

    Parameters
    ----------
    hard : HardRows
    features : numpy.ndarray
        (n, h), without a column of ones.
    weights : numpy.ndarray
        (K, h + 1), the bias last; one output decides at 0.
    steps : int
        Line searches.
    seed : int
    stop : callable
        Asked before each: whether to end here.
    """
    mean, spread = features.mean(0), features.std(0)
    spread = np.where(spread > 1e-12, spread, 1.0)
    phi = np.concatenate([(features - mean) / spread, np.ones((len(features), 1))], 1)
    W = _inward(weights, mean, spread)
    z, size = phi @ W.T, max(float(np.linalg.norm(W)), 1e-6)
    best = hard.rank(hard.scores(z))
    for c, v in _directions(hard, phi, z, W, steps, np.random.default_rng(seed)):
        if stop():
            break
        q = np.zeros_like(z)
        q[:, c] = phi @ v
        gamma, rank = hard.along(hard.scores(z), hard.scores(q))
        if rank > best or not gamma:
            continue
        moved = W.copy()
        moved[c] += gamma * v
        scores = phi @ moved.T
        there = hard.rank(hard.scores(scores))  # as they are, not as the running sums say
        if there <= best:  # at the size it began with: decisions do not depend on it
            grown = max(float(np.linalg.norm(moved)), 1e-300) / size
            W[:], z[:], best = moved / grown, scores / grown, there
    return _outward(W, mean, spread), best


def _directions(
    hard: HardRows,
    phi: np.ndarray,
    z: np.ndarray,
    W: np.ndarray,
    steps: int,
    rng: np.random.Generator,
) -> Iterator[tuple[int, np.ndarray]]:
    """An output and a direction for each step; z and W are looked at as they have become."""
    h = phi.shape[1]
    for k in range(steps):
        c, v = int(rng.integers(len(W))), np.zeros(h)
        if k % 4 == 0:
            v[int(rng.integers(h))] = 1.0
        elif k % 4 == 1:
            v[:] = rng.normal(size=h)
        elif k % 4 == 2:
            v[-1] = 1.0
        else:
            missed, wrong = hard.mistakes(hard.scores(z), c, len(W))
            for rows, sign in ((missed, 1.0), (wrong, -1.0)):
                if len(rows):
                    v += sign * phi[int(rng.choice(rows))]
            if not v.any():
                v[:] = rng.normal(size=h)
        yield c, v * max(float(np.linalg.norm(W[c])), 1e-6) / float(np.linalg.norm(v))


def _inward(weights: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Weights of standardised features from weights of the features."""
    inner = weights[:, :-1] * spread
    return np.concatenate([inner, weights[:, -1:] + weights[:, :-1] @ mean[:, None]], 1)


def _outward(weights: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """And back."""
    outer = weights[:, :-1] / spread
    return np.concatenate([outer, weights[:, -1:] - outer @ mean[:, None]], 1)
