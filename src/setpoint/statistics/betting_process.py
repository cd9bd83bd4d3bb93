"""Wealth that is watched for ever: bets that are valid at every moment.

Rows z with E[z] ≥ 0 as long as the promise holds, −z ≤ B. Against the promise one bets on −z with a
grid of stakes λⱼ, each begun anew at every row s with a share w_s of the money:

    Mₜⱼ = (Mₜ₋₁ⱼ + wₜ) (1 − λⱼ zₜ)          Σ w = 1          Eₜ = mean over j of Mₜⱼ

While the promise holds Eₜ is a supermartingale that starts at (at most) 1, so that it ever reaches
1/δ with probability at most δ (Ville 1939). The money kept for later starts makes it quick to react
after a long good time: what was lost by betting against a promise that held is not all there is.
"""

from __future__ import annotations

import numpy as np

STAKES = np.geomspace(0.01, 0.9, 12)  #: λⱼ, as shares of what can be lost
FIRST = 0.5  #: w₀, the money that starts with the first row
_SUM = 2.1097429  # Σ_{n≥2} 1 / (n ln² n), rounded up


def start_weights(begin: int, count: int) -> np.ndarray:
    """w_s for rows ``begin + 1 … begin + count``: w_s ∝ 1 / ((s+1) ln²(s+1)) after the first."""
    n = np.arange(begin + 1, begin + count + 1) + 1.0
    weights = (1 - FIRST) / (_SUM * n * np.log(n) ** 2)
    if begin == 0 and count:
        weights[0] += FIRST
    return weights


def anytime_wealth(log_wealth: np.ndarray, z: np.ndarray, loss: float, begin: int) -> np.ndarray:
    """Ln Mₜⱼ after each of the rows, (rows, stakes); bets on z, begun anew at every row.

    Parameters
    ----------
    log_wealth : numpy.ndarray of shape (stakes,)
        Before these rows.
    z : numpy.ndarray of shape (n,)
        z ≥ −loss.
    loss : float
    begin : int
        Rows seen before.
    """
    steps = np.log1p(np.multiply.outer(z / loss, STAKES))
    total = np.cumsum(steps, axis=0)
    before = total - steps
    entered = np.log(start_weights(begin, z.size))[:, None] - before
    entered[0] = np.logaddexp(entered[0], log_wealth)
    return total + np.logaddexp.accumulate(entered, axis=0)


def wealth_of_one_bet(log_wealth: np.ndarray, z: np.ndarray, loss: float) -> np.ndarray:
    """Ln of the wealth after each of the rows, (rows, stakes); bets on z since the first row."""
    return log_wealth + np.cumsum(np.log1p(np.multiply.outer(z / loss, STAKES)), axis=0)


def mean_wealth(log_wealth: np.ndarray) -> np.ndarray:
    """Ln of the mean over stakes (the last axis)."""
    top = log_wealth.max(-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.mean(np.exp(log_wealth - safe[..., None]), axis=-1))
