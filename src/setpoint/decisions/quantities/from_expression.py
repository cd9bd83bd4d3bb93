"""From a goal to claims: what can be proven of an expression, read before there are any rows.

Ground trees are rewritten until their parts are rates: means become sums, the least and the
greatest move out of sums and differences, a quotient of them becomes the least of quotients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from setpoint.decisions.quantities import mcc_kappa as agreement
from setpoint.decisions.quantities.bootstrap import HOW, ResampledClaim
from setpoint.decisions.quantities.mcc_kappa import AgreementClaim
from setpoint.decisions.quantities.overlapping_rates import JoinedClaim
from setpoint.decisions.quantities.prevalence import at_prevalence
from setpoint.decisions.quantities.quantity import Claim, ConstantQuantity, ExtremeClaim, Quantity
from setpoint.decisions.quantities.rate import RateClaim, apart, rate_claim
from setpoint.decisions.quantities.two_rates import PairClaim
from setpoint.expressions import (
    Columns,
    Constraint,
    Domain,
    Expression,
    Number,
    Population,
    Product,
    Ratio,
    Several,
    Sum,
    Total,
)
from setpoint.expressions.arithmetic import Absolute
from setpoint.expressions.fractions import cleared, fractions, linear
from setpoint.expressions.value_intervals import Interval
from setpoint.goals import Goal
from setpoint.metrics import fpr, kappa, mcc, prevalence, recall

_MOST_PAIRS = 4000  #: most pairs of groups that are compared
_BEHIND_AGREEMENT = (recall, fpr, prevalence)


@dataclass(frozen=True, eq=False)
class ConstraintClaim:
    """What a constraint claims: a quantity, a comparison and a number.

    Attributes
    ----------
    constraint : Constraint
    claim : Claim
        On the left side; on left − right, where the right side is no number.
    asked : float
        The bound, 0 for left − right.
    """

    constraint: Constraint
    claim: Claim
    asked: float

    @property
    def op(self) -> str:
        """The comparison: ">=", "<=" or "=="."""
        return self.constraint.op

    @cached_property
    def parts(self) -> tuple[RateClaim | PairClaim, ...]:
        """The rates and pairs that must all keep the bound for the constraint to hold, if any."""
        return () if self.op == "==" else tuple(_parts(self.claim, self.op) or ())

    @cached_property
    def pure_rates(self) -> tuple[RateClaim, ...]:
        """The parts, where all of them are pure rates."""
        rates = tuple(part for part in self.parts if isinstance(part, RateClaim) and part.pure)
        return rates if len(rates) == len(self.parts) else ()

    def on(self, columns: Columns) -> Quantity:
        """What it bounds, on rows that hold decisions."""
        return self.claim.on(columns)


def claims_of(
    goal: Goal, population: Population, prevalence: tuple[float, ...] = ()
) -> tuple[ConstraintClaim, ...]:
    """The claims of a lowered goal; with prevalence, for every share of positives in a range."""
    return tuple(constraint_claim(c, population, prevalence) for c in goal.constraints)


def constraint_claim(
    constraint: Constraint, population: Population, prevalence: tuple[float, ...] = ()
) -> ConstraintClaim:
    """What a constraint claims of a population."""
    domain = Domain(population)
    left, right = (side.expand(domain) for side in constraint.sides)
    asked = constraint.number
    if asked is None:
        body, asked, name = left - right, 0.0, f"{constraint.left} - {constraint.right}"
    else:
        body, name = left, str(constraint.left)
    if prevalence:
        claim = at_prevalence(body, population, prevalence, name, constraint)
    else:
        claim = claim_of(body, population, name)
    return ConstraintClaim(constraint, claim, asked)


def claim_of(ground: Expression, population: Population, name: str = "") -> Claim:
    """What can be proven of a ground expression.

    Parameters
    ----------
    ground : Expression
        Expanded over the population.
    population : Population
        Weighted rows without a bound on their weight, and rows that depend on each other, prove
        nothing.
    name : str
    """
    if population.dependent:
        return ResampledClaim(ground)
    reader = _Reader(population)
    claim = reader.read(ground, name) or reader.agreement(ground)
    if claim is not None:
        return claim
    if population.weighted and population.weight_bound is None:
        return ResampledClaim(ground, f"{HOW}: weighted rows need weight_bound=")
    return ResampledClaim(ground)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads normal ground trees as claims; None where nothing exact exists."""

    population: Population

    def read(self, tree: Expression, name: str) -> Claim | None:
        tree = _summed(tree).normal()
        if isinstance(tree, Number):
            return ConstantQuantity(tree.value)
        rate = self.rate(tree, name)
        if rate is not None:
            return rate
        spread = _spread(tree)
        if spread is not None and self._may_spread(tree):
            return self._extreme(spread, name)
        return self._difference(tree) or self._quotient(tree) or self._joined(tree)

    def rate(self, tree: Expression, name: str) -> RateClaim | None:
        parts = fractions(tree)
        clear = None if parts is None else cleared(parts)
        if clear is None:
            return None
        top, bottom = ({t: c for t, c in form.items() if c != 0} for form in clear)
        return rate_claim(name, top, bottom, self.population)

    def _may_spread(self, tree: Expression) -> bool:
        """Min / max is the least of all quotients only where none of them is negative."""
        if not isinstance(tree, Ratio):
            return True
        parts = [*_spread_items(tree.numerator), *_spread_items(tree.denominator)]
        rates = [self.rate(part, "") for part in parts]
        return all(r is not None and r.span[0] >= 0 for r in rates)

    def agreement(self, ground: Expression) -> AgreementClaim | None:
        """Mcc and kappa of two classes, on all rows."""
        population = self.population
        if population.task.kind != "binary" or population.weighted or population.abstains:
            return None
        domain = Domain(population)
        for metric, formula in ((mcc, agreement.mcc), (kappa, agreement.kappa)):
            if ground == metric.expand(domain):
                parts = {str(m): self.rate(m.expand(domain), str(m)) for m in _BEHIND_AGREEMENT}
                return AgreementClaim(ground=ground, formula=formula, **parts)  # type: ignore[arg-type]
        return None

    def _extreme(self, spread: Several, name: str) -> Claim | None:
        if len(spread.items) > _MOST_PAIRS:
            return None
        sign = 1 if spread.how == "min" else -1
        flat: list[Claim] = []
        for item in spread.items:
            claim = self.read(item, _named(name, item))
            if claim is None:
                return None
            # the least of the least of some is the least of all
            nested = isinstance(claim, ExtremeClaim) and claim.sign == sign
            flat += claim.items if nested else [claim]  # type: ignore[union-attr]
        constants = [i for i in flat if isinstance(i, ConstantQuantity)]
        varying = [i for i in flat if not isinstance(i, ConstantQuantity)]
        if not varying:
            return constants[0]
        # i − i is 0 and i / i is 1: the least any gap and the greatest any ratio can be
        ends = sorted(constants, key=lambda c: sign * c.value)[:1]
        return ExtremeClaim(sign, (*varying, *ends))

    def _difference(self, tree: Expression) -> PairClaim | None:
        terms = tree.terms if isinstance(tree, Sum) else ()
        scaled = [_scale(term) for term in terms if not isinstance(term, Number)]
        shift = sum(term.value for term in terms if isinstance(term, Number))
        if len(scaled) != 2:
            return None
        both = self._two(scaled[0][1], scaled[1][1])
        if both is None:
            return None
        one, two = both
        a, b = scaled[0][0], scaled[1][0]
        ends = [x + y + shift for x, y in product(_times(one.span, a), _times(two.span, b))]
        return PairClaim(
            one=one,
            two=two,
            plane=lambda t: (a, b, shift - t),
            span=(min(ends), max(ends)),
            point=lambda x, y: a * x + b * y + shift,
        )

    def _quotient(self, tree: Expression) -> PairClaim | None:
        if not isinstance(tree, Ratio):
            return None
        both = self._two(tree.numerator, tree.denominator)
        if both is None or both[0].span[0] < 0 or both[1].span[0] < 0:
            return None
        one, two = both
        return PairClaim(
            one=one,
            two=two,
            plane=lambda t: (1.0, -t, 0.0),
            span=(0.0, float("inf")),
            point=lambda x, y: x / y if y else float("nan"),
        )

    def _two(self, x: Expression, y: Expression) -> tuple[RateClaim, RateClaim] | None:
        one, two = self.rate(x, str(x)), self.rate(y, str(y))
        if one is None or two is None or not (one.pure and two.pure):
            return None
        if any(np.isinf(end) for r in (one, two) for end in r.span):
            return None
        return (one, two) if apart(one, two, self.population) else None

    def _joined(self, tree: Expression) -> JoinedClaim | None:
        parts: dict[tuple, RateClaim] = {}
        return JoinedClaim(tree, parts) if self._collect(tree, parts) and parts else None

    def _collect(self, tree: Expression, parts: dict[tuple, RateClaim]) -> bool:
        """Find the largest sub-trees that are rates; False where a leaf is in none."""
        if isinstance(tree, Number):
            return True
        rate = self.rate(tree, str(tree))
        if rate is not None:
            parts[tree.key()] = rate
            return True
        children = tree.children()
        return bool(children) and all(self._collect(child, parts) for child in children)


