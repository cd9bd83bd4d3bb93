"""An objective and constraints read over many candidates, and the choice among them.

A candidate is *eligible* where its objective is defined, *feasible* where every constraint holds
as well. The best feasible candidate is chosen; without one, the eligible candidate whose largest
excess is least, then the one with the better objective. Among equals the first, which is the
highest threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from setpoint.expressions.constraint import SLACK, Constraint
from setpoint.expressions.node import Node

CHUNK = 1 << 15  # candidates read at once: the temporaries stay in the cache


class Candidates(Protocol):
    """Something that knows the state of each leaf at each candidate."""

    @property
    def size(self) -> int:
        """Number of candidates."""
        ...

    def state(self, leaf: Any, start: int, stop: int) -> Any:
        """The states at candidates ``start:stop``, or one number for all."""
        ...


@dataclass(frozen=True, eq=False)
class Scan:
    """Readings over m candidates.

    Attributes
    ----------
    merit : numpy.ndarray of shape (m,)
        sense × objective, higher is better; −inf where the objective is undefined.
    excess : list of numpy.ndarray of shape (m,)
        Per constraint; +inf where undefined, and at most ``SLACK`` where it holds.
    """

    merit: np.ndarray
    excess: list[np.ndarray]

    def feasible(self, leaving_out: int | None = None) -> np.ndarray:
        """Where the objective is defined and every constraint holds (but one left out)."""
        ok = self.merit > -np.inf
        for j, excess in enumerate(self.excess):
            if j != leaving_out:
                ok &= excess <= SLACK
        return ok

    def best(self, among: np.ndarray) -> int | None:
        """The first of the best candidates in a mask; None if the mask is empty."""
        if not among.any():
            return None
        top = self.merit.max() if among.all() else self.merit[among].max()
        return int(np.argmax(among & (self.merit >= top - SLACK * max(1.0, abs(top)))))

    def choose(self) -> tuple[int, bool]:
        """Index of the chosen candidate, and whether it is feasible."""
        found = self.best(self.feasible())
        if found is not None:
            return found, True
        eligible = self.merit > -np.inf
        if not self.excess or not eligible.any():
            return 0, False
        worst = np.where(eligible, np.maximum.reduce(self.excess), np.inf)
        near = eligible & (worst <= worst.min() + SLACK)
        return self.best(near) or 0, False


def scan(
    candidates: Candidates, objective: Node, sense: int, constraints: Sequence[Constraint]
) -> Scan:
    """Read a ground objective and ground constraints at every candidate, chunk by chunk."""
    m = candidates.size
    leaves = dict.fromkeys(objective.leaves())
    for constraint in constraints:
        for side in constraint.sides:
            leaves.update(dict.fromkeys(side.leaves()))
    merit, excess = np.empty(m), [np.empty(m) for _ in constraints]
    for start in range(0, m, CHUNK):
        stop = min(start + CHUNK, m)
        env = {leaf: candidates.state(leaf, start, stop) for leaf in leaves}
        value, defined = objective.read(env)
        merit[start:stop] = value if sense > 0 else -value
        if defined is not True:
            merit[start:stop][~np.broadcast_to(defined, stop - start)] = -np.inf
        for row, constraint in zip(excess, constraints, strict=True):
            judged = constraint.judge(env)
            row[start:stop] = judged.excess
            if judged.defined is not True:
                row[start:stop][~np.broadcast_to(judged.defined, stop - start)] = np.inf
    return Scan(merit, excess)
