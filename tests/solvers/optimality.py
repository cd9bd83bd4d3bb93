"""The conditions of an optimum, worked out anew from a returned x and its multipliers.

    ‖∇f + Σ λᵢ∇cᵢ + Σ νⱼ∇eⱼ − z_low + z_high‖,  λ, z >= 0,  λᵢcᵢ = 0,  z_low (x − low) = 0, …

Gradients are taken one scalar at a time by autograd, and by central differences where a test asks
whether autograd itself can be believed. At a kink the gradients are those at the points of
``result.bundle``, which must lie near x, with weights of f that sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tests.solvers.known import Known


@dataclass(frozen=True)
class Optimality:
    """How far x and its multipliers are from the conditions of an optimum.

    Attributes
    ----------
    stationarity : float
        The norm of the sum of gradients and forces of the bounds.
    wrong_sign : float
        The most that a multiplier which should be >= 0 is below it.
    complementarity : float
        The greatest of |λᵢcᵢ(x)| and of the bounds' alike.
    violation : float
        The greatest of max(c, 0), |e| and what x is outside the bounds.
    scale : float
        1 + ‖∇f(x)‖ + Σ ‖λᵢ∇cᵢ‖: what the stationarity is to be compared with.
    radius : float
        The distance from x of the farthest point whose gradient counts.
    """

    stationarity: float
    wrong_sign: float
    complementarity: float
    violation: float
    scale: float
    radius: float


def values(function: Callable[..., Any] | None, x: np.ndarray) -> np.ndarray:
    if function is None:
        return np.zeros(0)
    with torch.no_grad():
        return function(torch.tensor(x)).reshape(-1).numpy().copy()


def jacobian(function: Callable[..., Any] | None, x: np.ndarray) -> np.ndarray:
    """(m, n): one backward pass for each scalar; a variable that is not used has slope 0."""
    if function is None:
        return np.zeros((0, len(x)))
    point = torch.tensor(x, requires_grad=True)
    found = function(point).reshape(-1)
    rows = np.zeros((len(found), len(x)))
    for i, chosen in enumerate(torch.eye(len(found), dtype=found.dtype)):
        if found.requires_grad:
            (slope,) = torch.autograd.grad(
                found, point, chosen, retain_graph=True, allow_unused=True
            )
            rows[i] = 0 if slope is None else slope.numpy()
    return rows


def differences(
    function: Callable[..., Any] | None, x: np.ndarray, step: float = 1e-6
) -> np.ndarray:
    """(m, n) by central differences, with no help from autograd."""
    columns = []
    for i in range(len(x)):
        shift = np.zeros(len(x))
        shift[i] = step * max(1.0, abs(x[i]))
        change = values(function, x + shift) - values(function, x - shift)
        columns.append(change / (2 * shift[i]))
    return np.array(columns).T.reshape(-1, len(x))


def sides(problem: Known) -> tuple[np.ndarray, np.ndarray]:
    """Low and high of each variable."""
    given = zip((problem.low, problem.high), (-np.inf, np.inf), strict=True)
    n = len(problem.x0)
    low, high = (np.broadcast_to(none if b is None else np.array(b, float), n) for b, none in given)
    return low, high


def away(problem: Known, x: np.ndarray) -> float:
    """The violation at x, bounds included."""
    low, high = sides(problem)
    c, e = values(problem.c, x), values(problem.e, x)
    return float(np.concatenate([[0.0], c, np.abs(e), low - x, x - high]).max())


def slack_times_price(problem: Known, x: np.ndarray, prices: Any) -> float:
    """The greatest product of a multiplier and the room that is left; ∞ · 0 = 0."""
    low, high = sides(problem)
    with np.errstate(invalid="ignore"):
        products = [
            prices.inequalities * values(problem.c, x),
            np.where(prices.low == 0, 0, prices.low * (x - low)),
            np.where(prices.high == 0, 0, prices.high * (high - x)),
        ]
    return float(np.abs(np.concatenate([[0.0], *products])).max())


def flat(result: Any) -> np.ndarray:
    return result.x.detach().cpu().double().reshape(-1).numpy()


def conditions(problem: Known, result: Any, slopes: Any = jacobian) -> Optimality:
    """At x itself, whatever bundle there is: right for functions without kinks."""
    x, prices = flat(result), result.multipliers
    pulls = [
        slopes(problem.f, x)[0],
        prices.inequalities[:, None] * slopes(problem.c, x),
        prices.equalities[:, None] * slopes(problem.e, x),
    ]
    total = sum(np.atleast_2d(p).sum(0) for p in pulls) - prices.low + prices.high
    return _found(problem, x, prices, total, pulls, 0.0)


def bundled(problem: Known, result: Any) -> Optimality:
    """Over the points of the bundle; at x itself where there is none."""
    if result.bundle is None:
        return conditions(problem, result)
    x, prices = flat(result), result.multipliers
    points, weights = result.bundle
    equal = len(values(problem.e, x))
    assert weights.shape == (len(points), 1 + equal + len(values(problem.c, x)))
    np.testing.assert_allclose(weights[:, 0].sum(), 1, rtol=1e-9)
    np.testing.assert_allclose(weights[:, 1 : 1 + equal].sum(0), prices.equalities, atol=1e-7)
    np.testing.assert_allclose(weights[:, 1 + equal :].sum(0), prices.inequalities, atol=1e-7)
    assert weights[:, 0].min() >= -1e-9
    assert weights[:, 1 + equal :].min(initial=0) >= -1e-9
    pulls = []
    for point, weight in zip(points, weights, strict=True):
        slopes = [jacobian(function, point) for function in (problem.f, problem.e, problem.c)]
        pulls.append(weight @ np.concatenate(slopes))
    total = np.sum(pulls, 0) - prices.low + prices.high
    counted = np.abs(weights).max(1) > 0
    radius = np.linalg.norm(points - x, axis=1)[counted].max()
    return _found(problem, x, prices, total, pulls, float(radius))


def _found(
    problem: Known, x: np.ndarray, prices: Any, total: np.ndarray, pulls: list, radius: float
) -> Optimality:
    signed = np.concatenate([[0.0], prices.inequalities, prices.low, prices.high])
    lengths = sum(np.linalg.norm(np.atleast_2d(p), axis=1).sum() for p in pulls)
    return Optimality(
        float(np.linalg.norm(total)),
        float(-signed.min()),
        slack_times_price(problem, x, prices),
        away(problem, x),
        float(1 + lengths),
        radius,
    )
