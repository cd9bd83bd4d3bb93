"""What can be proven of an expression: bounds for trees of rates.

    a rate                     exact binomial, or bets                          (see rates)
    the least of several       its lower bound is the least of theirs, each at the full level δ
    a·M₁ + b·M₂ + c            of two rates on separate rows: both p-values joined (Fisher) at every
                               point of the boundary; so gaps and ratios between groups
    anything else              its rates each bounded at a share of δ, joined by monotonicity
    no rate at all             a bootstrap, which is a figure and never a proof

Each has ``value``, ``lower(δ)``, ``upper(δ)`` (one-sided, error at most δ), ``how`` in words, the
``rates`` behind it, and ``exact``: whether the bounds are a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions import agreement, bounds
from setpoint.decisions.agreement import Agreement
from setpoint.decisions.rates import Rate, apart, rate
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
from setpoint.expressions.arithmetic import Absolute, Power
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.fractional import cleared, fractions, linear
from setpoint.expressions.intervals import Interval
from setpoint.metrics import fpr, kappa, mcc, prevalence, recall

_MOST = 4000  #: most pairs of groups that are compared
DRAWS = 1000  #: of the bootstrap


class Quantity(Protocol):
    """A value on these rows, and what holds of it on all rows."""

    @property
    def value(self) -> float | None: ...
    @property
    def how(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def rates(self) -> tuple[Rate, ...]: ...
    def lower(self, delta: float) -> float: ...
    def upper(self, delta: float) -> float: ...
    def proves(self, op: str, bound: float, delta: float) -> bool: ...


@dataclass(frozen=True, eq=False)
class _Bounds:
    """What follows from the two bounds."""

    def proves(self, op: str, bound: float, delta: float) -> bool:
        """Whether the bound lies beyond the one asked for."""
        if op == ">=":
            return self.lower(delta) >= bound
        return self.upper(delta) <= bound

    def lower(self, delta: float) -> float:
        raise NotImplementedError

    def upper(self, delta: float) -> float:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Constant(_Bounds):
    """A number."""

    value: float
    how = "constant"
    exact = True
    rates = ()

    def lower(self, delta: float) -> float:
        return self.value

    def upper(self, delta: float) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class Extreme(_Bounds):
    """The least (sign 1) or the greatest (sign −1) of several quantities.

    With i the one that is least on all rows, Lᵢ alone must hold for min L to hold: no division of
    δ (intersection–union). That *some* one is low needs a share of δ for each.
    """

    sign: int
    items: tuple[Quantity, ...]

    @property
    def value(self) -> float | None:
        values = [item.value for item in self.items]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            return None
        return min(known) if self.sign > 0 else max(known)

    @property
    def _varying(self) -> int:
        return max(1, sum(not isinstance(item, Constant) for item in self.items))

    @property
    def how(self) -> str:
        return _joined(self.items) + ", each at the full level"

    @property
    def exact(self) -> bool:
        return all(item.exact for item in self.items)

    @property
    def rates(self) -> tuple[Rate, ...]:
        return _rates(self.items)

    def lower(self, delta: float) -> float:
        if self.sign > 0:
            return min(item.lower(delta) for item in self.items)
        return max(item.lower(delta / self._varying) for item in self.items)

    def upper(self, delta: float) -> float:
        if self.sign > 0:
            return min(item.upper(delta / self._varying) for item in self.items)
        return max(item.upper(delta) for item in self.items)

    def proves(self, op: str, bound: float, delta: float) -> bool:
        every = (op == ">=") == (self.sign > 0)
        share = delta if every else delta / self._varying
        proven = [item.proves(op, bound, share) for item in self.items]
        return all(proven) if every else any(proven)


@dataclass(frozen=True, eq=False)
class Pair(_Bounds):
    """a·M₁ + b·M₂ + e ≥ t for two pure rates on separate rows, with (a, b, e) a function of t.

    At each point (m₁, m₂) of the boundary the two p-values are independent, and their product x is
    uniform at worst, so x (1 − ln x) is a p-value (Fisher 1932). Its greatest value along the
    boundary is one for the whole null hypothesis. Between two points of the grid it is bounded by
    the larger of each p-value.
    """

    one: Rate
    two: Rate
    plane: Callable[[float], tuple[float, float, float]]
    span: Interval
    point: Callable[[float, float], float]
    name: str = ""

    how = "exact binomial on two groups of rows, p-values joined"
    exact = True

    @property
    def value(self) -> float | None:
        if self.one.value is None or self.two.value is None:
            return None
        found = self.point(self.one.value, self.two.value)
        return None if np.isnan(found) else found

    @property
    def rates(self) -> tuple[Rate, ...]:
        return self.one, self.two

    def proves(self, op: str, bound: float, delta: float) -> bool:
        a, b, e = self.plane(bound)
        if op == "<=":
            a, b, e = -a, -b, -e
        return self._p(a, b, e) <= delta

    def _p(self, a: float, b: float, e: float) -> float:
        """The p-value of a·M₁ + b·M₂ + e <= 0."""
        if self.one.n == 0 or self.two.n == 0:
            return 1.0
        for r, slope, other in ((self.one, a, b), (self.two, b, a)):
            if other == 0:  # a claim on one of them
                return _alone(r, slope, e)
        m1 = _grid(self.one, self.two, a, b, e)
        first = _evidence(self.one, m1, a)
        second = _evidence(self.two, -(a * m1 + e) / b, b)
        joined = np.maximum(first[1:], first[:-1]) * np.maximum(second[1:], second[:-1])
        worst = float(np.max(joined))
        return worst * (1 - np.log(worst)) if worst > 0 else 0.0

    def lower(self, delta: float) -> float:
        return self._edge(">=", *self.span, delta)

    def upper(self, delta: float) -> float:
        low, high = self.span
        return self._edge("<=", high, low, delta)

    def _edge(self, op: str, sure: float, other: float, delta: float) -> float:
        if self.one.n == 0 or self.two.n == 0:
            return sure
        if np.isinf(sure) or np.isinf(other):  # a quotient: look for a pair of finite ends first
            ladder = [0.0, *np.geomspace(2.0**-10, 2.0**20, 31)]
            proven = [self.proves(op, t, delta) for t in ladder]
            if op == ">=":
                last = proven.index(False) if False in proven else len(ladder)
                if last in (0, len(ladder)):
                    return ladder[max(last - 1, 0)]
                sure, other = ladder[last - 1], ladder[last]
            else:
                if not proven[-1]:
                    return sure
                first = len(proven) - proven[::-1].index(False) if False in proven else 0
                if first == 0:
                    return ladder[0]
                sure, other = ladder[first], ladder[first - 1]
        for _ in range(40):
            middle = (sure + other) / 2
            if self.proves(op, middle, delta):
                sure = middle
            else:
                other = middle
        return sure


_LEVELS = np.r_[np.geomspace(1e-12, 1e-3, 40), np.linspace(0.002, 0.5, 60)]


def _likely(r: Rate) -> np.ndarray:
    """Values of a pure rate, dense where its p-values move."""
    ends = np.r_[bounds.lower(r.k, r.n, _LEVELS), bounds.upper(r.k, r.n, _LEVELS)]
    return r.at(ends)


def _grid(one: Rate, two: Rate, a: float, b: float, e: float) -> np.ndarray:
    """Points of the boundary a·m₁ + b·m₂ + e = 0, as m₁."""
    low, high = one.span
    points = [np.linspace(low, high, 65), _likely(one)]
    points.append(-(b * _likely(two) + e) / a)
    return np.unique(np.clip(np.concatenate(points), low, high))


def _alone(r: Rate, slope: float, e: float) -> float:
    """The p-value of slope·M + e <= 0 for one rate."""
    if slope == 0:
        return 1.0 if e <= 0 else 0.0
    return float(_evidence(r, np.array([-e / slope]), slope)[0])


def _evidence(r: Rate, values: np.ndarray, direction: float) -> np.ndarray:
    """P-values that a pure rate lies on the better side of each value (direction > 0: above).

    A value that the rate cannot reach from the worse side is no part of the null hypothesis (0);
    one beyond its best leaves no evidence (1).
    """
    low, high = r.span
    beyond = (
        np.where(values < low, 0.0, 1.0) if direction > 0 else np.where(values > high, 0.0, 1.0)
    )
    p = r.p_above(values) if direction > 0 else r.p_below(values)
    return np.where((values < low) | (values > high), beyond, p)


# --- anything else ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Between(Expression):
    """A rate inside a tree, of which an interval is known."""

    ends: Interval

    def read(self, env: Any) -> Reading:
        raise NotImplementedError

    def text(self) -> tuple[str, int]:
        return f"[{self.ends[0]:g}, {self.ends[1]:g}]", 4

    def latex(self) -> str:
        return self.text()[0]

    def interval(self) -> Interval:
        return self.ends


@dataclass(frozen=True, eq=False)
class Joined(_Bounds):
    """A tree of rates: each end that matters is bounded at an equal share of δ."""

    tree: Expression
    parts: dict[Expression, Rate]
    value: float | None

    exact = True

    @property
    def how(self) -> str:
        return f"{_joined(self.rates)}, {len(self.parts)} parts at a share of the level each"

    @property
    def rates(self) -> tuple[Rate, ...]:
        return tuple(self.parts.values())

    @cached_property
    def _directions(self) -> dict[Expression, int]:
        return {part: _direction(self.tree, part, self.parts) for part in self.parts}

    def lower(self, delta: float) -> float:
        return self._ends(delta, 1)[0]

    def upper(self, delta: float) -> float:
        return self._ends(delta, -1)[1]

    def _ends(self, delta: float, sign: int) -> Interval:
        needed = sum(2 if d == 0 else 1 for d in self._directions.values())
        share = delta / needed
        known = {}
        for part, r in self.parts.items():
            way = sign * self._directions[part]
            low = r.lower(share) if way >= 0 else r.span[0]
            high = r.upper(share) if way <= 0 else r.span[1]
            known[part] = _Between((low, high))
        return _substituted(self.tree, known).interval()


def _substituted(tree: Expression, known: dict[Expression, Any]) -> Expression:
    for part, stand_in in known.items():
        if tree is part:
            return stand_in
    return tree.rebuild(tuple(_substituted(child, known) for child in tree.children()))


def _direction(tree: Expression, part: Expression, parts: dict[Expression, Rate]) -> int:
    """1 if the tree rises with the part, −1 if it falls, 0 if that depends; 2 without the part."""
    if tree is part:
        return 1
    if tree in parts or not tree.children():
        return 2
    below = [_direction(child, part, parts) for child in tree.children()]
    if all(d == 2 for d in below):
        return 2
    if isinstance(tree, Sum | Several):
        return _agreed(below)
    if isinstance(tree, Product):
        scale = float(np.prod([f.value for f in tree.factors if isinstance(f, Number)]))
        varying = [f for f in tree.factors if not isinstance(f, Number)]
        plain = len(varying) == 1 or all(_span(f, parts)[0] >= 0 for f in varying)
        return _agreed(below) * (1 if scale > 0 else -1) if plain else 0
    if isinstance(tree, Ratio):
        signs = [below[0], below[1] if below[1] == 2 else -below[1]]
        positive = all(_span(side, parts)[0] >= 0 for side in (tree.numerator, tree.denominator))
        return _agreed(signs) if positive else 0
    if isinstance(tree, Power):
        return below[0] * (1 if tree.exponent > 0 else -1) if _span(tree.base, parts)[0] >= 0 else 0
    return 0


def _agreed(directions: list[int]) -> int:
    known = {d for d in directions if d != 2}
    return known.pop() if len(known) == 1 else 0


def _span(tree: Expression, parts: dict[Expression, Rate]) -> Interval:
    return _substituted(tree, {p: _Between(r.span) for p, r in parts.items()}).interval()


@dataclass(frozen=True, eq=False)
class Resampled(_Bounds):
    """Percentiles of a bootstrap: how far the figure would move on rows drawn from these.

    No guarantee of any kind, so it proves nothing.
    """

    value: float | None
    draws: np.ndarray
    how: str = "bootstrap, not a guarantee"

    exact = False
    rates = ()

    def lower(self, delta: float) -> float:
        return float(np.quantile(self.draws, delta)) if self.draws.size else float("-inf")

    def upper(self, delta: float) -> float:
        return float(np.quantile(self.draws, 1 - delta)) if self.draws.size else float("inf")

    def proves(self, op: str, bound: float, delta: float) -> bool:
        return False


def resampled(ground: Expression, columns: Columns, value: float | None) -> Resampled:
    """Measure a ground expression on rows drawn with replacement (queries, where there are any)."""
    random = np.random.default_rng(0)
    draws = []
    units = None
    if columns.query is not None:
        units = [np.flatnonzero(columns.query == q) for q in np.unique(columns.query)]
    count = DRAWS if columns.size <= 20_000 else max(50, 20_000_000 // columns.size)
    for _ in range(count):
        if units is None:
            rows = random.integers(0, columns.size, columns.size)
        else:
            rows = np.concatenate([units[i] for i in random.integers(0, len(units), len(units))])
        part = columns.take(rows)
        try:
            reading = ground.read({leaf: leaf.measure(part) for leaf in ground.leaves()})
        except DataError:
            continue  # rows without one of the classes
        if bool(reading.defined):
            draws.append(float(reading.value))
    return Resampled(value, np.array(draws))


# --- from an expression ----------------------------------------------------------------------


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
            return Constant(tree.value)
        found = self.rate(tree, name)
        if found is not None:
            return found
        spread = _spread(tree)
        if spread is not None:
            return self._extreme(spread, name)
        return self._pair(tree, name) or self._joined(tree)

    def rate(self, tree: Expression, name: str) -> Rate | None:
        parts = fractions(tree)
        clear = None if parts is None else cleared(parts)
        if clear is None:
            return None
        top, bottom = ({t: c for t, c in form.items() if c != 0} for form in clear)
        return rate(name, top, bottom, self.columns, self.weight_bound)

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
        constants = [i for i in flat if isinstance(i, Constant)]
        varying = [i for i in flat if not isinstance(i, Constant)]
        if not varying:
            return constants[0]
        # i − i is 0 and i / i is 1: the least any gap and the greatest any ratio can be
        return Extreme(sign, (*varying, *constants[:1]))

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
        parts: dict[Expression, Rate] = {}
        if not self._collect(tree, parts) or not parts:
            return None
        reading = tree.read({leaf: leaf.measure(self.columns) for leaf in tree.leaves()})
        return Joined(tree, parts, float(reading.value) if bool(reading.defined) else None)

    def _collect(self, tree: Expression, parts: dict[Expression, Rate]) -> bool:
        """Find the largest sub-trees that are rates; False where a leaf is in none."""
        if isinstance(tree, Number):
            return True
        found = self.rate(tree, str(tree))
        if found is not None:
            parts[tree] = found
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


def parts_of_all(subject: Quantity, op: str) -> list[Quantity] | None:
    """The rates and pairs that must all keep a bound for the subject to keep it, if there are."""
    if isinstance(subject, Rate | Pair):
        return [subject]
    if isinstance(subject, Extreme) and (subject.sign > 0) == (op == ">="):
        found: list[Quantity] = []
        for item in subject.items:
            inner = [] if isinstance(item, Constant) else parts_of_all(item, op)
            if inner is None:
                return None
            found += inner
        return found
    return None


def _spread(tree: Expression) -> Several | None:
    """A tree as the least or the greatest of others, where a least or a greatest can be moved out.

    max(a, b) + r = max(a + r, b + r),  −max(a, b) = min(−a, −b),  |a| = max(a, −a)
    """
    if isinstance(tree, Several):
        return tree
    if isinstance(tree, Absolute):
        return Several("max", (tree.inner, -tree.inner))
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


def _rates(items: tuple[Quantity, ...]) -> tuple[Rate, ...]:
    return tuple(dict.fromkeys(r for item in items for r in item.rates))


def _joined(items: tuple[Any, ...]) -> str:
    return " and ".join(dict.fromkeys(item.how for item in items if item.how != "constant"))
