"""Robust principal components: a matrix as low rank + sparse, the two parts as a dict.

    minimise ‖M‖_* + λ ‖S‖₁   subject to   M + S = Y

Convex, with kinks in both terms and an equation for each entry. A dual matrix Z proves a value:
for ‖Z‖₂ <= 1 and |Z| <= λ, every M + S = Y has ‖M‖_* + λ‖S‖₁ >= ⟨Z, Y⟩. The multipliers of the
equations give one, once they are scaled into those bounds.

python examples/solve_robust_pca.py
"""

import torch

import setpoint as sp

ROWS, COLUMNS, WEIGHT = 6, 8, 0.4


def main():
    """Solve it, and print what was found beside the truth."""
    rng = torch.Generator().manual_seed(2)
    real = {"generator": rng, "dtype": torch.float64}
    low = torch.outer(torch.randn(ROWS, **real), torch.randn(COLUMNS, **real))
    spikes = 5 * torch.randn(ROWS, COLUMNS, **real) * (torch.rand(ROWS, COLUMNS, **real) < 0.06)
    y = low + spikes
    result = sp.solve(
        lambda x: torch.linalg.matrix_norm(x["M"], "nuc") + WEIGHT * x["S"].abs().sum(),
        {"M": torch.full_like(y, 0.2), "S": torch.full_like(y, 0.2)},
        equalities=lambda x: x["M"] + x["S"] - y,
    )
    z = -torch.tensor(result.multipliers.equalities).reshape(y.shape)
    z = z / max(1.0, float(torch.linalg.matrix_norm(z, 2)), float(z.abs().max()) / WEIGHT)
    print(f"f = {result.fun:.8f}, proven to be no less than {float((z * y).sum()):.8f}")
    print(f"rank {int(torch.linalg.matrix_rank(result.x['M'], atol=1e-4))}, the truth 1")
    found = int((result.x["S"].abs() > 1e-4).sum())
    print(f"spikes {found}, the truth {int((spikes != 0).sum())}")
    print(f"violation {result.violation:.1e}, kkt {result.kkt:.1e}: {result.status}")


if __name__ == "__main__":
    main()
