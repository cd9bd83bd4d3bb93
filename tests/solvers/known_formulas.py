"""The longer formulas of the collection of Hock and Schittkowski (1981)."""

import torch
from tests.solvers.known import of, rows


def banana(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def colville(x):
    b, c, d = x[1:]
    wood = 90 * (d - c**2) ** 2 + (1 - c) ** 2 + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2)
    return banana(x) + wood + 19.8 * (b - 1) * (d - 1)


def five(x):
    """The equations of problems 78, 80 and 81."""
    a, b, c, d, g = x
    return rows((x * x).sum() - 10, b * c - 5 * d * g, a**3 + b**3 + 1)


def chain(x):
    """The equations of problems 52 and 53."""
    a, b, c, d, g = x
    return rows(a + 3 * b, c + d - 2 * g, b - g)


def chain_cost(first):
    return lambda x: (
        (first * x[0] - x[1]) ** 2
        + (x[1] + x[2] - 2) ** 2
        + (x[3] - 1) ** 2
        + (x[4] - 1) ** 2
    )  # fmt: skip


def rosen_suzuki(x):
    a, b, c, d = x
    return a**2 + b**2 + 2 * c**2 + d**2 - 5 * a - 5 * b - 21 * c + 7 * d


def rosen_suzuki_sides(x):
    a, b, c, d = x
    return rows(
        a**2 + b**2 + c**2 + d**2 + a - b + c - d - 8,
        a**2 + 2 * b**2 + c**2 + 2 * d**2 - a - d - 10,
        2 * a**2 + b**2 + c**2 + 2 * a - b - d - 5,
    )


def biggs(x):
    a, b, c = (x[0], x[1], x[2])
    return -32.174 * (
        255 * torch.log((a + b + c + 0.03) / (0.09 * a + b + c + 0.03))
        + 280 * torch.log((b + c + 0.03) / (0.07 * b + c + 0.03))
        + 290 * torch.log((c + 0.03) / (0.13 * c + 0.03))
    )


def power_flow(x):
    """The equations of problems 74 and 75."""
    a, b, c, d = x
    return rows(
        1000 * torch.sin(-c - 0.25) + 1000 * torch.sin(-d - 0.25) + 894.8 - a,
        1000 * torch.sin(c - 0.25) + 1000 * torch.sin(c - d - 0.25) + 894.8 - b,
        1000 * torch.sin(d - 0.25) + 1000 * torch.sin(d - c - 0.25) + 1294.8,
    )


def power_cost(x):
    a, b = x[0], x[1]
    return 3 * a + 1e-6 * a**3 + 2 * b + 2e-6 / 3 * b**3


def angle(most):
    return lambda x: rows(x[2] - x[3] - most, x[3] - x[2] - most)


def colville_3(x):
    a, b, c, d, g = x
    u = 85.334407 + 0.0056858 * b * g + 0.0006262 * a * d - 0.0022053 * c * g
    v = 80.51249 + 0.0071317 * b * g + 0.0029955 * a * b + 0.0021813 * c**2
    w = 9.300961 + 0.0047026 * c * g + 0.0012547 * a * c + 0.0019085 * c * d
    return rows(-u, u - 92, 90 - v, v - 110, 20 - w, w - 25)


SHELL_E = of(-15, -27, -36, -18, -12)
SHELL_D = of(4, 8, 10, 6, 2)
SHELL_C = of(
    *(30, -20, -10, 32, -10),
    *(-20, 39, -6, -31, 32),
    *(-10, -6, 10, -6, -10),
    *(32, -31, -6, 39, -20),
    *(-10, 32, -10, -20, 30),
).reshape(5, 5)
SHELL_A = of(
    *(-16, 2, 0, 1, 0, 0, -2, 0, 4, 2, -3.5, 0, 2, 0, 0, 0, -2, 0, -4, -1, 0, -9, -2, 1, -2.8),
    *(2, 0, -4, 0, 0, -1, -1, -1, -1, -1, -1, -2, -3, -2, -1, 1, 2, 3, 4, 5, 1, 1, 1, 1, 1),
).reshape(10, 5)
SHELL_B = of(-40, -2, -0.25, -4, -4, -1, -40, -60, 5, 1)


def shell(x):
    return SHELL_E @ x + x @ SHELL_C @ x + SHELL_D @ x**3


