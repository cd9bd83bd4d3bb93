"""Duals: how the multipliers of min f subject to v <= 0 move when violations v are seen.

    additive   λ ← clip(λ + η v, 0, R)                     projected gradient ascent
    external   w ← Π(w · exp(η (0, v)))                    multiplicative weights
    swap       M ← Π(M · exp(η (0, v) wᵀ)),  M w = w       the same for every column of a matrix

w are weights over the objective and the constraints that sum to 1; Π scales the larger ones so that
none falls below a floor (the nearest such weights in relative entropy). The loss descended is
w₀ f + Σ wⱼ vⱼ, so λⱼ = wⱼ / w₀. Against external regret the weights do as well as the best fixed
ones, against swap regret as well as after the best exchange of one for another, which is what a
game with two different payoffs (soft ones for the model, exact ones for the weights) needs. An
equation v = 0 has one multiplier of either sign; among weights it has two, for v and for −v.

A state is a flat array: numpy on the host, a tensor elsewhere. Everything is a pure function.

References
----------
Cotter, Jiang, Sridharan, Two-player games for efficient non-convex constrained optimization, 2019
(proxy-Lagrangian, Algorithm 2). The projection and the stationary vector are our own derivation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setpoint._core.arrays import exponential, highest, is_tensor, join, lowest, namespace
from setpoint._core.errors import KindError
from setpoint._core.options import choice, number

FLOOR = 1e-3  #: the least weights together
SQUARINGS = 16  #: columns mix at least by 1 − FLOOR a step; 2¹⁶ steps leave exp(−65)

Equal = tuple[bool, ...]  #: for each constraint, whether it is an equation


@dataclass(frozen=True)
class Dual(ABC):
    """A rule by which multipliers move; ``rate`` is η.

    Parameters
    ----------
    rate : float
        How far a violation of 1 moves them while the running totals are renewed once.
    """

    rate: float = 1.0

    name: ClassVar[str]

    def __post_init__(self) -> None:
        number("rate", self.rate, 0, error=KindError)

    @abstractmethod
    def start(self, equal: Equal) -> np.ndarray:
        """The state to start from."""

    @abstractmethod
    def weights(self, state: Any, equal: Equal) -> tuple[Any, Any]:
        """What the objective weighs, and what each constraint does, (m,)."""

    @abstractmethod
    def step(self, state: Any, violations: Any, share: Any, equal: Equal) -> Any:
        """The state after violations (m,) seen for a share of a renewal of the totals."""

    def multipliers(self, state: Any, equal: Equal) -> Any:
        """λ (m,), what one unit of each violation costs in units of the objective."""
        top, weights = self.weights(state, equal)
        return weights / top


@dataclass(frozen=True)
class Additive(Dual):
    """Projected gradient ascent: λ ← clip(λ + η v, 0, R), an equation's in [−R, R].

    Parameters
    ----------
    radius : float
        R, the most a unit of violation may cost.
    """

    radius: float = 100.0

    name = "additive"

    def __post_init__(self) -> None:
        super().__post_init__()
        number("radius", self.radius, 0, open_low=True, error=KindError)

    def start(self, equal: Equal) -> np.ndarray:
        return np.zeros(len(equal))

    def weights(self, state: Any, equal: Equal) -> tuple[Any, Any]:
        del equal
        return 1.0, state

    def step(self, state: Any, violations: Any, share: Any, equal: Equal) -> Any:
        return one_sided((state + self.rate * share * violations), equal).clip(
            -self.radius, self.radius
        )


@dataclass(frozen=True)
class External(Dual):
    """Multiplicative weights over objective and constraints, without external regret."""

    name = "external"

    def start(self, equal: Equal) -> np.ndarray:
        size = _size(equal)
        weights = np.full(size, FLOOR / size)
        weights[0] = 1 - weights[1:].sum()
        return weights

    def weights(self, state: Any, equal: Equal) -> tuple[Any, Any]:
        return state[0], _folded(state[1:], equal)

    def step(self, state: Any, violations: Any, share: Any, equal: Equal) -> Any:
        return _raised(state, self.rate * share * _payoffs(violations, equal))


@dataclass(frozen=True)
class Swap(Dual):
    """A left-stochastic matrix over objective and constraints, without swap regret.

    The weights are its stationary vector.
    """

    name = "swap"

    def start(self, equal: Equal) -> np.ndarray:
        size = _size(equal)
        return np.repeat(External().start(equal)[:, None], size, 1).ravel()

    def weights(self, state: Any, equal: Equal) -> tuple[Any, Any]:
        w = stationary(self._matrix(state, equal))
        return w[0], _folded(w[1:], equal)

    def step(self, state: Any, violations: Any, share: Any, equal: Equal) -> Any:
        matrix = self._matrix(state, equal)
        payoffs = self.rate * share * _payoffs(violations, equal)
        return _raised(matrix, payoffs[:, None] * stationary(matrix)[None, :]).reshape(-1)

    @staticmethod
    def _matrix(state: Any, equal: Equal) -> Any:
        return state.reshape(_size(equal), _size(equal))


DUALS: dict[str, type[Dual]] = {"additive": Additive, "external": External, "swap": Swap}


def dual(x: Any, rate: float, radius: float) -> Dual:
    """A dual from a dual, or from its name; ``radius`` is for the additive one."""
    if isinstance(x, Dual):
        return x  # with a rate of its own
    choice("dual", x, DUALS)
    additive = Additive(rate, radius)  # or refuses, whichever is used
    return additive if x == "additive" else DUALS[x](rate)


def one_sided(multipliers: Any, equal: Equal) -> Any:
    """max(0, λ) for inequalities, λ for equations."""
    if not any(equal):
        return multipliers.clip(0, None)
    parts = [multipliers[j : j + 1] for j in range(len(equal))]
    return join([x if e else x.clip(0, None) for x, e in zip(parts, equal, strict=True)], 0)


def stationary(matrix: Any) -> Any:
    """The w with M w = w and Σ w = 1 of a left-stochastic M (k, k) with no entry near 0.

    By squaring: the columns of M, M², M⁴, … all become w, the faster the more alike they are; each
    product is scaled back to columns that sum to 1. No solver, so nothing waits for a device.
    """
    power = matrix
    for _ in range(SQUARINGS):
        power = power @ power
        power = power / power.sum(0)
    w = power.sum(1)
    return w / w.sum()


def floored(weights: Any, floor: float) -> Any:
    """The w >= floor with Σ w = 1 nearest to given ones in relative entropy, down each column.

    It is max(floor, c · w). Were the k greatest the ones above the floor, c would be
    (1 − (K − k) floor) / (their sum); every such c is at least the right one, which is the least.
    """
    size = weights.shape[0]
    if is_tensor(weights):
        falling = weights.sort(0, descending=True).values
        above = namespace(weights).arange(1, size + 1, device=weights.device, dtype=weights.dtype)
    else:
        falling, above = -np.sort(-weights, 0), np.arange(1, size + 1)
    above = above if weights.ndim == 1 else above[:, None]
    scale = lowest((1 - (size - above) * floor) / falling.cumsum(0), 0)
    return (weights * scale).clip(floor, 1.0)


def _raised(weights: Any, exponents: Any) -> Any:
    """Weights times exp(exponents), scaled and floored down each column."""
    # the greatest factor is 1: nothing overflows, and the greatest weight cannot vanish to nothing
    return floored(
        weights * exponential(exponents - highest(exponents, 0)), FLOOR / weights.shape[0]
    )


def _size(equal: Equal) -> int:
    return 1 + len(equal) + sum(equal)


def _payoffs(violations: Any, equal: Equal) -> Any:
    """(0, v, −v of the equations)."""
    mirrored = [-violations[j : j + 1] for j, e in enumerate(equal) if e]
    return join([0 * violations[:1], violations, *mirrored], 0)


def _folded(weights: Any, equal: Equal) -> Any:
    """(m,) from the weights of v and of −v."""
    m, equations, parts = len(equal), 0, []
    if not any(equal):
        return weights
    for j, e in enumerate(equal):
        part = weights[j : j + 1]
        if e:
            part = part - weights[m + equations : m + equations + 1]
            equations += 1
        parts.append(part)
    return join(parts, 0)
