"""PyGRANSO on single images, as a plain user would pose the problem: in its environment.

``python -m benchmarks.robustness.pygranso_side FORM TABLE NORM COUNT FILE.npz``. float64, 100
iterations, tolerances 1e-4, one start near the image, full BFGS. After arXiv 2303.13401 (PWCF) the
box is folded into one constraint, ‖(−x')₊, (x' − 1)₊‖₂ / √n ≤ 0, and so is |δ| ≤ ε or |δ| ≤ t of
ℓ∞, whose radius is a variable t of its own; the margin that is maximised is clipped at 0.01.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.robustness.judging import EPS, NORMS, case, margin
from benchmarks.solver.pygranso_shim import silent

from pygranso.pygranso import pygranso  # isort: skip
from pygranso.pygransoStruct import pygransoStruct  # isort: skip

CLIP, TOLERANCE, ITERATIONS, NOISE = 0.01, 1e-4, 100, 1e-3


def folded(x: Tensor) -> Tensor:
    """‖(x)₊‖₂, with a finite gradient where nothing is violated."""
    positive = x.clamp(min=0)
    return positive.norm() if bool((positive > 0).any()) else positive.sum()


def posed(net: Any, x0: Tensor, y: Tensor, form: str, norm: str, eps: float) -> Callable:
    """The combined function of one image."""
    root = x0.numel() ** 0.5

    def both(held: Any) -> list[Any]:
        x = held.x.reshape(x0.shape)
        d, limits = (x - x0).flatten(), pygransoStruct()
        room: Any = limits
        gap = margin(net(x), y)[0]
        room.box = folded(torch.cat([-x.flatten(), x.flatten() - 1])) / root
        if form == "max":
            value = -gap.clamp(max=CLIP)
            room.ball = folded(d.abs() - eps) if norm == "linf" else d.norm(p=NORMS[norm]) - eps
            return [value, limits, None]
        room.wrong = -gap
        if norm == "linf":
            room.ball = folded(d.abs() - held.t)
            return [(held.t * root).sum(), limits, None]
        return [d.norm(p=NORMS[norm]), limits, None]

    return both


def one(net: Any, x0: Tensor, y: Tensor, form: str, norm: str, eps: float, seed: int) -> Tensor:
    """Its last point."""
    random = torch.Generator().manual_seed(seed)
    noise = NOISE * torch.randn(x0.shape, generator=random, dtype=x0.dtype)
    start, spec = (x0 + noise).clamp(0, 1).reshape(-1, 1), {"x": [x0.numel(), 1]}
    if form == "min" and norm == "linf":
        spec["t"] = [1, 1]
        start = torch.cat([start, torch.full((1, 1), NOISE, dtype=x0.dtype)])
    options: Any = pygransoStruct()
    options.x0, options.torch_device = start, torch.device("cpu")
    options.maxit, options.print_level = ITERATIONS, 0
    options.opt_tol = options.viol_ineq_tol = TOLERANCE
    with silent():
        function = posed(net, x0, y, form, norm, eps)
        found: Any = pygranso(var_spec=spec, combined_fn=function, user_opts=options)
    return found.final.x.detach()[: x0.numel()].reshape(x0.shape)


def main() -> None:
    """Image after image."""
    form, table, norm, count, file = sys.argv[1:]
    torch.set_num_threads(1)
    held, eps = case(table, int(count)), EPS[table][norm]
    points, seconds = [], []
    for i in range(len(held.x)):
        begun = time.process_time()
        points.append(one(held.net, held.x[i : i + 1], held.y[i : i + 1], form, norm, eps, i))
        seconds.append(time.process_time() - begun)
    np.savez(file, **{"PyGRANSO": torch.cat(points).numpy(), "PyGRANSO|seconds": sum(seconds)})
    print(table, form, norm, sum(seconds) / len(seconds), flush=True)


if __name__ == "__main__":
    main()