def _summed(tree: Expression) -> Expression:
    """Means as sums, and Σ sⱼ Mⱼ / S as Σ (sⱼ / S) Mⱼ, so that every part is a rate."""
    tree = tree.rebuild(tuple(_summed(child) for child in tree.children()))
    if isinstance(tree, Several) and tree.how == "mean":
        return Sum(tuple(Number(1 / len(tree.items)) * item for item in tree.items))
    if not isinstance(tree, Ratio) or not isinstance(tree.numerator, Sum):
        return tree
    if linear(tree.denominator) is None or linear(tree.numerator) is not None:
        return tree
    terms = []
    for term in tree.numerator.terms:
        factors = term.factors if isinstance(term, Product) else (term,)
        supports = [f for f in factors if linear(f) is not None and not isinstance(f, Number)]
        if len(supports) != 1:
            return tree
        rest = tuple(f for f in factors if f is not supports[0])
        terms.append(Product((Ratio(supports[0], tree.denominator), *rest)))
    return Sum(tuple(terms))


def _spread(tree: Expression) -> Several | None:
    """A tree as the least or the greatest of others, where a least or a greatest can be moved out.

    max(a, b) + r = max(a + r, b + r),  −max(a, b) = min(−a, −b),  |a| = max(a, −a)
    """
    if isinstance(tree, Several):
        return tree
    if isinstance(tree, Absolute):
        return Several("max", (tree.inner, -tree.inner, Number(0.0)))
    if isinstance(tree, Sum):
        for i, term in enumerate(tree.terms):
            inner = _spread(term)
            if inner is not None:
                rest = tree.terms[:i] + tree.terms[i + 1 :]
                return Several(inner.how, tuple(Sum((x, *rest)) for x in inner.items))
    if isinstance(tree, Product):
        scale, body = _scale(tree)
        inner = _spread(body) if body is not tree else None
        if inner is not None:
            how = inner.how if scale > 0 else {"min": "max", "max": "min"}[inner.how]
            return Several(how, tuple(Number(scale) * x for x in inner.items))
    if isinstance(tree, Ratio):
        top, bottom = _spread(tree.numerator), _spread(tree.denominator)
        if top is not None and bottom is not None and (top.how, bottom.how) == ("min", "max"):
            pairs = product(top.items, bottom.items)
            return Several("min", tuple(Number(1.0) if x == y else Ratio(x, y) for x, y in pairs))
    return None


