"""Options of the table form of the exact reformulation (``exact_table``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.methods.exact.whole_problem import REGULARISERS, RELATIONS
from setpoint.surrogates import Annealed, schedule


@dataclass(frozen=True)
class Tabled:
    """Options of the table form.

    Parameters
    ----------
    rows : int
        Rows of the data, numbered 0…rows-1.
    rho : None, float or Schedule
        ρ, how firmly memberships are tied to decisions; from 0.1 to 4 by default.
    lam : None, float or Schedule
        λ, the weight of the regulariser; from 1/8 to 1.4 by default.
    steps : int
        Steps over which they grow, where they are not given.
    rate_s : float
        η, how far a membership moves in a visit. With 1 or more it is at 0 or 1 after each; take it
        where a row is visited a few times only.
    regulariser : {"trim", "relabel", "none"}
    relation : {"auto", "inequality", "equality"}
        Auto: by inequalities for the classes (and groups) of which the goal always wants the same.
    table : path, optional
        A file for the table; in memory otherwise.
    rate : float
        How fast a broken constraint gets dearer: by exp(rate · violation) while all rows come by.
    multipliers : sequence of float, optional
        Where to start, one per constraint; 1 by default.
    """

    rows: int
    rho: Any = None
    lam: Any = None
    steps: int = 1000
    rate_s: float = 0.3
    regulariser: str = "trim"
    relation: str = "auto"
    table: Any = None
    rate: float = 2.0
    multipliers: Any = None

    def __post_init__(self) -> None:
        if not is_real(self.steps) or self.steps < 1 or self.steps % 1:
            raise KindError(f"steps={self.steps!r}: a whole number, 1 or more")
        for name, (low, high) in {"rho": (0.1, 4.0), "lam": (0.125, 1.4)}.items():
            x = getattr(self, name)
            x = Annealed(low, high, int(self.steps)) if x is None else schedule(x, name)
            object.__setattr__(self, name, x)
        for name in ("rate_s", "rate"):
            x = getattr(self, name)
            if not is_real(x) or not 0 <= x < math.inf:
                raise KindError(f"{name}={x!r}: a number, 0 or more")
        for name, known in (("regulariser", REGULARISERS), ("relation", RELATIONS)):
            x = getattr(self, name)
            if x not in known:
                hint = did_you_mean(str(x), known, f"choose from {listing(known)}.")
                raise KindError(f"{name}={x!r}: {hint}")
        if self.multipliers is not None:
            given = self.multipliers
            numbers = tuple(given) if isinstance(given, Iterable) else ()
            if not numbers or not all(is_real(x) and 0 <= x < math.inf for x in numbers):
                raise KindError(f"multipliers={given!r}: one number, 0 or more, per constraint")
            object.__setattr__(self, "multipliers", tuple(float(x) for x in numbers))
