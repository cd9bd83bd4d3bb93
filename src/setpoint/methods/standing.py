"""How a Lagrangian program stands, in the user's units.

A constraint N/D >= b is trained on as v = (b D − N)/D*, D* what perfect decisions would give, so a
multiplier λ of v is λ D/D* for each unit of b − N/D.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.method import Recovered, Standing
from setpoint.methods.rate_targets import area_of

TINY = 1e-9  #: an excess this small says nothing about its unit


def recovered(program: Any, totals: Tensor, state: Tensor) -> Recovered:
    """Objective and excess at the exact totals, per unit of mass, and the multipliers.

    Parameters
    ----------
    program : LagrangianProgram
    totals : torch.Tensor
    state : torch.Tensor
        Of the dual.
    """
    lowered, points = program.lowered, program.points
    cells = totals.double().cpu().numpy()[points : 2 * points]
    paid = program.dual.multipliers(state.double().cpu().numpy(), program.equal) * program.unit
    if program.aim is None:
        value, *excess = lowered.stated(cells)
        rows = zip(lowered.constraints, excess, paid * _units(lowered, cells), strict=True)
        value = -lowered.goal.sign * value
    else:
        each = np.array([lowered.stated(row[None]) for row in cells])  # (T, 2)
        slope, start = area_of(program.goal)
        value = start - slope * each[:, 0].mean()
        held = f"{lowered.goal.constraints[0]}".removesuffix(" 0")
        texts = [f"{held} {level:.6g}" for level in program.aim.levels]
        rows = zip(texts, each[:, 1] + program.host_levels, paid * slope / points, strict=True)
    found = tuple(Standing(text, float(x), float(y)) for text, x, y in rows)
    at = program.reader.thresholds.tolist() if program.reader.moves else ()
    return Recovered(float(value), found, tuple(at))


def _units(lowered: Lowered, cells: np.ndarray) -> np.ndarray:
    """By what v grows with each unit of excess, D/D*; 1 where it is the excess itself."""
    units = np.ones(len(lowered.constraints))
    # where a constraint holds with equality both are 0: their ratio is read beside it
    for place in (cells + 1e-6, cells):
        v, excess = lowered.read(place)[0][0, 1:], np.array(lowered.stated(place)[1:])
        seen = np.abs(excess) > TINY
        units[seen] = v[seen] / excess[seen]
    return units
