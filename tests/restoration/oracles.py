"""Known answers for restoration, in numpy and scipy alone: no line here sees our own code.

A linear Gaussian prior x = m + W z, z ~ N(0, I), seen through y = A x + n, n ~ N(0, σ² I), has all
its answers in closed form. With B = A W and r = y - A m:

- posterior mode, min ½‖z‖² + ‖r - B z‖² / (2σ²):  z = (BᵀB + σ² I)⁻¹ Bᵀ r;
- constrained form, min ½‖z‖² s.t. ‖r - B z‖² ≤ b:  z(μ) = (BᵀB + μ I)⁻¹ Bᵀ r with the one μ at
  which the residual is b (the secular equation), z = 0 where that is feasible already;
- on the shell, min ‖r - B z‖² s.t. ‖z‖² = d:  z(μ) again, now with the μ > -λ_min at which
  ‖z(μ)‖² = d (Moré and Sorensen 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearGaussian:
    """One problem y = A (m + W z) + n."""

    matrix: Array  # W (n, d)
    mean: Array  # m (n,)
    operator: Array  # A (k, n)
    sigma: float
    y: Array  # (images, k)
    truth: Array  # (images, n)

    @property
    def b(self) -> Array:
        """B = A W."""
        return self.operator @ self.matrix

    def left(self, image: int) -> Array:
        """R = y - A m of one image."""
        return self.y[image] - self.operator @ self.mean

    def image(self, z: Array) -> Array:
        """Return m + W z."""
        return self.mean + self.matrix @ z

    def squares(self, z: Array, image: int) -> float:
        """‖y - A (m + W z)‖²."""
        return float(np.sum((self.left(image) - self.b @ z) ** 2))


def problem(
    *,
    pixels: int = 8,
    seeds: int = 5,
    rows: int = 6,
    sigma: float = 0.3,
    images: int = 3,
    seed: int = 0,
) -> LinearGaussian:
    """Draw a problem of moderate condition; measurements follow the model."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(pixels, seeds)) / np.sqrt(seeds)
    mean = rng.normal(size=pixels)
    operator = rng.normal(size=(rows, pixels)) / np.sqrt(pixels)
    truth = mean + rng.normal(size=(images, seeds)) @ matrix.T
    y = truth @ operator.T + sigma * rng.normal(size=(images, rows))
    return LinearGaussian(matrix, mean, operator, sigma, y, truth)


def posterior_mode(case: LinearGaussian, image: int) -> Array:
    """Solve (BᵀB + σ² I) z = Bᵀ r."""
    return _ridge(case.b, case.left(image), case.sigma**2)


def _ridge(b: Array, left: Array, mu: float) -> Array:
    return np.linalg.solve(b.T @ b + mu * np.eye(b.shape[1]), b.T @ left)


def constrained_mode(case: LinearGaussian, image: int, budget: float | None = None) -> Array | None:
    """Least ½‖z‖² with ‖r - B z‖² ≤ budget (m σ² unless told); None where no z reaches it."""
    b, left = case.b, case.left(image)
    budget = left.size * case.sigma**2 if budget is None else budget
    if left @ left <= budget:
        return np.zeros(b.shape[1])
    nearest = np.linalg.lstsq(b, left, rcond=None)[0]
    if np.sum((left - b @ nearest) ** 2) > budget:
        return None

    def gap(log_mu: float) -> float:  # increases with μ, from below 0 to above 0
        return float(np.sum((left - b @ _ridge(b, left, np.exp(log_mu))) ** 2)) - budget

    return _ridge(b, left, np.exp(brentq(gap, -35.0, 35.0, xtol=1e-13, rtol=1e-13)))


def shell_mode(case: LinearGaussian, image: int) -> Array:
    """Least ‖r - B z‖² with ‖z‖ = √d, the global one."""
    b, left = case.b, case.left(image)
    d = b.shape[1]
    low = float(np.linalg.eigvalsh(b.T @ b)[0])

    def gap(log_shift: float) -> float:  # decreases with μ = shift - λ_min
        z = _ridge(b, left, np.exp(log_shift) - low)
        return float(z @ z) - d

    return _ridge(b, left, np.exp(brentq(gap, -25.0, 25.0, xtol=1e-13, rtol=1e-13)) - low)


def shell_conditions(case: LinearGaussian, z: Array, image: int) -> tuple[float, float]:
    """How far z on the shell is from a local minimum of ½‖r - B z‖² there.

    The sphere bends the problem, so that there may be one local minimum beside the global one
    (Martínez 1994). A local one has a slope of 0 along the sphere and, with μ = zᵀBᵀ(r - B z)/‖z‖²,
    a BᵀB + μ I that curves upward along it. Returns the length of that slope and the least
    curvature.
    """
    b = case.b
    pull = b.T @ (case.left(image) - b @ z)
    mu = float(z @ pull) / float(z @ z)
    along = np.linalg.svd(z[None])[2][1:]  # rows span the tangent space
    curved = along @ (b.T @ b + mu * np.eye(len(z))) @ along.T
    return float(np.linalg.norm(along @ pull)), float(np.linalg.eigvalsh(curved)[0])


def to_shell(z: Array) -> Array:
    """Z √d / ‖z‖ for every row."""
    flat = z.reshape(len(z), -1)
    return (flat * np.sqrt(flat.shape[1]) / np.linalg.norm(flat, axis=1, keepdims=True)).reshape(
        z.shape
    )


