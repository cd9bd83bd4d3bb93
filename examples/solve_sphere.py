"""The least eigenvalue of a matrix as a problem on the sphere; its price is the eigenvalue.

    minimise xᵀAx   subject to   xᵀx = 1;        A x + ν x = 0, so ν = −(least eigenvalue)

Not convex, and every other eigenvector is a point where the gradients balance: those are saddles,
which descent leaves.

python examples/solve_sphere.py
"""

import torch

import setpoint as sp

SIZE = 120


def main():
    """Solve it, and print what was found beside the truth."""
    rng = torch.Generator().manual_seed(0)
    a = torch.randn(SIZE, SIZE, generator=rng, dtype=torch.float64)
    a = (a + a.T) / 2
    start = torch.randn(SIZE, generator=rng, dtype=torch.float64)
    result = sp.solve(lambda x: x @ a @ x, start, equalities=lambda x: x @ x - 1)
    least = float(torch.linalg.eigvalsh(a)[0])
    print(f"f = {result.fun:.10f}, the truth {least:.10f} (torch.linalg.eigvalsh)")
    print(f"price of the sphere {result.multipliers.equalities[0]:.6f}, the truth {-least:.6f}")
    print(f"violation {result.violation:.1e}, kkt {result.kkt:.1e}: {result.status}")


if __name__ == "__main__":
    main()
