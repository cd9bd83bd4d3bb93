"""Bounds for mcc and kappa of two classes, which are no trees of rates but follow from three.

With recall T, false positive rate F, prevalence π, and q = π T + (1−π) F rows decided positive,

    mcc   = (T − F) √( π (1−π) / (q (1−q)) )
    kappa = 2 π (1−π) (T − F) / (π (1−q) + (1−π) q)

Where T > F both rise with T, fall with F, and are quasi-concave in π (squared, mcc is a ratio of
quadratics whose level sets are intervals). So over a box of the three the least value lies at the
least T, the greatest F and one of the ends of π; the greatest at the other corner, along π.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from setpoint.decisions.quantities.quantity import Bounds, value_on
from setpoint.decisions.quantities.rate import Rate, RateClaim
from setpoint.expressions import Columns, Expression

Formula = Callable[[float, float, float], float]


def mcc(recall: float, fpr: float, prevalence: float) -> float:
    """The correlation of decided and actual; 0 where all rows are decided alike."""
    q = prevalence * recall + (1 - prevalence) * fpr
    if not 0 < q < 1:
        return 0.0
    return (recall - fpr) * math.sqrt(prevalence * (1 - prevalence) / (q * (1 - q)))


def kappa(recall: float, fpr: float, prevalence: float) -> float:
    """The agreement beyond chance."""
    q = prevalence * recall + (1 - prevalence) * fpr
    apart = prevalence * (1 - q) + (1 - prevalence) * q
    return 2 * prevalence * (1 - prevalence) * (recall - fpr) / apart if apart > 0 else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreementClaim:
    """mcc or kappa, from recall, FPR and prevalence."""

    ground: Expression
    formula: Formula
    recall: RateClaim
    fpr: RateClaim
    prevalence: RateClaim

    exact = True

    def on(self, columns: Columns) -> Agreement:
        return Agreement(
            formula=self.formula,
            recall=self.recall.on(columns),
            fpr=self.fpr.on(columns),
            prevalence=self.prevalence.on(columns),
            value=value_on(self.ground, columns),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement(Bounds):
    """mcc or kappa on some rows: recall, FPR and both ends of the prevalence at δ/4 each."""

    formula: Formula
    recall: Rate
    fpr: Rate
    prevalence: Rate
    value: float | None

    how = "exact binomial, 3 parts at a share of the level each"
    exact = True

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Recall, FPR and prevalence."""
        return self.recall, self.fpr, self.prevalence

    def lower(self, delta: float) -> float:
        """It is at least this, with error at most δ."""
        share = delta / 4
        caught, flagged = self.recall.lower(share), self.fpr.upper(share)
        if caught <= flagged:
            return -1.0
        ends = self.prevalence.lower(share), self.prevalence.upper(share)
        return min(self.formula(caught, flagged, pi) for pi in ends)

    def upper(self, delta: float) -> float:
        """It is at most this, with error at most δ."""
        share = delta / 4
        caught, flagged = self.recall.upper(share), self.fpr.lower(share)
        if caught <= flagged:
            return 0.0
        low, high = self.prevalence.lower(share), self.prevalence.upper(share)
        for _ in range(100):  # thirds: it rises, then falls
            a, b = low + (high - low) / 3, high - (high - low) / 3
            if self.formula(caught, flagged, a) < self.formula(caught, flagged, b):
                low = a
            else:
                high = b
        return min(1.0, self.formula(caught, flagged, (low + high) / 2) + 1e-12)
