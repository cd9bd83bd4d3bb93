"""Constrained Rosenbrock with a kink, where the solution lies on the kink and on a constraint.

    minimise 8 |x₁² − x₂| + (1 − x₁)²   subject to   √2 x₁ <= 1,  2 x₂ <= 1

Along the valley x₂ = x₁² only (1 − x₁)² is left, which falls up to x₁ = 1/√2, where both
constraints hold at once: f = (1 − 1/√2)² = 3/2 − √2.

python examples/solve_rosenbrock.py
"""

import math

import torch

import setpoint as sp


def main():
    """Solve it, and print what was found beside the truth."""
    result = sp.solve(
        lambda x: 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2,
        torch.ones(2, dtype=torch.float64),
        inequalities=[lambda x: math.sqrt(2) * x[0] - 1, lambda x: 2 * x[1] - 1],
    )
    print(f"f = {result.fun:.10f}, the truth {1.5 - math.sqrt(2):.10f}")
    print(f"x = {result.x.tolist()}, the truth {[math.sqrt(0.5), 0.5]}")
    print(f"violation {result.violation:.1e}, kkt {result.kkt:.1e}: {result.status}")


if __name__ == "__main__":
    main()
