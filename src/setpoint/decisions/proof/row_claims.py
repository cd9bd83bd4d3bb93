"""Claims on single rows, which a constraint consists of: what a monitor bets on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.decisions.quantities.from_expression import ConstraintClaim, constraint_claim
from setpoint.decisions.quantities.rate import RateClaim
from setpoint.decisions.quantities.row_states import FLAGGED
from setpoint.decisions.quantities.two_rates import PairClaim
from setpoint.expressions import Columns, Constraint, Domain, Population, Total
from setpoint.rules.certificate import Certificate


@dataclass(frozen=True, eq=False)
class RowClaim:
    """E[z] ≥ 0, for rows (or pairs of rows) that have a say in it."""

    name: str
    low: float
    high: float
    values: Any  # columns -> (z, place) of the rows that have a say; of a pair, two of those
    paired: bool = False


def row_claims(
    constraint: Constraint, certificate: Certificate, labels: str
) -> tuple[list[RowClaim], str]:
    """The claims on single rows that a constraint consists of, or why there are none."""
    point = certificate.point
    if point.no_proof:
        return [], point.no_proof
    if constraint.op == "==":
        return [], "an equality is not a promise that rows can keep"
    if certificate.prevalence:
        return [], "a promise over a range of prevalences says nothing of single rows"
    if certificate.weighted and certificate.weight_bound is None:
        return [], "weighted rows need a certificate with weight_bound="
    population = Population(
        point.task,
        abstains=point.may_abstain,
        weighted=certificate.weighted,
        weight_bound=certificate.weight_bound,
    )
    domain = Domain(population)
    leaves = (x for side in constraint.sides for x in side.expand(domain).leaves())
    if not all(isinstance(leaf, Total) for leaf in leaves):
        return [], "it judges the scores of many rows, not decisions"
    claim = constraint_claim(constraint, population)
    if not claim.parts or any(map(_weighs_differently, claim.parts)):
        return [], "it is no rate of rows, nor several; watch the rates it is made of"
    flagged = all(isinstance(part, RateClaim) and part.who == FLAGGED for part in claim.parts)
    if labels == "flagged" and not flagged:
        return [], "labels on flagged rows alone cannot show it"
    return [_row_claim(part, claim) for part in claim.parts], ""


def _weighs_differently(part: RateClaim | PairClaim) -> bool:
    """Whether a pair has a rate whose rows count differently, so that rows cannot be paired."""
    if isinstance(part, RateClaim):
        return False
    bottoms = (rate.possible[:, 1] for rate in (part.one, part.two))
    return any(bottom.min() != bottom.max() for bottom in bottoms)


def _row_claim(part: RateClaim | PairClaim, claim: ConstraintClaim) -> RowClaim:
    name = str(claim.constraint)
    sign = 1.0 if claim.op == ">=" else -1.0
    if isinstance(part, RateClaim):
        z = sign * part.reach * (part.possible[:, 0] - claim.asked * part.possible[:, 1])

        def values(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
            n, d = part.of_each(columns)
            rows = sign * (n - claim.asked * d)
            if columns.weight is not None:
                rows = rows * columns.weight
            say = np.flatnonzero((n != 0) | (d != 0))
            return rows[say], say

        return RowClaim(name, float(min(z.min(), 0.0)), float(max(z.max(), 0.0)), values)
    a, b, e = part.plane(claim.asked)
    first = [sign * (a * x + e) for x in part.one.span]
    second = [sign * b * x for x in part.two.span]

    def both(columns: Columns) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        one, at_one = _each(part.one, columns)
        two, at_two = _each(part.two, columns)
        return (sign * (a * one + e), at_one), (sign * b * two, at_two)

    low = min(first) + min(second)
    high = max(first) + max(second)
    return RowClaim(name, min(low, 0.0), max(high, 0.0), both, paired=True)


def _each(rate: RateClaim, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """N / D and place of each row that has a say, for a rate whose rows all weigh the same."""
    n, d = rate.of_each(columns)
    say = np.flatnonzero(d)
    return n[say] / d[say], say