def shell_dual(x):
    u, v = x[:10], x[10:]
    return -(SHELL_B @ u) + v @ SHELL_C @ v + 2 * SHELL_D @ v**3


def shell_dual_sides(x):
    u, v = x[:10], x[10:]
    return SHELL_A.T @ u - 2 * SHELL_C @ v - 3 * SHELL_D * v**2 - SHELL_E


def transformer(x):
    a, b, c, d, g, h = x
    one, two = a * d * (a + b + c), b * c * (a + 1.57 * b + d)
    return (0.0204 + 0.0607 * g**2) * one + (0.0187 + 0.0437 * h**2) * two


def transformer_sides(x):
    a, b, c, d, g, h = x
    one, two = a * d * (a + b + c), b * c * (a + 1.57 * b + d)
    return rows(
        2.07 - 0.001 * a * b * c * d * g * h, 0.00062 * one * g**2 + 0.00058 * two * h**2 - 1
    )


def seven(x):
    a, b, c, d, g, h, k = x
    first = (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * g**6
    return first + 7 * h**2 + k**4 - 4 * h * k - 10 * h - 8 * k


def seven_sides(x):
    a, b, c, d, g, h, k = x
    return rows(
        2 * a**2 + 3 * b**4 + c + 4 * d**2 + 5 * g - 127,
        7 * a + 3 * b + 10 * c**2 + d - g - 282,
        23 * a + b**2 + 6 * h**2 - 8 * k - 196,
        4 * a**2 + b**2 - 3 * a * b + 2 * c**2 + 5 * h - 11 * k,
    )


def reactor(x):
    a, b, c, d = x[0], x[1], x[6], x[7]
    return 0.4 * (a / c) ** 0.67 + 0.4 * (b / d) ** 0.67 + 10 - a - b


def reactor_sides(x):
    a, b, c, d, g, h, k, m = x
    return rows(
        0.0588 * g * k + 0.1 * a - 1,
        0.0588 * h * m + 0.1 * a + 0.1 * b - 1,
        4 * c / g + 2 * c**-0.71 / g + 0.0588 * c**-1.3 * k - 1,
        4 * d / h + 2 * d**-0.71 / h + 0.0588 * d**-1.3 * m - 1,
        1 - reactor(x),
        reactor(x) - 4.2,
    )


GIBBS = of(*(-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179))


def gibbs(x):
    return (x * (GIBBS + torch.log(x / x.sum()))).sum()


def elements(x):
    a, b, c, d, g, h, k, m, p, q = x
    return rows(a + 2 * b + 2 * c + h + q - 2, d + 2 * g + h + k - 1, c + k + m + 2 * p + q - 1)


def wong_2(x):
    a, b = x[0], x[1]
    weights, centers = of(1, 4, 1, 2, 5, 7, 2, 1), of(10, 5, 3, 1, 0, 11, 10, 7)
    return a**2 + b**2 + a * b - 14 * a - 16 * b + (weights * (x[2:] - centers) ** 2).sum() + 45


def wong_2_sides(x):
    a, b, c, d, g, h, k, m, p, q = x
    return rows(
        4 * a + 5 * b - 3 * k + 9 * m - 105,
        10 * a - 8 * b - 17 * k + 2 * m,
        -8 * a + 2 * b + 5 * p - 2 * q - 12,
        3 * (a - 2) ** 2 + 4 * (b - 3) ** 2 + 2 * c**2 - 7 * d - 120,
        5 * a**2 + 8 * b + (c - 6) ** 2 - 2 * d - 40,
        0.5 * (a - 8) ** 2 + 2 * (b - 4) ** 2 + 3 * g**2 - h - 30,
        a**2 + 2 * (b - 2) ** 2 - 2 * a * b + 14 * g - 6 * h,
        -3 * a + 6 * b + 12 * (p - 8) ** 2 - 7 * q,
    )


def output_sides(x):
    """Problem 118: how fast three plants may change, and what they must give in five periods."""
    plants = x.reshape(5, 3)
    change = plants[1:] - plants[:-1]
    needed = of(60, 50, 70, 85, 100)
    return torch.cat(
        [(-7 - change).flatten(), (change - of(6, 7, 6)).flatten(), needed - plants.sum(1)]
    )


def output_cost(x):
    plants = x.reshape(5, 3)
    return (plants @ of(2.3, 1.7, 2.2) + plants**2 @ of(1e-4, 1e-4, 1.5e-4)).sum()
