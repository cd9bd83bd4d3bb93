"""Twelve problems of Hock and Schittkowski with their published solutions, in one table.

Each row: start, f, c (each >= 0 in the book, so −c <= 0 here), e = 0, bounds, f at the solution.

Hock, Schittkowski, Test Examples for Nonlinear Programming Codes, 1981.

python examples/solve_hock_schittkowski.py
"""

import math

import torch

import setpoint as sp

log, stack = torch.log, torch.stack


def f100(x):
    """Problem 100."""
    a, b, c, d, e, f, g = x
    return (
        (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * e**6 + 7 * f**2
        + g**4 - 4 * f * g - 10 * f - 8 * g
    )  # fmt: skip


def c100(x):
    """Its constraints."""
    a, b, c, d, e, f, g = x
    return stack([
        127 - 2 * a**2 - 3 * b**4 - c - 4 * d**2 - 5 * e,
        282 - 7 * a - 3 * b - 10 * c**2 - d + e,
        196 - 23 * a - b**2 - 6 * f**2 + 8 * g,
        -4 * a**2 - b**2 + 3 * a * b - 2 * c**2 - 5 * f + 11 * g,
    ])  # fmt: skip


def f43(x):
    """Problem 43, Rosen and Suzuki."""
    a, b, c, d = x
    return a**2 + b**2 + 2 * c**2 + d**2 - 5 * a - 5 * b - 21 * c + 7 * d


def c43(x):
    """Its constraints."""
    a, b, c, d = x
    return stack([
        8 - x @ x - a + b - c + d,
        10 - x @ x - b**2 - d**2 + a + d,
        5 - 2 * a**2 - b**2 - c**2 - 2 * a + b + d,
    ])  # fmt: skip


def f76(x):
    """Problem 76."""
    a, b, c, d = x
    return a**2 + 0.5 * b**2 + c**2 + 0.5 * d**2 - a * c + c * d - a - 3 * b + c - d


def c76(x):
    """Its constraints."""
    a, b, c, d = x
    return stack([5 - a - 2 * b - c - d, 4 - 3 * a - b - 2 * c + d, b + 4 * c - 1.5])


#: number -> start, f, c >= 0, e = 0, bounds, the least f
PROBLEMS = {
    6: ([-1.2, 1], lambda x: (1 - x[0]) ** 2, None, lambda x: 10 * (x[1] - x[0] ** 2), None, 0),
    7: ([2, 2], lambda x: log(1 + x[0] ** 2) - x[1], None,
        lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4, None, -math.sqrt(3)),
    12: ([0, 0], lambda x: 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x.sum(),
         lambda x: 25 - 4 * x[0] ** 2 - x[1] ** 2, None, None, -30),
    22: ([2, 2], lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
         lambda x: stack([2 - x.sum(), x[1] - x[0] ** 2]), None, None, 1),
    28: ([-4, 1, 1], lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, None,
         lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1, None, 0),
    35: ([0.5] * 3, lambda x: 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2
         + x[2] ** 2 + 2 * x[0] * (x[1] + x[2]),
         lambda x: 3 - x[0] - x[1] - 2 * x[2], None, (0.0, None), 1 / 9),
    43: ([0] * 4, f43, c43, None, None, -44),
    48: ([3, 5, -3, 2, -2], lambda x: (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2,
         None, lambda x: stack([x.sum() - 5, x[2] - 2 * (x[3] + x[4]) + 3]), None, 0),
    65: ([-4.5, 4.5, 0], lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9
         + (x[2] - 5) ** 2, lambda x: 48 - x @ x, None,
         ([-4.5, -4.5, -5], [4.5, 4.5, 5]), 0.9535288567),
    71: ([1, 5, 5, 1], lambda x: x[0] * x[3] * x[:3].sum() + x[2], lambda x: x.prod() - 25,
         lambda x: x @ x - 40, (1.0, 5.0), 17.0140173),
    76: ([0.5] * 4, f76, c76, None, (0.0, None), -4.681818181),
    100: ([1, 2, 0, 4, 0, 1, 1], f100, c100, None, None, 680.6300573),
}  # fmt: skip


def solved(start, f, c, e, bounds):
    """The book's c >= 0 is −c <= 0 here."""
    sides = (
        None if bounds is None else tuple(None if b is None else torch.tensor(b) for b in bounds)
    )
    return sp.solve(
        f,
        torch.tensor(start, dtype=torch.float64),
        inequalities=(lambda x: -c(x)) if c else (),
        equalities=e or (),
        bounds=sides,
    )


def main():
    """Solve it, and print what was found beside the truth."""
    print("problem             f         published  violation      kkt  iterations")
    for number, (*problem, least) in PROBLEMS.items():
        result = solved(*problem)
        print(
            f"hs{number:<4} {result.fun:16.9f}  {least:16.9f}  {result.violation:9.1e}"
            f"  {result.kkt:7.1e}  {result.iterations:10d}"
        )


if __name__ == "__main__":
    main()
