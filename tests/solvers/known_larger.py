"""The problems of Hock and Schittkowski (1981) with four variables and more."""

import math

import torch
from tests.solvers.known import INF, Known, of, rows
from tests.solvers.known_formulas import (
    SHELL_A,
    SHELL_B,
    angle,
    chain,
    chain_cost,
    colville,
    colville_3,
    elements,
    five,
    gibbs,
    output_cost,
    output_sides,
    power_cost,
    power_flow,
    reactor,
    reactor_sides,
    rosen_suzuki,
    rosen_suzuki_sides,
    seven,
    seven_sides,
    shell,
    shell_dual,
    shell_dual_sides,
    transformer,
    transformer_sides,
    wong_2,
    wong_2_sides,
)

ROOT2 = math.sqrt(2)

LARGER = (
    Known("hs38", colville, (-3, -1, -3, -1), 0.0, low=-10.0, high=10.0),
    Known(
        "hs39",
        lambda x: -x[0],
        (2, 2, 2, 2),
        -1.0,
        e=lambda x: rows(x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2),
    ),
    Known(
        "hs40",
        lambda x: -x.prod(),
        (0.8, 0.8, 0.8, 0.8),
        -0.25,
        e=lambda x: rows(x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]),
    ),
    Known(
        "hs41",
        lambda x: 2 - x[:3].prod(),
        (2, 2, 2, 2),
        52 / 27,
        e=lambda x: of(1, 2, 2, -1) @ x,
        low=0.0,
        high=(1, 1, 1, 2),
    ),
    Known(
        "hs42",
        lambda x: ((x - of(1, 2, 3, 4)) ** 2).sum(),
        (1, 1, 1, 1),
        28 - 10 * ROOT2,
        e=lambda x: rows(x[0] - 2, x[2] ** 2 + x[3] ** 2 - 2),
    ),
    Known("hs43", rosen_suzuki, (0, 0, 0, 0), -44.0, c=rosen_suzuki_sides),
    Known(
        "hs44",
        lambda x: x[0] - x[1] - x[2] - x[0] * x[2] + x[0] * x[3] + x[1] * x[2] - x[1] * x[3],
        (0, 0, 0, 0),
        -15.0,
        c=lambda x: rows(
            x[0] + 2 * x[1] - 8,
            4 * x[0] + x[1] - 12,
            3 * x[0] + 4 * x[1] - 12,
            2 * x[2] + x[3] - 8,
            x[2] + 2 * x[3] - 8,
            x[2] + x[3] - 5,
        ),
        low=0.0,
        others=(-13.0,),
    ),
    Known("hs45", lambda x: 2 - x.prod() / 120, (2,) * 5, 1.0, low=0.0, high=(1, 2, 3, 4, 5)),
    Known(
        "hs46",
        lambda x: (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6,
        (ROOT2 / 2, 1.75, 0.5, 2, 2),
        0.0,
        e=lambda x: rows(
            x[0] ** 2 * x[3] + torch.sin(x[3] - x[4]) - 1, x[1] + x[2] ** 4 * x[3] ** 2 - 2
        ),
    ),
    Known(
        "hs48",
        lambda x: (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2,
        (3, 5, -3, 2, -2),
        0.0,
        e=lambda x: rows(x.sum() - 5, x[2] - 2 * (x[3] + x[4]) + 3),
    ),
    Known(
        "hs49",
        lambda x: (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6,
        (10, 7, 2, -3, 0.8),
        0.0,
        e=lambda x: rows(x[0] + x[1] + x[2] + 4 * x[3] - 7, x[2] + 5 * x[4] - 6),
    ),
    Known(
        "hs50",
        lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2 + (x[2] - x[3]) ** 4 + (x[3] - x[4]) ** 2,
        (35, -31, 11, 5, -5),
        0.0,
        e=lambda x: x[:3] + 2 * x[1:4] + 3 * x[2:] - 6,
    ),
    Known(
        "hs51",
        chain_cost(1),
        (2.5, 0.5, 2, -1, 0.5),
        0.0,
        e=lambda x: chain(x) - of(4, 0, 0),
    ),
    Known("hs52", chain_cost(4), (2,) * 5, 1859 / 349, e=chain),
    Known("hs53", chain_cost(1), (2,) * 5, 176 / 43, e=chain, low=-10.0, high=10.0),
    Known(
        "hs55",
        lambda x: x[0] + 2 * x[1] + 4 * x[4] + torch.exp(x[0] * x[3]),
        (1, 2, 0, 0, 0, 2),
        19 / 3,
        e=lambda x: rows(
            x[0] + 2 * x[1] + 5 * x[4] - 6,
            x[:3].sum() - 3,
            x[3:].sum() - 2,
            x[0] + x[3] - 1,
            x[1] + x[4] - 2,
            x[2] + x[5] - 2,
        ),
        low=0.0,
        high=(1, INF, INF, 1, INF, INF),
        others=(20 / 3,),
    ),
    Known(
        "hs56",
        lambda x: -x[:3].prod(),
        (1, 1, 1, *([math.asin(math.sqrt(1 / 4.2))] * 3), math.asin(math.sqrt(5 / 7.2))),
        -3.456,
        e=lambda x: torch.cat(
            [
                x[:3] - 4.2 * torch.sin(x[3:6]) ** 2,
                (of(1, 2, 2) @ x[:3] - 7.2 * torch.sin(x[6]) ** 2).reshape(1),
            ]
        ),
    ),
    Known(
        "hs71",
        lambda x: x[0] * x[3] * x[:3].sum() + x[2],
        (1, 5, 5, 1),
        17.014017289156,
        c=lambda x: 25 - x.prod(),
        e=lambda x: (x * x).sum() - 40,
        low=1.0,
        high=5.0,
    ),
    Known(
        "hs72",
        lambda x: 1 + x.sum(),
        (1, 1, 1, 1),
        727.67935778961,
        c=lambda x: rows(
            (of(4, 2.25, 1, 0.25) / x).sum() - 0.0401,
            (of(0.16, 0.36, 0.64, 0.64) / x).sum() - 0.010085,
        ),
        low=0.001,
        high=(4e5, 3e5, 2e5, 1e5),
    ),
    Known(
        "hs73",
        lambda x: of(24.55, 26.75, 39, 40.5) @ x,
        (1, 1, 1, 1),
        29.894378159143,
        c=lambda x: rows(
            5 - of(2.3, 5.6, 11.1, 1.3) @ x,
            21
            + 1.645 * torch.sqrt(of(0.28, 0.19, 20.5, 0.62) @ x**2)
            - of(12, 11.9, 41.8, 52.1) @ x,
        ),
        e=lambda x: x.sum() - 1,
        low=0.0,
    ),
    Known(
        "hs74",
        power_cost,
        (0, 0, 0, 0),
        5126.4981095953,
        c=angle(0.55),
        e=power_flow,
        low=(0, 0, -0.55, -0.55),
        high=(1200, 1200, 0.55, 0.55),
    ),
    Known(
        "hs75",
        power_cost,
        (0, 0, 0, 0),
        5174.4126953777,
        c=angle(0.48),
        e=power_flow,
        low=(0, 0, -0.48, -0.48),
        high=(1200, 1200, 0.48, 0.48),
    ),
    Known(
        "hs76",
        lambda x: of(1, 0.5, 1, 0.5) @ x**2 - x[0] * x[2] + x[2] * x[3] + of(-1, -3, 1, -1) @ x,
        (0.5, 0.5, 0.5, 0.5),
        -103 / 22,
        c=lambda x: rows(of(1, 2, 1, 1) @ x - 5, of(3, 1, 2, -1) @ x - 4, 1.5 - x[1] - 4 * x[2]),
        low=0.0,
    ),
    Known(
        "hs77",
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[2] - 1) ** 2
            + (x[3] - 1) ** 4
            + (x[4] - 1) ** 6
        ),
        (2,) * 5,
        0.24150512879018,
        e=lambda x: rows(
            x[0] ** 2 * x[3] + torch.sin(x[3] - x[4]) - 2 * ROOT2,
            x[1] + x[2] ** 4 * x[3] ** 2 - 8 - ROOT2,
        ),
    ),
    Known("hs78", lambda x: x.prod(), (-2, 1.5, 2, -1, -1), -2.9197004089637, e=five),
    Known(
        "hs79",
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[1] - x[2]) ** 2
            + (x[2] - x[3]) ** 4
            + (x[3] - x[4]) ** 4
        ),
        (2,) * 5,
        0.078776820871057,
        e=lambda x: rows(
            x[0] + x[1] ** 2 + x[2] ** 3 - 2 - 3 * ROOT2,
            x[1] - x[2] ** 2 + x[3] + 2 - 2 * ROOT2,
            x[0] * x[4] - 2,
        ),
    ),
    Known(
        "hs80",
        lambda x: torch.exp(x.prod()),
        (-2, 2, 2, -1, -1),
        0.053949847770272,
        e=five,
        low=(-2.3, -2.3, -3.2, -3.2, -3.2),
        high=(2.3, 2.3, 3.2, 3.2, 3.2),
    ),
    Known(
        "hs81",
        lambda x: torch.exp(x.prod()) - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2,
        (-2, 2, 2, -1, -1),
        0.053949847770272,
        e=five,
        low=(-2.3, -2.3, -3.2, -3.2, -3.2),
        high=(2.3, 2.3, 3.2, 3.2, 3.2),
    ),
    Known(
        "hs83",
        lambda x: 5.3578547 * x[2] ** 2 + 0.8356891 * x[0] * x[4] + 37.293239 * x[0] - 40792.141,
        (78, 33, 27, 27, 27),
        -30665.538671783,
        c=colville_3,
        low=(78, 33, 27, 27, 27),
        high=(102, 45, 45, 45, 45),
    ),
    Known(
        "hs86", shell, (0, 0, 0, 0, 1), -32.348678965723, c=lambda x: SHELL_B - SHELL_A @ x, low=0.0
    ),
    Known(
        "hs93",
        transformer,
        (5.54, 4.4, 12.02, 11.8, 0.702, 0.852),
        135.07596282915,
        c=transformer_sides,
        low=0.0,
    ),
    Known("hs100", seven, (1, 2, 0, 4, 0, 1, 1), 680.6300573744, c=seven_sides),
    Known(
        "hs104",
        reactor,
        (6, 3, 0.4, 0.2, 6, 6, 1, 0.5),
        3.9511634401034,
        c=reactor_sides,
        low=0.1,
        high=10.0,
    ),
    Known(
        "hs110",
        lambda x: (torch.log(x - 2) ** 2 + torch.log(10 - x) ** 2).sum() - x.prod() ** 0.2,
        (9,) * 10,
        -45.778469707446,
        low=2.001,
        high=9.999,
    ),
    Known(
        "hs111",
        lambda x: gibbs(torch.exp(x)),
        (-2.3,) * 10,
        -47.761090859366,
        e=lambda x: elements(torch.exp(x)),
        low=-100.0,
        high=100.0,
    ),
    Known("hs112", gibbs, (0.1,) * 10, -47.761090859366, e=elements, low=1e-6),
    Known("hs113", wong_2, (2, 3, 5, 5, 1, 2, 7, 3, 6, 10), 24.30620906818, c=wong_2_sides),
    Known(
        "hs117",
        shell_dual,
        (*([0.001] * 6), 60, *([0.001] * 8)),
        32.348678965723,
        c=shell_dual_sides,
        low=0.0,
    ),
    Known(
        "hs118",
        output_cost,
        (20, 55, 15, 20, 60, 20, 20, 60, 20, 20, 60, 20, 20, 60, 20),
        664.8204500,
        c=output_sides,
        low=(8, 43, 3, *([0] * 12)),
        high=(21, 57, 16, *([90, 120, 60] * 4)),
    ),
)
