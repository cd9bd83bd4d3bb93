"""The problems, the same for both sides: numpy and torch only, float64.

A point is a dict of tensors. ``inequalities`` are ≤ 0, ``equalities`` = 0, either may be None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Point = Mapping[str, Tensor]
Function = Callable[[Point], Tensor]
Options = Mapping[str, float]


@dataclass(frozen=True)
class Problem:
    """min f(x) s.t. c(x) ≤ 0, e(x) = 0, from a start.

    ``best`` is the optimum where it is known, ``faster`` how many times faster ours is to be,
    ``settings`` are PyGRANSO's: {} are its defaults; others are those of its own examples, and a
    limit of iterations where it does not end by itself or takes minutes.
    """

    start: dict[str, Tensor]
    objective: Function
    inequalities: Function | None = None
    equalities: Function | None = None
    settings: tuple[Options, ...] = ({},)
    best: float | None = None
    faster: float = 3.0
    repeats: int = 5
    size: tuple[int, int] = (0, 0)  #: variables, constraints


def measured(problem: Problem, v: Point) -> dict[str, float]:
    """Objective and the greatest violation at a point."""
    worst = 0.0
    if problem.inequalities is not None:
        worst = max(worst, float(problem.inequalities(v).max()))
    if problem.equalities is not None:
        worst = max(worst, float(problem.equalities(v).abs().max()))
    return {"objective": float(problem.objective(v)), "violation": worst}


def rosenbrock() -> Problem:
    """8 |x₁² − x₂| + (1 − x₁)², √2 x₁ ≤ 1, 2 x₂ ≤ 1."""

    def objective(v: Point) -> Tensor:
        return (8 * (v["a"] ** 2 - v["b"]).abs() + (1 - v["a"]) ** 2).sum()

    def inequalities(v: Point) -> Tensor:
        return torch.cat([math.sqrt(2) * v["a"] - 1, 2 * v["b"] - 1])

    one = torch.ones(1, dtype=torch.float64)
    return Problem(
        {"a": one, "b": one.clone()},
        objective,
        inequalities,
        best=(1 - math.sqrt(0.5)) ** 2,
        size=(2, 2),
    )


def dictionary() -> Problem:
    """‖qᵀY‖₁ / m on the sphere: n = 30, m = 9000, Y sparse."""
    draw = np.random.RandomState(1)
    mask, values = draw.rand(30, 9000) < 0.3, draw.randn(30, 9000)
    y = torch.from_numpy(values * mask)
    start = torch.from_numpy(draw.randn(30, 1))
    return Problem(
        {"q": start / start.norm()},
        lambda v: (v["q"].T @ y).abs().sum() / 9000,
        equalities=lambda v: (v["q"].T @ v["q"] - 1).reshape(-1),
        size=(30, 1),
    )


def robust_pca(rows: int, columns: int, weight: float, **more: object) -> Problem:
    """‖M‖_* + λ ‖S‖₁, M + S = Y; Y standard normal, or rank 2 with 10 % large entries."""
    torch.manual_seed(1)
    if rows == 3:
        y = torch.randn(rows, columns).double()
    else:
        y = (torch.randn(rows, 2) @ torch.randn(2, columns)).double()
        sparse = torch.rand(rows, columns) < 0.1
        y = y + 5 * sparse * torch.randn(rows, columns, dtype=torch.float64)
    start = torch.full((rows, columns), 0.2, dtype=torch.float64)
    return Problem(
        {"M": start, "S": start.clone()},
        lambda v: torch.linalg.norm(v["M"], ord="nuc") + weight * v["S"].abs().sum(),
        equalities=lambda v: (v["M"] + v["S"] - y).reshape(-1),
        size=(2 * rows * columns, rows * columns),
        **more,  # type: ignore[arg-type]
    )


def fused_lasso() -> Problem:
    """‖x − b‖² + ½ Σ |x_{i+1} − x_i|, n = 80."""
    torch.manual_seed(1)
    b = torch.rand(80, 1).double()
    return Problem(
        {"x": torch.ones(80, 1, dtype=torch.float64)},
        lambda v: (v["x"] - b).square().sum() + 0.5 * v["x"].diff(dim=0).abs().sum(),
        settings=({"maxit": 500}, {"maxit": 2000}),
        size=(80, 0),
    )


def sphere() -> Problem:
    """xᵀAx, xᵀx = 1: the least eigenvalue of a symmetric 500 × 500 matrix."""
    torch.manual_seed(0)
    a = torch.randn(500, 500).double()
    a = (a + a.T) / 2
    start = torch.randn(500, 1).double()
    return Problem(
        {"x": start},
        lambda v: (v["x"].T @ a @ v["x"]).sum(),
        equalities=lambda v: (v["x"].T @ v["x"] - 1).reshape(-1),
        best=float(torch.linalg.eigvalsh(a)[0]),
        settings=({"mu0": 0.1, "opt_tol": 1e-6}, {"mu0": 0.1}),
        size=(500, 1),
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "Rosenbrock": rosenbrock,
    "dictionary learning": dictionary,
    "robust PCA 3×4": lambda: robust_pca(3, 4, 0.05, settings=({"opt_tol": 1e-6}, {})),
    "fused lasso": fused_lasso,
    "sphere eigenvalue": sphere,
    "robust PCA 20×20": lambda: robust_pca(
        20, 20, 0.25, settings=({"maxit": 40}, {"maxit": 200}), faster=8.0, repeats=3
    ),
    "robust PCA 30×30": lambda: robust_pca(
        30, 30, 0.25, settings=({"maxit": 40},), faster=8.0, repeats=1
    ),
}
