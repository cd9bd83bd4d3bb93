"""Non-smooth constrained problems with published, closed-form or linear-programming answers.

Sources: Luksan and Vlcek (2000), *Test problems for nonsmooth unconstrained and linearly
constrained optimization* (MAD1, MAD2, MAD4, MAD5, MAD6, PENTAGON, WONG 1 and 2, Rosen-Suzuki, CB2,
CB3, DEM, QL, LQ, Mifflin 1 and 2); where the original has no constraint, one was added here whose
optimum follows by hand, or some of the terms of a penalty were taken back as the constraints they
stand for. Every value was also found by a smooth solver on the epigraph form.
"""

import math

import numpy as np
import torch
from scipy.optimize import brentq, linprog, lsq_linear
from tests.solvers.known import INF, Known, of, rows
from tests.solvers.known_formulas import (
    rosen_suzuki,
    rosen_suzuki_sides,
    seven,
    seven_sides,
    wong_2,
    wong_2_sides,
)

ROOT2, ROOT3 = math.sqrt(2), math.sqrt(3)


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def most(*values):
    return rows(*values).amax()


def mad(x):
    return most(x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 1, torch.sin(x[0]), -torch.cos(x[1]))


def exponentials(x):
    """MAD4 and MAD5; not a number where x₂ < 0."""
    a, b = x
    return most(-torch.exp(a - b), torch.sinh(a - 1) - 1, -torch.log(b) - 1)


def antenna(x):
    """MAD6: the side lobes of an array of fifteen."""
    angles = math.pi * (8.5 + 0.5 * torch.arange(1, 164, dtype=torch.float64)) / 180
    waves = torch.cos(2 * math.pi * torch.sin(angles)[:, None] * x)
    return (1 / 15 + 2 / 15 * waves.sum(1)).abs().amax()


def pentagon(x):
    points = x.reshape(3, 2)
    return -torch.linalg.vector_norm(points - points.roll(-1, 0), dim=1).amin()


def in_pentagon(x):
    turns = 2 * math.pi * torch.arange(5, dtype=torch.float64) / 5
    return (x.reshape(3, 2) @ rows(torch.cos(turns), torch.sin(turns)) - 1).flatten()


def cb2(x):
    a, b = x
    return most(a**2 + b**4, (2 - a) ** 2 + (2 - b) ** 2, 2 * torch.exp(b - a))


def cb3(x):
    a, b = x
    return most(a**4 + b**2, (2 - a) ** 2 + (2 - b) ** 2, 2 * torch.exp(b - a))


def penalised(f, sides, chosen):
    """The greatest of f and f + 10 g_i: the same optimum as with g <= 0, where all λ <= 10."""
    return lambda x: f(x) + 10 * sides(x)[chosen].amax().clamp(min=0)


def lq(x):
    return -x.sum() + ((x * x).sum() - 1).clamp(min=0)


def mifflin_1(x):
    return -x[0] + 20 * ((x * x).sum() - 1).clamp(min=0)


def mifflin_2(x):
    ring = (x * x).sum() - 1
    return -x[0] + 2 * ring + 1.75 * ring.abs()


# Regression in l1 and in l∞ over a simplex and an l1 ball: linear programs.
A, B = drawn(1, 12, 4), drawn(2, 12)
TA, TB = torch.tensor(A), torch.tensor(B)


def least_deviations():
    """min Σ t, -t <= A x - b <= t, x >= 0, Σ x = 1."""
    eye = np.eye(12)
    found = linprog(
        np.r_[np.zeros(4), np.ones(12)],
        np.block([[A, -eye], [-A, -eye]]),
        np.r_[B, -B],
        [[1] * 4 + [0] * 12],
        [1],
    )
    return found.fun


def least_greatest():
    """min t, -t <= A x - b <= t, |x|₁ <= 1/2, x = u - v."""
    one = np.ones((12, 1))
    found = linprog(
        np.r_[np.zeros(8), 1],
        np.block([[A, -A, -one], [-A, A, -one], [np.ones((1, 8)), np.zeros((1, 1))]]),
        np.r_[B, -B, 0.5],
    )
    return found.fun


POLYTOPE = drawn(3, 9, 3)
POLYTOPE /= np.linalg.norm(POLYTOPE, axis=1, keepdims=True)
OFFSETS = np.abs(drawn(4, 9)) + 0.5


