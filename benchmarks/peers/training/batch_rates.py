"""The constrained goals over one batch, as users of Cooper and humancompatible-train write them.

With z the logits, y the labels and P, N the positives and negatives that a batch holds on average:

* objective: Σ over positives of miss(z) / P, the share of positives missed;
* floor, precision >= .8: [.8 · FP − .2 · TP] / P <= 0, or as a ratio .8 − TP / (TP + FP) <= 0;
* cap, fpr <= .01: FP / N − .01 <= 0.

FP and TP are sums of a surrogate of the step: ``sigmoid``; ``hinge``, FP from above and TP from
below; ``log``: sigmoids in the constraint and softplus(−z) / log 2 in the objective; ``ratio``:
the same, and the precision of the batch as a ratio. Expected counts in place of the batch's own
keep the others unbiased, and defined in a batch without positives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

FLOOR = 0.8  #: of precision
CAP = 0.01  #: of the false positive rate
TINY = 1e-6  #: rows decided, where none is
SURROGATES = ("sigmoid", "hinge", "log", "ratio")


@dataclass(frozen=True)
class BatchGoal:
    """One of the two goals, for rows of which a share is positive."""

    aim: str  #: "floor" or "cap"
    surrogate: str
    share: float

    @classmethod
    def of(cls, aim: str, surrogate: str, y: Tensor) -> BatchGoal:
        """For these training rows."""
        return cls(aim, surrogate, float((y == 1).double().mean()))

    def objective(self, z: Tensor, y: Tensor) -> Tensor:
        """The share of positives missed."""
        if self.surrogate in ("log", "ratio"):
            missed = functional.softplus(-z) / math.log(2)
        elif self.surrogate == "hinge":
            missed = functional.relu(1 - z)
        else:
            missed = torch.sigmoid(-z)
        return (missed * (y == 1)).sum() / (self.share * len(y))

    def violation(self, z: Tensor, y: Tensor) -> Tensor:
        """At most 0 where the constraint is kept; through the surrogate."""
        if self.surrogate == "hinge":
            return self._of(functional.relu(1 + z), 1 - functional.relu(1 - z), y)
        return self._of(z.sigmoid(), z.sigmoid(), y)

    def hard(self, z: Tensor, y: Tensor) -> Tensor:
        """The same of decisions at 0; no gradient."""
        decided = (z.detach() >= 0).to(z.dtype)
        return self._of(decided, decided, y)

    def _of(self, false: Tensor, true: Tensor, y: Tensor) -> Tensor:
        fp, tp = (false * (y != 1)).sum(), (true * (y == 1)).sum()
        if self.aim == "cap":
            return fp / ((1 - self.share) * len(y)) - CAP
        if self.surrogate == "ratio":
            return FLOOR - tp / (tp + fp).clamp(min=TINY)
        return (FLOOR * fp - (1 - FLOOR) * tp) / (self.share * len(y))
