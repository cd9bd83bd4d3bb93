"""P(positive | score) as a few hundred reference rows have it, with how unsure they leave it.

A ridge logistic regression of the label on three shapes of the score, each standardised:

    the margin m      its logit where the task declares probabilities, else the score itself
    σ(a + b m)        Platt's fit, which lets the curve level off below 1
    Φ⁻¹(rank)         so that no scale of the scores can hide the top rows

The posterior of its weights is taken as normal (Laplace), and curves are drawn from it. Counts
alone would trust three right of three; a curve borrows from the rows around.
"""

from __future__ import annotations

import numpy as np

from setpoint._core import scipy_special as special
from setpoint.expressions import Columns

DRAWS = 66
RIDGE = 1.0


def drawn_curves(columns: Columns, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """P(positive | score) of each row, (draws, n); the draws come in pairs around the middle."""
    y = np.asarray(columns.actual, float)
    score = np.asarray(columns.scores, float)
    margin = score
    if columns.task.score == "probability":
        inside = np.clip(score, 1e-6, 1 - 1e-6)
        margin = np.log(inside / (1 - inside))
    margin = _standard(margin)
    ones = np.ones(y.size)
    plain = np.stack([ones, margin], axis=1)
    platt = special.expit(plain @ _fit(plain, y, np.array([1e-4, 1e-2]))[0])
    shapes = np.stack([ones, _standard(platt), margin, _standard(_normal_ranks(score))], axis=1)
    weights, covariance = _fit(shapes, y, np.array([1e-4, RIDGE, RIDGE, RIDGE]))
    noise = np.random.default_rng(seed).normal(size=(draws // 2, weights.size))
    around = np.concatenate([noise, -noise]) @ np.linalg.cholesky(covariance).T
    return special.expit((weights + around) @ shapes.T)


def _normal_ranks(score: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the middle rank of each row among all."""
    _, where, count = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    middle = (last - count / 2)[where]
    return special.ndtri(middle / score.size)


def _standard(x: np.ndarray) -> np.ndarray:
    largest = max(float(np.abs(x).max()), 1e-300)
    x = x / largest  # so that no square leaves the floats
    return (x - x.mean()) / max(float(x.std()), 1e-12)


def _fit(X: np.ndarray, y: np.ndarray, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights that minimise log-loss + ½ Σ ridge w², by Newton's method, and H⁻¹ there."""

    def loss(w: np.ndarray) -> float:
        z = X @ w
        return float(np.logaddexp(0, z).sum() - y @ z + 0.5 * (ridge * w * w).sum())

    def curvature(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = special.expit(X @ w)
        hessian = (X * (p * (1 - p))[:, None]).T @ X + np.diag(ridge)
        return hessian, X.T @ (p - y) + ridge * w

    w = np.zeros(X.shape[1])
    now = loss(w)
    for _ in range(50):
        hessian, slope = curvature(w)
        step, size = np.linalg.solve(hessian, slope), 1.0
        while size > 1e-4 and loss(w - size * step) > now:
            size /= 2
        after = loss(w - size * step)
        if after <= now:
            w = w - size * step
        if now - after < 1e-8:
            break
        now = after
    return w, np.linalg.inv(curvature(w)[0])