def _spread_items(tree: Expression) -> tuple[Expression, ...]:
    spread = _spread(tree)
    return () if spread is None else spread.items


def _scale(term: Expression) -> tuple[float, Expression]:
    """A term as a number times the rest."""
    if isinstance(term, Product):
        numbers = [f.value for f in term.factors if isinstance(f, Number)]
        rest = [f for f in term.factors if not isinstance(f, Number)]
        if len(rest) == 1:
            return float(np.prod(numbers)), rest[0]
    return 1.0, term


def _times(span: Interval, scale: float) -> Interval:
    return span[0] * scale, span[1] * scale


def _named(name: str, item: Expression) -> str:
    totals = [leaf for leaf in item.leaves() if isinstance(leaf, Total)]
    groups = {
        f"{x.column}={x.value}"
        for leaf in totals
        for x in leaf.event.literals
        if x.value is not None and x.holds
    }
    return f"{name} ({', '.join(sorted(groups))})" if groups else name


def _parts(claim: Claim, op: str) -> list[RateClaim | PairClaim] | None:
    """The rates and pairs that must all keep a bound for the claim to keep it; None if others."""
    if isinstance(claim, RateClaim | PairClaim):
        return [claim]
    if not isinstance(claim, ExtremeClaim) or (claim.sign > 0) != (op == ">="):
        return None
    parts: list[RateClaim | PairClaim] = []
    for item in claim.items:
        inner = [] if isinstance(item, ConstantQuantity) else _parts(item, op)
        if inner is None:
            return None
        parts += inner
    return parts