def blind_mode(
    ys: Array,
    matrix: Array,
    mean: Array,
    operator: Callable[[float], Array],
    sigma: float,
    grid: Array,
) -> tuple[float, Array, float]:
    """Joint mode over one scalar u of the operator and all seeds, by brute force over u.

    At a fixed u every seed is a ridge solution, so only u is searched: each point of the grid, then
    a bracketed refinement around the best. Returns u, the seeds (images, d) and the objective
    Σ_i ½‖z_i‖² + ‖y_i - A_u (m + W z_i)‖² / (2σ²).
    """

    def seeds(u: float) -> Array:
        a = operator(u)
        return np.stack([_ridge(a @ matrix, y - a @ mean, sigma**2) for y in ys])

    def objective(u: float) -> float:
        a, z = operator(u), seeds(u)
        residual = ys - (mean + z @ matrix.T) @ a.T
        return float(0.5 * np.sum(z**2) + np.sum(residual**2) / (2.0 * sigma**2))

    values = np.array([objective(u) for u in grid])
    i = int(values.argmin())
    assert 0 < i < len(grid) - 1, "the best u lies on the edge of the grid"
    found = minimize(lambda u: objective(float(u[0])), [grid[i]], tol=1e-14, method="Nelder-Mead")
    best = float(found.x[0])
    return best, seeds(best), objective(best)


@dataclass(frozen=True)
class Stopped:
    """Where ES-WMV stops one image: at `step`, with the iterate of `best`."""

    best: int
    step: int | None  # None where patience never ran out
    variances: dict[int, float]  # of the window that ends at that step, per pixel


def es_wmv(iterates: Array, window: int, patience: int) -> Stopped:
    """Windowed moving variance of one image's iterates (K, ...), from its definition.

    The window that ends at step k holds x_{k-W+1} ... x_k; its variance is the mean squared
    distance to its own mean. Stop once the least variance so far is `patience` steps old.
    """
    variances: dict[int, float] = {}
    best, least = -1, np.inf
    for k in range(window - 1, len(iterates)):
        held = iterates[k - window + 1 : k + 1].reshape(window, -1)
        variances[k] = float(np.mean((held - held.mean(axis=0)) ** 2))
        if variances[k] < least:
            best, least = k, variances[k]
        elif k - best >= patience:
            return Stopped(best, k, variances)
    return Stopped(best, None, variances)


@dataclass(frozen=True)
class GaussianFlow:
    """Flow matching of x1 ~ N(m, S) on the line x_t = t x1 + (1 - t) z, all in closed form.

    v(x, t) = E[x1 - z | x_t = x] = m + (t S - (1-t) I) (t² S + (1-t)² I)⁻¹ (x - t m). In an
    eigendirection of S with value λ the flow only rescales x - t m by the ratio of standard
    deviations, so from t to 1 it is x ↦ m + √(λ / (t² λ + (1-t)²)) (x - t m).
    """

    mean: Array  # (n,)
    covariance: Array  # (n, n)

    def velocity(self, x: Array, t: float) -> Array:
        """V(x, t) for rows x (B, n)."""
        eye = np.eye(len(self.mean))
        gain = (t * self.covariance - (1 - t) * eye) @ np.linalg.inv(
            t * t * self.covariance + (1 - t) ** 2 * eye
        )
        return self.mean + (x - t * self.mean) @ gain.T

    def carry(self, x: Array, t: float) -> Array:
        """End of the flow at time 1 of rows x (B, n) at time t."""
        values, vectors = np.linalg.eigh(self.covariance)
        ratio = np.sqrt(values / (t * t * values + (1 - t) ** 2))
        return self.mean + (x - t * self.mean) @ (vectors * ratio) @ vectors.T

    def plugged(self, y: Array, z: Array, t: float) -> Array:
        """Image of the start t y + (1 - t) z."""
        return self.carry(t * y + (1 - t) * z, t)


def plugged_profile(
    case: LinearGaussian, anchor_cost: float, times: Array
) -> Callable[[Callable[[float], tuple[Array, Array]]], Array]:
    """Least ½‖w‖² + ½ c (τ - τ₀)² s.t. ‖y - A (base_t + W_t w)‖² ≤ m σ², at each time t.

    At a fixed t the image is affine in the seed, so that the best w = z - z_k is a constrained
    mode; τ = log t/(1 - t), τ₀ = 0. The argument gives (W_t, base_t) of a time.
    """

    def profile(affine: Callable[[float], tuple[Array, Array]]) -> Array:
        values = []
        for t in times:
            matrix, base = affine(float(t))
            at = LinearGaussian(matrix, base, case.operator, case.sigma, case.y, case.truth)
            w = constrained_mode(at, 0)
            cost = 0.5 * anchor_cost * np.log(t / (1 - t)) ** 2
            values.append(np.inf if w is None else 0.5 * float(w @ w) + cost)
        return np.array(values)

    return profile


def posterior_denoise(mean: Array, covariance: Array, x: Array, sigma: float) -> Array:
    """E[clean | x = clean + σ n] of clean ~ N(m, S): m + S (S + σ² I)⁻¹ (x - m)."""
    gain = covariance @ np.linalg.inv(covariance + sigma**2 * np.eye(len(mean)))
    return mean + (x - mean) @ gain.T
