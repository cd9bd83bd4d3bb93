"""Every decision a linear score can make on a few points, and the best of them, by counting.

Binary: a labeling s ∈ {0, 1}ⁿ is *reachable* iff some (w, b) has sᵢ = 1{w·xᵢ + b > 0} and no
w·xᵢ + b is 0. Since (w, b) may be scaled, that is the linear program

    find (w, b) with (2sᵢ − 1)(w·xᵢ + b) ≥ 1 for every i.

K classes: s ∈ {0, …, K−1}ⁿ is reachable iff some W, b have z_c(x) = w_c·x + b_c with
z_{sᵢ}(xᵢ) − z_c(xᵢ) ≥ 1 for every i and c ≠ sᵢ.

Labelings are built point by point: one that fails on the first k points fails on all, so its
continuations need no program of their own. Exchanging classes exchanges nothing else, hence only
labelings whose classes first occur in the order 0, 1, 2 are decided; the others follow.

Values are fractions: no rounding decides whether 3 of 5 is at least 0.6. A value is ``None`` where
a constraint is broken, and a precision of no decisions at all keeps no constraint.
Nothing here looks at the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag

Labels = tuple[int, ...]
Value = Fraction | None


@dataclass(frozen=True, eq=False)
class Reached:
    """A labeling and scores that make it: z = x @ w + b, every margin at least 1.

    Binary: w (d,), b a number. K classes: w (d, K), b (K,).
    """

    labels: Labels
    w: np.ndarray
    b: np.ndarray


# --- which labelings are reachable -----------------------------------------------------------


def reachable(points: np.ndarray) -> list[Reached]:
    """Every labeling by 1{w·x + b > 0} of points (n, d), each with its witness."""
    # z₁ − z₀ of two classes is one affine score, and every affine score is such a difference
    return [
        Reached(one.labels, one.w[:, 1] - one.w[:, 0], one.b[1] - one.b[0])
        for one in reachable_classes(points, 2)
    ]


def reachable_classes(points: np.ndarray, classes: int) -> list[Reached]:
    """Every labeling by the highest of ``classes`` affine scores, each with its witness."""
    whole = np.column_stack([points, np.ones(len(points))])  # (n, d + 1)
    kept: list[tuple[Labels, np.ndarray]] = [((), np.empty(0))]
    for upto in range(1, len(points) + 1):
        longer = [
            (*labels, c)
            for labels, _ in kept
            for c in range(min(max(labels, default=-1) + 2, classes))
        ]
        found = zip(longer, witnesses(whole[:upto], longer, classes), strict=True)
        kept = [(labels, scores) for labels, scores in found if scores is not None]
    return [Reached(*renamed) for labels, found in kept for renamed in _renamings(labels, found)]


def witnesses(whole: np.ndarray, labelings: list[Labels], classes: int) -> list[np.ndarray | None]:
    """For each labeling, scores (d + 1, K) of rows (n, d + 1) with every margin ≥ 1, or None.

    min ξ with margins ≥ 1 − ξ, ξ ≥ 0, is 0 where there are such scores and 1 where not: any ξ < 1
    leaves positive margins, which can be scaled up to 1. So one program decides all labelings, side
    by side, and says it twice over: an answer between 0 and 1 would be no answer.
    """
    size = classes * whole.shape[1]
    ahead = [_margins(whole, labels, classes) for labels in labelings]  # (n (K − 1), size) each
    blocks = [np.column_stack([-one, -np.ones(len(one))]) for one in ahead]
    answer = linprog(
        np.tile(np.r_[np.zeros(size), 1.0], len(blocks)),
        A_ub=block_diag(blocks, format="csr"),
        b_ub=-np.ones(sum(len(one) for one in blocks)),
        bounds=([(None, None)] * size + [(0, None)]) * len(blocks),
    )
    assert answer.status == 0, answer.message
    parts = answer.x.reshape(len(blocks), size + 1)
    short = parts[:, -1]
    assert (np.minimum(short, np.abs(short - 1)) < 1e-7).all(), "neither separable nor not"
    for one, part in zip(ahead, parts, strict=True):
        assert part[-1] > 0.5 or (one @ part[:-1] > 0.999).all()
    return [None if part[-1] > 0.5 else part[:-1].reshape(classes, -1).T for part in parts]


def _margins(whole: np.ndarray, labels: Labels, classes: int) -> np.ndarray:
    """The rows m with m·θ = z_own(x) − z_other(x), for every point and every other class."""
    rows = []
    for row, own in zip(whole, labels, strict=True):
        for other in set(range(classes)) - {own}:
            margin = np.zeros((classes, len(row)))
            margin[own], margin[other] = row, -row
            rows.append(margin.ravel())
    return np.array(rows)


def _renamings(
    labels: Labels, scores: np.ndarray
) -> Iterator[tuple[Labels, np.ndarray, np.ndarray]]:
    """The labeling under every exchange of classes, each labeling once."""
    seen = set()
    for order in permutations(range(scores.shape[1])):
        renamed = tuple(order[c] for c in labels)
        if renamed not in seen:
            seen.add(renamed)
            moved = np.empty_like(scores)
            moved[:, list(order)] = scores
            yield renamed, moved[:-1], moved[-1]


# --- what a labeling is worth ----------------------------------------------------------------


def _exact(x: float) -> Fraction:
    """A bound as it is written: 0.6 is 3/5, not the float beside it."""
    return Fraction(str(x))


def _weights(y: Sequence[int], weight: Sequence[float] | None) -> list[Fraction]:
    return [Fraction(float(x)) for x in (weight if weight is not None else [1.0] * len(y))]


def counts(
    labels: Labels, y: Sequence[int], weight: Sequence[float] | None = None, of: int = 1
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """TP, FP, FN, TN of one class against the rest."""
    total = {(s, t): Fraction(0) for s in (True, False) for t in (True, False)}
    for s, t, w in zip(labels, y, _weights(y, weight), strict=True):
        total[s == of, t == of] += w
    return total[True, True], total[True, False], total[False, True], total[False, False]


@dataclass(frozen=True)
class Fpor:
    """Recall, where precision ≥ alpha."""

    alpha: float

    def __call__(self, labels: Labels, y: Sequence[int], weight: Sequence[float] | None) -> Value:
        tp, fp, fn, _ = counts(labels, y, weight)
        if tp + fp == 0 or tp / (tp + fp) < _exact(self.alpha):
            return None
        return tp / (tp + fn)


@dataclass(frozen=True)
class Frop:
    """Precision, where recall ≥ alpha > 0."""

    alpha: float

    def __call__(self, labels: Labels, y: Sequence[int], weight: Sequence[float] | None) -> Value:
        tp, fp, fn, _ = counts(labels, y, weight)
        return None if tp / (tp + fn) < _exact(self.alpha) else tp / (tp + fp)


@dataclass(frozen=True)
class Ofbs:
    """F_β = (1 + β²) TP / ((1 + β²) TP + FP + β² FN)."""

    beta: float

    def __call__(self, labels: Labels, y: Sequence[int], weight: Sequence[float] | None) -> Value:
        tp, fp, fn, _ = counts(labels, y, weight)
        square = _exact(self.beta) ** 2
        return (1 + square) * tp / ((1 + square) * tp + fp + square * fn)


@dataclass(frozen=True)
class MacroF1:
    """The mean over classes of 2TP / (2TP + FP + FN); every class has a row."""

    classes: int = 3

    def __call__(self, labels: Labels, y: Sequence[int], weight: Sequence[float] | None) -> Value:
        each = [counts(labels, y, weight, of=c) for c in range(self.classes)]
        ratios = [2 * tp / (2 * tp + fp + fn) for tp, fp, fn, _ in each]
        return sum(ratios, Fraction(0)) / self.classes


@dataclass(frozen=True)
class AccuracyAtPrecision:
    """Accuracy, where the precision of class ``of`` ≥ alpha."""

    of: int
    alpha: float

    def __call__(self, labels: Labels, y: Sequence[int], weight: Sequence[float] | None) -> Value:
        tp, fp, _, _ = counts(labels, y, weight, of=self.of)
        if tp + fp == 0 or tp / (tp + fp) < _exact(self.alpha):
            return None
        rows = _weights(y, weight)
        right = [w for s, t, w in zip(labels, y, rows, strict=True) if s == t]
        return sum(right, Fraction(0)) / sum(rows, Fraction(0))


def best(
    reached: Sequence[Reached],
    value: Callable[[Labels, Sequence[int], Sequence[float] | None], Value],
    y: Sequence[int],
    weight: Sequence[float] | None = None,
) -> Value:
    """The best value over reachable labelings; None where not one is feasible."""
    found = (value(one.labels, y, weight) for one in reached)
    return max((x for x in found if x is not None), default=None)
