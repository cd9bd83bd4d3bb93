"""One claim under watch: the bets for it and against it, and what they have come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint._core.errors import FileError
from setpoint.decisions.proof.row_claims import Claim
from setpoint.rules.tradeoff_curve import number_from, number_to
from setpoint.statistics.betting_process import STAKES, grown, held, mean_wealth


@dataclass
class Watch:
    """The state of one claim."""

    claim: Claim
    seen: int = 0
    against: np.ndarray = field(default_factory=lambda: np.full(STAKES.size, -np.inf))
    favour: np.ndarray = field(default_factory=lambda: np.zeros(STAKES.size))
    worst: float = 0.0
    waiting: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def feed(self, rows: Any, limit: float) -> int | None:
        """Bet on rows; the place of the one at which the evidence against passes the limit."""
        z, places = self._pairs(*rows) if self.claim.paired else rows
        if z.size == 0:
            return None
        against = grown(self.against, -z, max(self.claim.high, 1e-12), self.seen)
        favour = held(self.favour, z, max(-self.claim.low, 1e-12))
        self.against, self.favour = against[-1], favour[-1]
        self.seen += z.size
        trace = mean_wealth(against)
        self.worst = max(self.worst, float(trace.max()))
        passed = np.flatnonzero(trace >= limit)
        return int(places[passed[0]]) if passed.size else None

    def _pairs(self, *new: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the two groups in pairs, as they come, at the place of the later; others wait."""
        z = [np.r_[old, values] for old, (values, _) in zip(self.waiting, new, strict=True)]
        at = [
            np.r_[np.full(len(old), -1), places]
            for old, (_, places) in zip(self.waiting, new, strict=True)
        ]
        ready = min(map(len, z))
        self.waiting = (z[0][ready:].tolist(), z[1][ready:].tolist())
        return z[0][:ready] + z[1][:ready], np.maximum(at[0][:ready], at[1][:ready])

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.claim.name,
            "seen": self.seen,
            "against": [number_to(x) for x in self.against.tolist()],
            "favour": [number_to(x) for x in self.favour.tolist()],
            "worst": self.worst,
            "waiting": [list(w) for w in self.waiting],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        if data["name"] != self.claim.name:
            raise FileError(f'this monitor is damaged: it has "{data["name"]}" out of place')
        self.seen = int(data["seen"])
        self.against = np.array([number_from(x) for x in data["against"]], float)
        self.favour = np.array([number_from(x) for x in data["favour"]], float)
        if self.against.shape != STAKES.shape or self.favour.shape != STAKES.shape:
            raise FileError("this monitor is damaged: its bets have the wrong number")
        self.worst = float(data["worst"])
        self.waiting = ([*map(float, data["waiting"][0])], [*map(float, data["waiting"][1])])
