"""Dictionary learning: a direction in which the data are sparse.

    minimise ‖qᵀY‖₁ / m   subject to   qᵀq = 1

The rows of Y are independent and mostly zero, Y itself is what a rotation of them would show. One
row alone is as sparse as can be, so that the best directions are ± the axes. Kinks everywhere, and
2n local solutions that are all the answer.

python examples/solve_dictionary.py
"""

import torch

import setpoint as sp

SIZE, COLUMNS, DENSE = 12, 2000, 0.2


def main():
    """Solve it, and print what was found beside the truth."""
    rng = torch.Generator().manual_seed(1)
    y = torch.randn(SIZE, COLUMNS, generator=rng, dtype=torch.float64)
    y = y * (torch.rand(SIZE, COLUMNS, generator=rng, dtype=torch.float64) < DENSE)
    turned, _ = torch.linalg.qr(torch.randn(SIZE, SIZE, generator=rng, dtype=torch.float64))
    seen = turned @ y
    start = torch.randn(SIZE, generator=rng, dtype=torch.float64)
    result = sp.solve(
        lambda q: (q @ seen).abs().sum() / COLUMNS, start, equalities=lambda q: q @ q - 1
    )
    near = (turned.T @ result.x).abs()  # q in the rotation's own axes: one of them, up to its sign
    rows = y.abs().sum(1) / COLUMNS
    found = int(near.argmax())
    print(f"f = {result.fun:.8f}, the truth for axis {found}: {rows[found]:.8f}")
    print(f"q lies along it: cosine {near[found]:.8f}")
    print(f"violation {result.violation:.1e}, kkt {result.kkt:.1e}: {result.status}")


if __name__ == "__main__":
    main()
