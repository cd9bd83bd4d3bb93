"""Small problems whose best linear decision is known: points, labels, weights, what is wanted.

Weights are multiples of ½, so that sums of them are exact in any precision; bounds are often met
exactly (3 of 5 where 0.6 is asked), which is where rounding would show.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tests.oracles.linear_labelings import (
    AccuracyAtPrecision,
    Fpor,
    Frop,
    MacroF1,
    Ofbs,
    best,
    reachable,
    reachable_classes,
)

ALPHAS = (0.5, 0.6, 0.75, 0.8, 1.0)
BETAS = (0.5, 1.0, 2.0)
WEIGHTS = (0.5, 1.0, 1.5, 2.0, 3.0)  #: sums of them are exact
GOALS: dict[str, Any] = {
    "fpor": lambda i: Fpor(ALPHAS[(i + i // 20) % 5]),
    "frop": lambda i: Frop(ALPHAS[(i + i // 20) % 5]),
    "ofbs": lambda i: Ofbs(BETAS[i % 3]),
}
SETS = [(n, d, kind) for n in range(4, 9) for d in (1, 2) for kind in ("cloud", "grid")]
#: seeds whose best labeling is no cut of a logistic regression's score, whatever the cut
HARD = {
    "fpor": "28 72 90 102 116 129 131 143 154 157 168 174 184 240 242 272 282 291 299 309",
    "frop": "1 3 6 13 32 41 56 64 106 134 138 143 154 174 181 183 185 187 188 198",
    "ofbs": "11 14 23 30 61 62 65 75 104 108 117 122 129 131 135 145 154 168 172 180",
}
INSTANCES = range(60)  #: 20 with labels at random, 20 with positives in the middle, 20 hard ones


@cache
def points(n, d, kind, seed=0):
    """Points in general position, or on a grid: with duplicates and many on one line."""
    rng = np.random.default_rng([n, d, kind == "grid", seed])
    if kind == "grid":
        return rng.integers(-2, 3, size=(n, d)).astype(float)
    return rng.normal(size=(n, d)).astype(np.float32).astype(float)


@cache
def truth(n, d, kind):
    """Reachable labelings of those points."""
    return reachable(points(n, d, kind))


@dataclass(frozen=True, eq=False)
class Instance:
    """Points, labels of both classes, weights in one of three, and what is wanted of them."""

    X: np.ndarray
    y: np.ndarray
    weight: Any
    wanted: Any
    reached: list

    @property
    def best(self) -> Any:
        """The best value of a reachable labeling, by counting."""
        found = best(self.reached, self.wanted, self.y.tolist(), self.weight)
        return None if found is None else float(found)

    def value(self, labels):
        """The value of one labeling; None where a constraint is broken."""
        return self.wanted(labels, self.y.tolist(), self.weight)

    @property
    def goal(self):
        """The same in the language of goals."""
        match self.wanted:
            case Fpor(alpha):
                return f"maximize recall subject to precision >= {alpha}"
            case Frop(alpha):
                return f"maximize precision subject to recall >= {alpha}"
            case Ofbs(beta):
                return f"maximize f_beta({beta})"
            case MacroF1():
                return "maximize macro(f1)"
            case AccuracyAtPrecision(of, alpha):
                return f"maximize accuracy subject to precision.of({of}) >= {alpha}"


@cache
def instance(goal, i) -> Instance:
    """The i-th: labels at random, then with the positives in the middle, then hard ones.

    The first are drawn again a few times where some line has the positives alone.
    """
    part, k = divmod(i, len(SETS))
    if part == 2:
        return hard(goal, int(HARD[goal].split()[k]))
    size = SETS[k]
    X, reached, rng = points(*size), truth(*size), np.random.default_rng([ord(goal[-1]), i])
    perfect = {one.labels for one in reached}
    y = np.zeros(len(X), int)
    for _ in range(1 if i % 5 == 0 else 10):
        first = rng.permutation(len(X))
        if part == 1:
            first = np.argsort(np.abs(X - np.median(X, axis=0)).sum(1), kind="stable")
        y = np.zeros(len(X), int)
        y[first[: rng.integers(1, len(X) - part)]] = 1
        if tuple(y.tolist()) not in perfect:
            break
    weight = rng.choice(WEIGHTS, len(X)) if i % 3 == 0 else None
    return Instance(X, y, weight, GOALS[goal](i), reached)


def hard(goal, seed) -> Instance:
    """Size, points, labels, weights and what is wanted, all from one seed."""
    rng = np.random.default_rng([ord(goal[-1]), seed, 7])
    n, d = int(rng.integers(5, 9)), int(rng.integers(1, 3))
    X = points(n, d, ("cloud", "grid")[rng.integers(2)], seed)
    y = np.zeros(n, int)
    y[rng.permutation(n)[: rng.integers(1, n)]] = 1
    weight = rng.choice(WEIGHTS, n) if rng.integers(3) == 0 else None
    return Instance(X, y, weight, GOALS[goal](int(rng.integers(15))), reachable(X))


# --- three classes ---------------------------------------------------------------------------

CLASS_SETS = [(n, d, kind) for n in (6, 5, 4) for d in (1, 2) for kind in ("cloud", "grid")]
CLASS_GOALS: dict[str, Any] = {
    "macro": lambda i: MacroF1(),
    "floor": lambda i: AccuracyAtPrecision(i % 3, ALPHAS[i % 5]),
}


@cache
def class_truth(n, d, kind):
    """Labelings of those points that three scores reach."""
    return reachable_classes(points(n, d, kind), 3)


@cache
def class_instance(goal, i) -> Instance:
    """As above; each of the three classes has a row."""
    size = CLASS_SETS[i % len(CLASS_SETS)]
    rng = np.random.default_rng([ord(goal[-1]), i, 3])
    y = rng.permutation(np.r_[0:3, rng.integers(3, size=size[0] - 3)])
    weight = rng.choice(WEIGHTS, size[0]) if i % 3 == 0 else None
    return Instance(points(*size), y, weight, CLASS_GOALS[goal](i), class_truth(*size))
