"""Functions that count their calls and end a run when it has had enough of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from setpoint.solvers.augmented.mean_functions import Values


class EndError(Exception):
    """A limit is reached; the message is a sentence. It never leaves the solver."""


class Meter:
    """The functions (parts, batch) -> f, c, e, with limits while it is not ``open``."""

    def __init__(
        self, values: Values, max_evaluations: float | None, max_seconds: float | None
    ) -> None:
        self.values, self.most, self.seconds = values, max_evaluations, max_seconds
        self.evaluations = self.gradients = 0
        self.since = time.perf_counter()
        self.open = True

    def __call__(self, parts: Sequence[Tensor], batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        if not self.open:
            if self.most is not None and self.evaluations >= self.most:
                raise EndError(f"the limit of {self.most:g} evaluations is reached")
            if self.seconds is not None and self.spent >= self.seconds:
                raise EndError(f"the limit of {self.seconds:g} seconds is reached")
        self.evaluations += 1
        f, c, e = self.values(parts, batch)
        return f.reshape(()), c.reshape(-1), e.reshape(-1)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.since
