"""Smooth problems with published answers: the collection of Hock and Schittkowski (1981).

Minimise f(x) subject to c(x) <= 0, e(x) = 0, low <= x <= high, from the collection's own start. The
collection writes its inequalities as g(x) >= 0; c = -g here. ``best`` is the global optimum, a
closed form where there is one, otherwise the published value carried on to ten digits and more by
two other solvers. ``others`` are values of local optima, named only where the collection's
start lies in the basin of one, so that a local method may rightly end there.
"""

import math

import torch
from tests.solvers.known import INF, Known, of, rows
from tests.solvers.known_formulas import banana, biggs
from tests.solvers.known_larger import LARGER

ROOT2, ROOT3, ROOT7 = math.sqrt(2), math.sqrt(3), math.sqrt(7)


def cubic(k):
    """Problem 2 along x₂ = 3/2: the roots of 200 x³ - 299 x - 1."""
    a = math.sqrt(598 / 1200)
    return 2 * a * math.cos((math.acos(1 / (400 * a**3)) - 2 * math.pi * k) / 3)


SMALL = (
    Known("hs1", banana, (-2, 1), 0.0, low=(-INF, -1.5)),
    Known(
        "hs2",
        banana,
        (-2, 1),
        float(banana(of(cubic(0), 1.5))),
        low=(-INF, 1.5),
        others=(float(banana(of(cubic(2), 1.5))),),
    ),
    Known("hs3", lambda x: x[1] + 1e-5 * (x[1] - x[0]) ** 2, (10, 1), 0.0, low=(-INF, 0)),
    Known("hs4", lambda x: (x[0] + 1) ** 3 / 3 + x[1], (1.125, 0.125), 8 / 3, low=(1, 0)),
    Known(
        "hs5",
        lambda x: torch.sin(x.sum()) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1,
        (0, 0),
        -ROOT3 / 2 - math.pi / 3,
        low=(-1.5, -3),
        high=(4, 3),
    ),
    Known("hs6", lambda x: (1 - x[0]) ** 2, (-1.2, 1), 0.0, e=lambda x: 10 * (x[1] - x[0] ** 2)),
    Known(
        "hs7",
        lambda x: torch.log(1 + x[0] ** 2) - x[1],
        (2, 2),
        -ROOT3,
        e=lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4,
    ),
    Known(
        "hs8",
        lambda x: 0 * x[0] - 1,
        (2, 1),
        -1.0,
        e=lambda x: rows(x[0] ** 2 + x[1] ** 2 - 25, x[0] * x[1] - 9),
    ),
    Known(
        "hs9",
        lambda x: torch.sin(math.pi * x[0] / 12) * torch.cos(math.pi * x[1] / 16),
        (0, 0),
        -0.5,
        e=lambda x: 4 * x[0] - 3 * x[1],
    ),
    Known(
        "hs10",
        lambda x: x[0] - x[1],
        (-10, 10),
        -1.0,
        c=lambda x: 3 * x[0] ** 2 - 2 * x[0] * x[1] + x[1] ** 2 - 1,
    ),
    Known(
        "hs11",
        lambda x: (x[0] - 5) ** 2 + x[1] ** 2 - 25,
        (4.9, 0.1),
        -8.4984642231547,
        c=lambda x: x[0] ** 2 - x[1],
    ),
    Known(
        "hs12",
        lambda x: 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1],
        (0, 0),
        -30.0,
        c=lambda x: 4 * x[0] ** 2 + x[1] ** 2 - 25,
    ),
    Known(
        "hs14",
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        (2, 2),
        9 - 2.875 * ROOT7,
        c=lambda x: x[0] ** 2 / 4 + x[1] ** 2 - 1,
        e=lambda x: x[0] - 2 * x[1] + 1,
    ),
    Known(
        "hs15",
        banana,
        (-2, 1),
        306.5,
        c=lambda x: rows(1 - x[0] * x[1], -x[0] - x[1] ** 2),
        high=(0.5, INF),
        others=(360.37976717428353,),
    ),
    Known(
        "hs16",
        banana,
        (-2, 1),
        0.25,
        c=lambda x: rows(-x[0] - x[1] ** 2, -(x[0] ** 2) - x[1]),
        low=(-0.5, -INF),
        high=(0.5, 1),
        others=(2.25 + 100 * (ROOT2 / 2 - 0.25) ** 2,),
    ),
    Known(
        "hs17",
        banana,
        (-2, 1),
        1.0,
        c=lambda x: rows(x[0] - x[1] ** 2, x[1] - x[0] ** 2),
        low=(-0.5, -INF),
        high=(0.5, 1),
    ),
    Known(
        "hs18",
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2,
        (2, 2),
        5.0,
        c=lambda x: rows(25 - x[0] * x[1], 25 - x[0] ** 2 - x[1] ** 2),
        low=(2, 0),
        high=50.0,
    ),
    Known(
        "hs19",
        lambda x: (x[0] - 10) ** 3 + (x[1] - 20) ** 3,
        (20.1, 5.84),
        4.095**3 - (15 + math.sqrt(100 - 9.095**2)) ** 3,
        c=lambda x: rows(
            100 - (x[0] - 5) ** 2 - (x[1] - 5) ** 2, (x[0] - 6) ** 2 + (x[1] - 5) ** 2 - 82.81
        ),
        low=(13, 0),
        high=100.0,
    ),
    Known(
        "hs20",
        banana,
        (-2, 1),
        81.5 - 25 * ROOT3,
        c=lambda x: rows(-x[0] - x[1] ** 2, -(x[0] ** 2) - x[1], 1 - x[0] ** 2 - x[1] ** 2),
        low=(-0.5, -INF),
        high=(0.5, INF),
        others=(2.25 + 100 * (ROOT3 / 2 - 0.25) ** 2,),
    ),
    Known(
        "hs21",
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100,
        (-1, -1),
        -99.96,
        c=lambda x: 10 + x[1] - 10 * x[0],
        low=(2, -50),
        high=50.0,
    ),
    Known(
        "hs22",
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        (2, 2),
        1.0,
        c=lambda x: rows(x.sum() - 2, x[0] ** 2 - x[1]),
    ),
    Known(
        "hs23",
        lambda x: x[0] ** 2 + x[1] ** 2,
        (3, 1),
        2.0,
        c=lambda x: rows(
            1 - x[0] - x[1],
            1 - x[0] ** 2 - x[1] ** 2,
            9 - 9 * x[0] ** 2 - x[1] ** 2,
            x[1] - x[0] ** 2,
            x[0] - x[1] ** 2,
        ),
        low=-50.0,
        high=50.0,
    ),
    Known(
        "hs24",
        lambda x: ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * ROOT3),
        (1, 0.5),
        -1.0,
        c=lambda x: rows(x[1] - x[0] / ROOT3, -x[0] - ROOT3 * x[1], x[0] + ROOT3 * x[1] - 6),
        low=0.0,
    ),
    Known(
        "hs26",
        lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        (-2.6, 2, 2),
        0.0,
        e=lambda x: (1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3,
    ),
    Known(
        "hs27",
        lambda x: 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2,
        (2, 2, 2),
        0.04,
        e=lambda x: x[0] + x[2] ** 2 + 1,
    ),
    Known(
        "hs28",
        lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2,
        (-4, 1, 1),
        0.0,
        e=lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1,
    ),
    Known(
        "hs29",
        lambda x: -x.prod(),
        (1, 1, 1),
        -16 * ROOT2,
        c=lambda x: x[0] ** 2 + 2 * x[1] ** 2 + 4 * x[2] ** 2 - 48,
    ),
    Known(
        "hs30",
        lambda x: (x * x).sum(),
        (1, 1, 1),
        1.0,
        c=lambda x: 1 - x[0] ** 2 - x[1] ** 2,
        low=(1, -10, -10),
        high=10.0,
    ),
    Known(
        "hs31",
        lambda x: 9 * x[0] ** 2 + x[1] ** 2 + 9 * x[2] ** 2,
        (1, 1, 1),
        6.0,
        c=lambda x: 1 - x[0] * x[1],
        low=(-10, 1, -10),
        high=(10, 10, 1),
    ),
    Known(
        "hs32",
        lambda x: (x[0] + 3 * x[1] + x[2]) ** 2 + 4 * (x[0] - x[1]) ** 2,
        (0.1, 0.7, 0.2),
        1.0,
        c=lambda x: 3 + x[0] ** 3 - 6 * x[1] - 4 * x[2],
        e=lambda x: 1 - x.sum(),
        low=0.0,
    ),
    Known(
        "hs33",
        lambda x: (x[0] - 1) * (x[0] - 2) * (x[0] - 3) + x[2],
        (0, 0, 3),
        ROOT2 - 6,
        c=lambda x: rows(x[0] ** 2 + x[1] ** 2 - x[2] ** 2, 4 - (x * x).sum()),
        low=0.0,
        high=(INF, INF, 5),
        others=(-4.0,),
    ),
    Known(
        "hs34",
        lambda x: -x[0],
        (0, 1.05, 2.9),
        -math.log(math.log(10)),
        c=lambda x: rows(torch.exp(x[0]) - x[1], torch.exp(x[1]) - x[2]),
        low=0.0,
        high=(100, 100, 10),
    ),
    Known(
        "hs35",
        lambda x: (9 - of(8, 6, 4) @ x + of(2, 2, 1) @ x**2) + 2 * x[0] * x[1] + 2 * x[0] * x[2],
        (0.5, 0.5, 0.5),
        1 / 9,
        c=lambda x: x[0] + x[1] + 2 * x[2] - 3,
        low=0.0,
    ),
    Known(
        "hs36",
        lambda x: -x.prod(),
        (10, 10, 10),
        -3300.0,
        c=lambda x: of(1, 2, 2) @ x - 72,
        low=0.0,
        high=(20, 11, 42),
    ),
    Known(
        "hs37",
        lambda x: -x.prod(),
        (10, 10, 10),
        -3456.0,
        c=lambda x: rows(of(1, 2, 2) @ x - 72, -(of(1, 2, 2) @ x)),
        low=0.0,
        high=42.0,
    ),
    Known(
        "hs60",
        lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        (2, 2, 2),
        0.03256820025507,
        e=lambda x: x[0] * (1 + x[1] ** 2) + x[2] ** 4 - 4 - 3 * ROOT2,
        low=-10.0,
        high=10.0,
    ),
    Known(
        "hs61",
        lambda x: of(4, 2, 2) @ x**2 + of(-33, 16, -24) @ x,
        (0, 0, 0),
        -143.64614219778,
        e=lambda x: rows(3 * x[0] - 2 * x[1] ** 2 - 7, 4 * x[0] - x[2] ** 2 - 11),
    ),
    Known(
        "hs62", biggs, (0.7, 0.2, 0.1), -26272.514487318, e=lambda x: x.sum() - 1, low=0.0, high=1.0
    ),
    Known(
        "hs63",
        lambda x: 1000 - of(1, 2, 1) @ x**2 - x[0] * x[1] - x[0] * x[2],
        (2, 2, 2),
        961.71517213005,
        e=lambda x: rows(of(8, 14, 7) @ x - 56, (x * x).sum() - 25),
        low=0.0,
    ),
    Known(
        "hs64",
        lambda x: of(5, 20, 10) @ x + (of(50000, 72000, 144000) / x).sum(),
        (1, 1, 1),
        6299.8424279215,
        c=lambda x: (of(4, 32, 120) / x).sum() - 1,
        low=1e-5,
    ),
    Known(
        "hs65",
        lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2,
        (-5, 5, 0),
        0.95352885680478,
        c=lambda x: (x * x).sum() - 48,
        low=(-4.5, -4.5, -5),
        high=(4.5, 4.5, 5),
    ),
    Known(
        "hs66",
        lambda x: 0.2 * x[2] - 0.8 * x[0],
        (0, 1.05, 2.9),
        0.51816327418154,
        c=lambda x: rows(torch.exp(x[0]) - x[1], torch.exp(x[1]) - x[2]),
        low=0.0,
        high=(100, 100, 10),
    ),
)

PROBLEMS = (*SMALL, *LARGER)
