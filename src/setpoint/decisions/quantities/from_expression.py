"""From an expression to what can be proven of it.

Ground trees are rewritten until their parts are rates: means become sums, the least and the
greatest move out of sums and differences, a quotient of them becomes the least of quotients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from setpoint.decisions.quantities import mcc_kappa as agreement
from setpoint.decisions.quantities.bootstrap import resampled
from setpoint.decisions.quantities.mcc_kappa import Agreement
from setpoint.decisions.quantities.overlapping_rates import Joined
from setpoint.decisions.quantities.quantity import ConstantQuantity, Extreme, Quantity
from setpoint.decisions.quantities.rate import Rate, apart, rate
from setpoint.decisions.quantities.two_rates import Pair
from setpoint.expressions import (
    Columns,
    Domain,
    Expression,
    Number,
    Product,
    Ratio,
    Several,
    Sum,
    Total,
)
from setpoint.expressions.arithmetic import Absolute
from setpoint.expressions.fractions import cleared, fractions, linear
from setpoint.expressions.value_intervals import Interval
from setpoint.metrics import fpr, kappa, mcc, prevalence, recall

_MOST = 4000  #: most pairs of groups that are compared


def quantity(
    ground: Expression, columns: Columns, weight_bound: float | None = None, name: str = ""
) -> Quantity:
    """What can be proven of a ground expression on these rows.

    Parameters
    ----------
    ground : Expression
        Expanded over the columns.
    columns : Columns
        With decisions, on the host.
    weight_bound : float, optional
        The largest weight a row can have; without it weighted rows prove nothing.
    name : str
    """
    reading = ground.read({leaf: leaf.measure(columns) for leaf in ground.leaves()})
    value = float(reading.value) if bool(reading.defined) else None
    reader = _Reader(columns, weight_bound)
    found = reader.read(ground, name) or reader.agreement(ground, value)
    if found is not None:
        return found
    bootstrap = resampled(ground, columns, value)
    if columns.weight is not None and weight_bound is None:
        return replace(bootstrap, how=f"{bootstrap.how}: weighted rows need weight_bound=")
    return bootstrap


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads normal ground trees as quantities; None where nothing exact exists."""

    columns: Columns
    weight_bound: float | None

    def read(self, tree: Expression, name: str) -> Quantity | None:
        tree = _summed(tree).normal()
        if isinstance(tree, Number):
            return ConstantQuantity(tree.value)
        found = self.rate(tree, name)
        if found is not None:
            return found
        spread = _spread(tree)
        if spread is not None and self._may_spread(tree):
            return self._extreme(spread, name)
        return self._pair(tree, name) or self._joined(tree)

    def rate(self, tree: Expression, name: str) -> Rate | None:
        parts = fractions(tree)
        clear = None if parts is None else cleared(parts)
        if clear is None:
            return None
        top, bottom = ({t: c for t, c in form.items() if c != 0} for form in clear)
        return rate(name, top, bottom, self.columns, self.weight_bound)

    def _may_spread(self, tree: Expression) -> bool:
        """Min / max is the least of all quotients only where none of them is negative."""
        if not isinstance(tree, Ratio):
            return True
        parts = [*_spread_items(tree.numerator), *_spread_items(tree.denominator)]
        rates = [self.rate(part, "") for part in parts]
        return all(r is not None and r.span[0] >= 0 for r in rates)

    def agreement(self, ground: Expression, value: float | None) -> Agreement | None:
        """Mcc and kappa of two classes, on all rows."""
        if self.columns.task.kind != "binary" or self.columns.weight is not None:
            return None
        if self.columns.abstained is not None:
            return None
        domain = Domain(self.columns)
        for metric, formula in ((mcc, agreement.mcc), (kappa, agreement.kappa)):
            if ground == metric.expand(domain):
                parts = [self.rate(m.expand(domain), str(m)) for m in (recall, fpr, prevalence)]
                return Agreement(formula, *parts, value)  # type: ignore[arg-type]
        return None

    def _extreme(self, spread: Several, name: str) -> Quantity | None:
        if len(spread.items) > _MOST:
            return None
        items = []
        for item in spread.items:
            found = self.read(item, _named(name, item))
            if found is None:
                return None
            items.append(found)
        sign = 1 if spread.how == "min" else -1
        flat: list[Quantity] = []
        for item in items:  # the least of the least of some is the least of all
            nested = isinstance(item, Extreme) and item.sign == sign
            flat += item.items if nested else [item]  # type: ignore[union-attr]
        constants = [i for i in flat if isinstance(i, ConstantQuantity)]
        varying = [i for i in flat if not isinstance(i, ConstantQuantity)]
        if not varying:
            return constants[0]
        # i − i is 0 and i / i is 1: the least any gap and the greatest any ratio can be
        ends = sorted(constants, key=lambda c: sign * c.value)[:1]
        return Extreme(sign, (*varying, *ends))

    def _pair(self, tree: Expression, name: str) -> Quantity | None:
        return self._difference(tree, name) or self._quotient(tree, name)

    def _difference(self, tree: Expression, name: str) -> Pair | None:
        terms = tree.terms if isinstance(tree, Sum) else ()
        scaled = [_scale(term) for term in terms if not isinstance(term, Number)]
        shift = sum(term.value for term in terms if isinstance(term, Number))
        if len(scaled) != 2:
            return None
        both = self._two(scaled[0][1], scaled[1][1])
        if both is None:
            return None
        (one, two), (a, b) = both, (scaled[0][0], scaled[1][0])
        ends = [x + y + shift for x, y in product(_times(one.span, a), _times(two.span, b))]
        return Pair(
            one,
            two,
            plane=lambda t: (a, b, shift - t),
            span=(min(ends), max(ends)),
            point=lambda x, y: a * x + b * y + shift,
            name=name,
        )

    def _quotient(self, tree: Expression, name: str) -> Pair | None:
        if not isinstance(tree, Ratio):
            return None
        both = self._two(tree.numerator, tree.denominator)
        if both is None or both[0].span[0] < 0 or both[1].span[0] < 0:
            return None
        one, two = both
        return Pair(
            one,
            two,
            plane=lambda t: (1.0, -t, 0.0),
            span=(0.0, float("inf")),
            point=lambda x, y: x / y if y else float("nan"),
            name=name,
        )

    def _two(self, x: Expression, y: Expression) -> tuple[Rate, Rate] | None:
        one, two = self.rate(x, str(x)), self.rate(y, str(y))
        if one is None or two is None or not (one.pure and two.pure):
            return None
        if any(np.isinf(end) for r in (one, two) for end in r.span):
            return None
        return (one, two) if apart(one, two, self.columns) else None

    def _joined(self, tree: Expression) -> Joined | None:
        parts: dict[tuple, Rate] = {}
        if not self._collect(tree, parts) or not parts:
            return None
        reading = tree.read({leaf: leaf.measure(self.columns) for leaf in tree.leaves()})
        return Joined(tree, parts, float(reading.value) if bool(reading.defined) else None)

    def _collect(self, tree: Expression, parts: dict[tuple, Rate]) -> bool:
        """Find the largest sub-trees that are rates; False where a leaf is in none."""
        if isinstance(tree, Number):
            return True
        found = self.rate(tree, str(tree))
        if found is not None:
            parts[tree.key()] = found
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
    said = {
        f"{x.column}={x.value}"
        for leaf in totals
        for x in leaf.event.literals
        if x.value is not None and x.holds
    }
    return f"{name} ({', '.join(sorted(said))})" if said else name


def parts_of_all(subject: Quantity, op: str) -> list[Quantity] | None:
    """The rates and pairs that must all keep a bound for the subject to keep it, if there are."""
    if isinstance(subject, Rate | Pair):
        return [subject]
    if isinstance(subject, Extreme) and (subject.sign > 0) == (op == ">="):
        found: list[Quantity] = []
        for item in subject.items:
            inner = [] if isinstance(item, ConstantQuantity) else parts_of_all(item, op)
            if inner is None:
                return None
            found += inner
        return found
    return None
