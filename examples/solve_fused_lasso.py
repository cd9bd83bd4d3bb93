"""Fused lasso: a signal in steps, against an exact answer found without descent.

    minimise ‖x − b‖² + λ Σ |x_{i+1} − x_i|

It has no constraints, only kinks, and at the solution most of them are active. The truth is
the taut string: the cumulated solution is the shortest line from end to end through a tube of
half-width λ/2 around the cumulated b, which its corners give exactly.

python examples/solve_fused_lasso.py
"""

import torch

import setpoint as sp

SIZE, WEIGHT = 80, 0.5


def objective(x, b):
    """What is minimised."""
    return (x - b).square().sum() + WEIGHT * x.diff().abs().sum()


def taut_string(b, radius):
    """The x whose sums run through the tube as a tightened string: from one corner to the next."""
    n = len(b)
    sums = [0.0]
    for value in b:
        sums.append(sums[-1] + value)
    low, high = [s - radius for s in sums], [s + radius for s in sums]
    low[0] = high[0] = sums[0]
    low[n] = high[n] = sums[n]
    x, at, height = [0.0] * n, 0, 0.0
    while at < n:
        steepest, flattest = float("inf"), -float("inf")  # slopes that stay in the tube so far
        up = down = at
        for k in range(at + 1, n + 1):
            top, bottom = (high[k] - height) / (k - at), (low[k] - height) / (k - at)
            if bottom > steepest:  # must turn up at the last corner of the ceiling
                corner, slope = up, steepest
                break
            if top < flattest:  # must turn down at the last corner of the floor
                corner, slope = down, flattest
                break
            if top <= steepest:
                steepest, up = top, k
            if bottom >= flattest:
                flattest, down = bottom, k
        else:
            corner, slope = n, (sums[n] - height) / (n - at)
        x[at:corner] = [slope] * (corner - at)
        height += slope * (corner - at)
        at = corner
    return x


def main():
    """Solve it, and print what was found beside the truth."""
    b = torch.rand(SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    result = sp.solve(lambda x: objective(x, b), torch.ones(SIZE, dtype=torch.float64))
    exact = torch.tensor(taut_string(b.tolist(), WEIGHT / 2), dtype=torch.float64)
    print(f"f = {result.fun:.10f}, the truth {float(objective(exact, b)):.10f} (taut string)")
    print(f"greatest difference of an entry {float((result.x - exact).abs().max()):.1e}")
    print(f"violation {result.violation:.1e}, kkt {result.kkt:.1e}: {result.status}")


if __name__ == "__main__":
    main()
