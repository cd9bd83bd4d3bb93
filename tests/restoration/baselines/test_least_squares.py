"""The data step against numpy and scipy."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from setpoint.restoration.baselines.least_squares import (
    conjugate_gradients,
    damped_least_squares,
    linearised,
)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3))
def test_conjugate_gradients_solve_every_row(seed: int, batch: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    half = torch.randn(batch, 6, 6, dtype=torch.float64, generator=draw)
    matrix = half @ half.mT + 0.5 * torch.eye(6, dtype=torch.float64)
    right = torch.randn(batch, 6, dtype=torch.float64, generator=draw)
    right[0] = 0  # a row with nothing to do must not spoil itself or others
    found = conjugate_gradients(lambda d: (matrix @ d[..., None])[..., 0], right, steps=30)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, right), atol=1e-7, rtol=1e-6)


def test_a_linear_operator_takes_one_round() -> None:
    draw = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 6, dtype=torch.float64, generator=draw)
    y = torch.randn(2, 4, dtype=torch.float64, generator=draw)
    toward = torch.randn(2, 1, 2, 3, dtype=torch.float64, generator=draw)
    alpha = torch.tensor([0.1, 2.0], dtype=torch.float64)
    found = damped_least_squares(lambda x: x.flatten(1) @ matrix.T, y, toward, alpha, steps=12)
    for row in range(2):
        left = matrix.T @ matrix + alpha[row] * torch.eye(6, dtype=torch.float64)
        right = matrix.T @ y[row] + alpha[row] * toward[row].flatten()
        torch.testing.assert_close(found[row].flatten(), torch.linalg.solve(left, right))


def test_a_nonlinear_operator_meets_scipy() -> None:
    draw = torch.Generator().manual_seed(1)
    matrix = torch.randn(8, 5, dtype=torch.float64, generator=draw)
    y = torch.tanh(torch.randn(2, 5, dtype=torch.float64, generator=draw) @ matrix.T)
    toward, alpha = torch.zeros(2, 5, dtype=torch.float64), torch.full((2,), 0.3).double()
    found = damped_least_squares(
        lambda x: torch.tanh(x @ matrix.T), y, toward, alpha, rounds=40, steps=10
    )
    a = matrix.numpy()
    for row in range(2):

        def sides(x: np.ndarray, row: int = row) -> np.ndarray:
            return np.concatenate([np.tanh(a @ x) - y[row].numpy(), 0.3**0.5 * x])

        best = least_squares(sides, np.zeros(5), xtol=1e-12, ftol=1e-12, gtol=1e-12)
        np.testing.assert_allclose(found[row].numpy(), best.x, atol=1e-5)


def test_both_products_with_the_derivative() -> None:
    draw = torch.Generator().manual_seed(2)
    x, d = (torch.randn(2, 3, dtype=torch.float64, generator=draw) for _ in range(2))
    out, pull, push = linearised(lambda x: torch.sin(x) * x[:, :1], x)
    step = 1e-6
    moved = torch.sin(x + step * d) * (x + step * d)[:, :1]
    back = torch.sin(x - step * d) * (x - step * d)[:, :1]
    torch.testing.assert_close(push(d), (moved - back) / (2 * step), atol=1e-8, rtol=1e-6)
    v = torch.randn(out.shape, dtype=torch.float64, generator=draw)
    torch.testing.assert_close((push(d) * v).sum(), (d * pull(v)).sum())
