"""The claims on single rows that a constraint consists of: what a monitor can bet on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.decisions.certify import subject_of
from setpoint.decisions.quantities.from_expression import parts_of_all
from setpoint.decisions.quantities.quantity import Quantity
from setpoint.decisions.quantities.rate import Rate, shares
from setpoint.decisions.quantities.row_states import FLAGGED
from setpoint.decisions.quantities.two_rates import Pair
from setpoint.expressions import Columns, Constraint, Domain, Total
from setpoint.rules.certificate import Certificate


@dataclass(frozen=True, eq=False)
class Claim:
    """E[z] ≥ 0, for rows (or pairs of rows) that have a say in it."""

    name: str
    low: float
    high: float
    values: Any  # columns -> (z, place) of the rows that have a say; of a pair, two of those
    paired: bool = False


def claims_of(
    constraint: Constraint, certificate: Certificate, labels: str
) -> tuple[list[Claim], str]:
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
    none = _no_rows(certificate)
    domain = Domain(none)
    leaves = (x for side in constraint.sides for x in side.expand(domain).leaves())
    if not all(isinstance(leaf, Total) for leaf in leaves):
        return [], "it judges the scores of many rows, not decisions"
    subject, asked = subject_of(constraint, none, certificate.weight_bound, (), point)
    sign = 1.0 if constraint.op == ">=" else -1.0
    atoms = _atoms(subject, constraint.op)
    if atoms is None:
        return [], "it is no rate of rows, nor several; watch the rates it is made of"
    if labels == "flagged" and not all(isinstance(a, Rate) and a.who == FLAGGED for a in atoms):
        return [], "labels on flagged rows alone cannot show it"
    return [_claim(a, sign, asked, str(constraint)) for a in atoms], ""


def _atoms(subject: Quantity, op: str) -> list[Rate | Pair] | None:
    """Rates, and pairs of rates whose rows all weigh the same; None where there are others."""
    found: list[Rate | Pair] = []
    for part in parts_of_all(subject, op) or ():
        if isinstance(part, Pair):
            if any(r.possible[:, 1].min() != r.possible[:, 1].max() for r in part.rates):
                return None
        elif not isinstance(part, Rate):
            return None
        found.append(part)
    return found or None


def _claim(atom: Rate | Pair, sign: float, asked: float, name: str) -> Claim:
    if isinstance(atom, Rate):
        z = sign * atom.reach * (atom.possible[:, 0] - asked * atom.possible[:, 1])

        def values(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
            n, d = shares(atom.top, columns), shares(atom.bottom, columns)
            rows = sign * (n - asked * d)
            if columns.weight is not None:
                rows = rows * columns.weight
            say = np.flatnonzero((n != 0) | (d != 0))
            return rows[say], say

        return Claim(name, float(min(z.min(), 0.0)), float(max(z.max(), 0.0)), values)
    a, b, e = atom.plane(asked)
    ends = [(sign * (a * x + e), sign * (a * y + e)) for x, y in [atom.one.span]]
    others = [(sign * b * x, sign * b * y) for x, y in [atom.two.span]]

    def both(columns: Columns) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        (one, at_one), (two, at_two) = (_each(r, columns) for r in (atom.one, atom.two))
        return (sign * (a * one + e), at_one), (sign * b * two, at_two)

    low = min(ends[0]) + min(others[0])
    high = max(ends[0]) + max(others[0])
    return Claim(name, min(low, 0.0), max(high, 0.0), both, paired=True)


def _each(r: Rate, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """N / D and place of each row that has a say, for a rate whose rows all weigh the same."""
    n, d = shares(r.top, columns), shares(r.bottom, columns)
    say = np.flatnonzero(d)
    return n[say] / d[say], say


def _no_rows(certificate: Certificate) -> Columns:
    """Columns without rows, for what follows from the goal alone."""
    task = certificate.point.task
    shape = (0, len(task.classes or ())) if task.kind == "multilabel" else (0,)
    kind = np.int64 if task.kind == "multiclass" else bool
    return Columns(
        task,
        np.zeros(shape, kind),
        decided=np.zeros(shape, kind),
        weight=np.zeros(0) if certificate.weighted else None,
        groups={name: np.zeros(0, object) for name, _ in task.groups},
        abstained=np.zeros(0, bool) if certificate.point.may_abstain else None,
    )