def chebyshev_centre():
    """The greatest ball in a polytope with its centre on the plane Σ x = 0.2."""
    sides = np.c_[POLYTOPE, np.ones(9)]
    free = [(None, None)] * 4
    found = linprog([0, 0, 0, -1], sides, OFFSETS, [[1, 1, 1, 0]], [0.2], bounds=free)
    return found.fun


SIGNAL = np.random.default_rng(5).uniform(size=10)
STEPS = np.diff(np.eye(10), axis=0)


def fused():
    """|x - b|² + ½ Σ|x_{i+1} - x_i| with Σ x = 4: the dual is a box, Σ x moves the level alone."""
    found = lsq_linear(STEPS.T, 2 * SIGNAL, bounds=(-0.5, 0.5), method="bvls", tol=1e-14)
    x = SIGNAL - STEPS.T @ found.x / 2
    x += (4 - x.sum()) / 10
    return ((x - SIGNAL) ** 2).sum() + 0.5 * np.abs(np.diff(x)).sum()


POINT = of(1.5, -2, 0.7, 0.2)


def to_ball():
    """The l∞ distance to the unit ball: |(|p| - t)₊|₂ = 1."""
    sizes = POINT.abs().numpy()
    return brentq(lambda t: np.linalg.norm((sizes - t).clip(0)) - 1, 0, 2, xtol=1e-15)


TURN = torch.linalg.qr(torch.tensor(drawn(6, 4, 4))).Q
RING = torch.eye(5, dtype=torch.float64).roll(1, 0)
LAPLACIAN = 2 * torch.eye(5, dtype=torch.float64) - RING - RING.T
LEFT, RIGHT = (torch.linalg.qr(torch.tensor(drawn(s, 3, 3))).Q for s in (7, 8))
MATRIX = LEFT @ torch.diag(of(3, 2, 0.5)) @ RIGHT.T
CLOUD = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)).double()


def nuclear(x):
    return torch.linalg.svdvals(x).sum()


KINKS = (
    Known(
        "rosenbrock",
        lambda x: 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2,
        (1, 1),
        (1 - 1 / ROOT2) ** 2,
        c=lambda x: rows(ROOT2 * x[0] - 1, 2 * x[1] - 1),
    ),
    Known("mad1", mad, (1, 2), -0.3896595160972098, c=lambda x: 0.5 - x.sum()),
    Known("mad2", mad, (-2, -1), -37 / 112, c=lambda x: 3 * x[0] + x[1] + 2.5),
    Known(
        "mad4", exponentials, (-1, 0.01), -0.44891078610662116, c=lambda x: x[1] - 0.05 * x[0] - 0.5
    ),
    Known("mad5", exponentials, (-1, 3), -0.4292806146198104, c=lambda x: 1 + 0.9 * x[0] - x[1]),
    Known(
        "mad6",
        antenna,
        (0.5, 1, 1.5, 2, 2.5, 3, 3.5),
        0.10183088875863396,
        c=lambda x: torch.cat([0.4 - x[:1], 0.4 - x.diff()]),
        e=lambda x: rows(x[5] - x[3] - 1, x[6] - 3.5),
    ),
    Known("pentagon", pentagon, (-1, 0, 0, -1, 1, 1), -1.859618695941715, c=in_pentagon),
    Known(
        "wong1",
        penalised(seven, seven_sides, [0, 1]),
        (1, 2, 0, 4, 0, 1, 1),
        680.630057374402,
        c=lambda x: seven_sides(x)[2:],
    ),
    Known(
        "wong2",
        penalised(wong_2, wong_2_sides, [3, 4, 5, 6, 7]),
        (2, 3, 5, 5, 1, 2, 7, 3, 6, 10),
        24.306209068179797,
        c=lambda x: wong_2_sides(x)[:3],
    ),
    Known(
        "rosen-suzuki",
        penalised(rosen_suzuki, rosen_suzuki_sides, [0, 2]),
        (0, 0, 0, 0),
        -44.0,
        c=lambda x: rosen_suzuki_sides(x)[1],
    ),
    Known("cb2 on a line", cb2, (1, -0.1), 2.0076147267556235, e=lambda x: x[0] - x[1] - 0.5),
    Known("cb3 on a line", cb3, (2, 2), 2.5533568321690163, e=lambda x: x[0] - 2 * x[1]),
    Known(
        "dem above -2",
        lambda x: most(5 * x[0] + x[1], x[1] - 5 * x[0], (x * x).sum() + 4 * x[1]),
        (1, 1),
        -2.0,
        low=(-INF, -2),
    ),
    Known(
        "ql",
        lambda x: (x * x).sum() + 10 * (6 - x[0] - 2 * x[1]).clamp(min=0),
        (-1, 5),
        7.2,
        c=lambda x: 4 - 4 * x[0] - x[1],
    ),
    Known("lq left of 1/2", lq, (-0.5, -0.5), -0.5 - ROOT3 / 2, high=(0.5, INF)),
    Known("mifflin1 on a line", mifflin_1, (0.8, 0.6), -1 / ROOT2, e=lambda x: x[0] - x[1]),
    Known("mifflin2 on a line", mifflin_2, (-1, -1), -0.8, e=lambda x: 3 * x[0] - 4 * x[1]),
    Known(
        "least deviations",
        lambda x: (TA @ x - TB).abs().sum(),
        (0.25,) * 4,
        least_deviations(),
        e=lambda x: x.sum() - 1,
        low=0.0,
    ),
    Known(
        "least greatest deviation",
        lambda x: (TA @ x - TB).abs().amax(),
        (0.3,) * 4,
        least_greatest(),
        c=lambda x: x.abs().sum() - 0.5,
    ),
    Known(
        "chebyshev centre",
        lambda x: (torch.tensor(POLYTOPE) @ x - torch.tensor(OFFSETS)).amax(),
        (1, 1, 1),
        chebyshev_centre(),
        e=lambda x: x.sum() - 0.2,
    ),
    Known(
        "fused lasso",
        lambda x: ((x - torch.tensor(SIGNAL)) ** 2).sum() + 0.5 * x.diff().abs().sum(),
        (1,) * 10,
        fused(),
        e=lambda x: x.sum() - 4,
    ),
    # The dual norm of the normal: |a·p - b| / |a|∞.
    Known(
        "l1 to a plane",
        lambda x: (x - POINT).abs().sum(),
        (0,) * 4,
        abs(float(of(1, 2, -3, 1) @ POINT) - 4) / 3,
        e=lambda x: of(1, 2, -3, 1) @ x - 4,
    ),
    Known(
        "l∞ to a ball",
        lambda x: (x - POINT).abs().amax(),
        (0.1,) * 4,
        to_ball(),
        c=lambda x: (x * x).sum() - 1,
    ),
    Known(
        "to an l1 sphere",
        lambda x: ((x - of(2, 0.5)) ** 2).sum(),
        (0.3, 0.9),
        1.25,
        e=lambda x: x.abs().sum() - 1,
    ),
    # Any column of TURN: one entry of Qᵀx is ±1.
    Known(
        "sparsest on a sphere",
        lambda x: (TURN.T @ x).abs().sum(),
        (0.5, 0.5, -0.5, 0.5),
        1.0,
        e=lambda x: (x * x).sum() - 1,
    ),
    Known(
        "least greatest on a sphere",
        lambda x: x.amax(),
        (0.9, -0.1, 0.3, 0.1, -0.2),
        -1 / math.sqrt(5),
        e=lambda x: (x * x).sum() - 1,
    ),
    # The ring looks the same from every node, so no shift of trace 0 helps; the value is double.
    Known(
        "greatest eigenvalue",
        lambda x: torch.linalg.eigvalsh(LAPLACIAN + torch.diag(x))[-1],
        (1, -0.5, 0.3, 0.2, -1),
        (5 + math.sqrt(5)) / 2,
        e=lambda x: x.sum(),
    ),
    # Singular values 3, 2, 0.5 soft-thresholded at 1 lie at distance 1.5.
    Known(
        "nuclear norm in a ball",
        lambda x: nuclear(x.reshape(3, 3)),
        tuple(MATRIX.flatten().tolist()),
        3.0,
        c=lambda x: ((x - MATRIX.flatten()) ** 2).sum() - 2.25,
    ),
    # λ |sign Y|₂ <= 0.05 √12 < 1: everything goes to the sparse part.
    Known(
        "robust pca",
        lambda x: nuclear(x[:12].reshape(3, 4)) + 0.05 * x[12:].abs().sum(),
        (0.2,) * 24,
        0.05 * float(CLOUD.abs().sum()),
        e=lambda x: x[:12] + x[12:] - CLOUD.flatten(),
    ),
)
