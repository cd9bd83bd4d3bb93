"""Expressions and their arithmetic.

An expression is frozen data. Operators between expressions and numbers build trees of the nodes in
this file; ``>= <= ==`` build constraints; equality compares normal forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from setpoint._core.arrays import both, holds_everywhere, is_tensor, plain_bool, square_root, where
from setpoint._core.errors import GoalError, KindError
from setpoint._core.options import is_real
from setpoint.expressions import value_intervals as intervals
from setpoint.expressions.constraint import Constraint
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.measurable import Measurable
from setpoint.expressions.node import (
    ATOM,
    POWER,
    PRODUCT,
    SUM,
    common_direction,
    grouped,
    latex_text,
    literal_text,
    number_text,
)
from setpoint.expressions.rows.domain import Domain
from setpoint.expressions.rows.row_events import RESERVED, Event, Label, Literal, label_of
from setpoint.expressions.value_intervals import Interval


class Expression(Measurable):
    """A function of totals, as frozen data.

    Arithmetic with numbers and expressions gives expressions; ``>= <= ==`` with a number, and
    ``>= <=`` with an expression, give constraints; ``==`` between expressions compares their normal
    forms. Calling an expression evaluates it exactly.

    Examples
    --------
    >>> import setpoint as sp
    >>> 0.65 * sp.accuracy + 0.35 * sp.recall
    metric('0.65 * accuracy + 0.35 * recall')
    >>> sp.recall == sp.tpr
    True
    """

    __array_ufunc__ = None  # numpy scalars on the left leave the operators to us

    def of(self, label: Label) -> Expression:
        """The metric of one class against the rest: ``recall.of("cat")``."""
        return Bound(self, label=label_of(label, "a class"))

    def on(self, **conditions: Label) -> Expression:
        """The metric on the rows of a group: ``recall.on(group="b")``."""
        if not conditions:
            raise GoalError('say on which rows: metric.on(group="b")')
        for column in conditions:
            if column in RESERVED:
                raise GoalError(f'"{column}" is a word of the language, not a group column')
        given = {column: label_of(value, "a group") for column, value in conditions.items()}
        return Bound(self, conditions=tuple(sorted(given.items())))

    # --- operators ---------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        return _flat(Sum, self, _lift(other, "+"))

    def __radd__(self, other: Any) -> Expression:
        return _flat(Sum, _lift(other, "+"), self)

    def __sub__(self, other: Any) -> Expression:
        return self + (-_lift(other, "-"))

    def __rsub__(self, other: Any) -> Expression:
        return _lift(other, "-") + (-self)

    def __mul__(self, other: Any) -> Expression:
        return _flat(Product, self, _lift(other, "*"))

    def __rmul__(self, other: Any) -> Expression:
        return _flat(Product, _lift(other, "*"), self)

    def __truediv__(self, other: Any) -> Expression:
        below = _lift(other, "/")
        if isinstance(below, Number) and below.value == 0:
            raise GoalError(f'"{self} / 0" is a division by zero')
        return Ratio(self, below)

    def __rtruediv__(self, other: Any) -> Expression:
        return Ratio(_lift(other, "/"), self)

    def __pow__(self, exponent: Any) -> Expression:
        if not is_real(exponent):
            raise KindError(f"an exponent must be a number; got {exponent!r}")
        if not 0 < abs(exponent) <= 16:
            raise GoalError(f"an exponent is a number up to 16, and not 0; got {exponent!r}")
        return Power(self, float(exponent))

    def __neg__(self) -> Expression:
        if isinstance(self, Product) and isinstance(self.factors[0], Number):
            return Product((Number(-self.factors[0].value), *self.factors[1:]))
        return Product((Number(-1.0), self))

    def __abs__(self) -> Expression:
        return Absolute(self)

    def __ge__(self, other: Any) -> Constraint:
        return Constraint(self, ">=", _lift(other, ">="))

    def __le__(self, other: Any) -> Constraint:
        return Constraint(self, "<=", _lift(other, "<="))

    def __gt__(self, other: Any) -> Constraint:
        raise KindError(f'"{self} > {other}": a strict bound cannot be told from >=; write >=')

    def __lt__(self, other: Any) -> Constraint:
        raise KindError(f'"{self} < {other}": a strict bound cannot be told from <=; write <=')

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Expression):
            return self.normal().key() == other.normal().key()
        if is_real(other):
            return Constraint(self, "==", _lift(other, "=="))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.normal().key())

    def __bool__(self) -> bool:
        raise KindError(f'the expression "{self}" has no truth value; compare it or evaluate it')

    def __str__(self) -> str:
        return self.text()[0]

    def __repr__(self) -> str:
        return f"metric({str(self)!r})"


# --- building blocks -------------------------------------------------------------------------


def _lift(x: Any, operator: str) -> Expression:
    if isinstance(x, Expression):
        return x
    if is_real(x):
        try:
            return Number(float(x))
        except OverflowError as error:
            raise GoalError("a number in an expression is too large") from error
    raise KindError(
        f"{x!r} cannot stand beside {operator} in an expression; numbers and metrics can"
    )


def _flat(node: type[Sum] | type[Product], a: Expression, b: Expression) -> Expression:
    """Give a + b or a · b; a longer sum on the left takes b in, so long sums stay shallow."""
    return node((*a.children(), b) if isinstance(a, node) else (a, b))


@dataclass(frozen=True, eq=False, repr=False)
class Number(Expression):
    """A constant."""

    value: float

    def __post_init__(self) -> None:
        if self.value == 0:
            object.__setattr__(self, "value", 0.0)  # not −0.0, which is written otherwise
        if self.value != self.value or self.value in (float("inf"), float("-inf")):
            raise GoalError(f"{self.value} cannot stand in an expression; numbers are finite")

    def read(self, env: Mapping[Any, Any]) -> Reading:
        return Reading(self.value)

    def text(self) -> tuple[str, int]:
        return number_text(self.value), ATOM if self.value >= 0 else SUM

    def latex(self) -> str:
        return number_text(self.value)

    def interval(self) -> Interval:
        return self.value, self.value

    def better(self) -> int | None:
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Expression):
    """a + b + …; a − b is a + (−1)·b."""

    terms: tuple[Expression, ...]

    def read(self, env: Mapping[Any, Any]) -> Reading:
        parts = [term.read(env) for term in self.terms]
        value = reduce(lambda a, b: a + b, (p.value for p in parts))
        return Reading(value, reduce(both, (p.defined for p in parts)))

    def text(self) -> tuple[str, int]:
        first, *rest = (grouped(term, SUM) for term in self.terms)
        signed = (f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in rest)
        return first + "".join(signed), SUM

    def latex(self) -> str:
        first, *rest = (term.latex() for term in self.terms)
        signed = (f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in rest)
        return first + "".join(signed)

    def interval(self) -> Interval:
        return reduce(intervals.add, (term.interval() for term in self.terms))

    def better(self) -> int | None:
        return common_direction([term.better() for term in self.terms])

    def normal(self) -> Expression:
        """Σ cⱼ·xⱼ + c with like terms joined, sorted by key."""
        constant, factors, bodies = 0.0, {}, {}
        pending = [term.normal() for term in self.terms]
        while pending:
            term = pending.pop()
            if isinstance(term, Sum):
                pending.extend(term.terms)
                continue
            coefficient, body = _split(term)
            if body is None:
                constant += coefficient
            else:
                bodies[body.key()] = body
                factors[body.key()] = factors.get(body.key(), 0.0) + coefficient
        terms = [
            _scaled(factors[k], bodies[k]) for k in sorted(bodies, key=repr) if factors[k] != 0
        ]
        if constant != 0 or not terms:
            terms.append(Number(constant))
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _split(term: Expression) -> tuple[float, Expression | None]:
    """A normal term as coefficient and body."""
    if isinstance(term, Number):
        return term.value, None
    if isinstance(term, Product) and isinstance(term.factors[0], Number):
        rest = term.factors[1:]
        return term.factors[0].value, rest[0] if len(rest) == 1 else Product(rest)
    return 1.0, term


def _scaled(coefficient: float, body: Expression) -> Expression:
    if coefficient == 1:
        return body
    factors = body.factors if isinstance(body, Product) else (body,)
    return Product((Number(coefficient), *factors))


@dataclass(frozen=True, eq=False, repr=False)
class Product(Expression):
    """a · b · …, a product."""

    factors: tuple[Expression, ...]

    def read(self, env: Mapping[Any, Any]) -> Reading:
        parts = [factor.read(env) for factor in self.factors]
        value = reduce(lambda a, b: a * b, (p.value for p in parts))
        return Reading(value, reduce(both, (p.defined for p in parts)))

    def text(self) -> tuple[str, int]:
        return self._written(" * ", lambda x, least: grouped(x, least))

    def latex(self) -> str:
        def part(x: Expression, least: int) -> str:
            return x.latex() if x.text()[1] >= least else rf"\left({x.latex()}\right)"

        return self._written(r" \cdot ", part)[0]

    def _written(self, times: str, part: Callable[[Expression, int], str]) -> tuple[str, int]:
        first, *rest = self.factors
        if isinstance(first, Number) and first.value < 0:
            sign = [] if first.value == -1 and rest else [number_text(-first.value)]
            tail = [part(x, POWER) for x in rest]
            return "-" + times.join(sign + tail), SUM
        return times.join([part(first, PRODUCT), *(part(x, POWER) for x in rest)]), PRODUCT

    def interval(self) -> Interval:
        return reduce(intervals.multiply, (factor.interval() for factor in self.factors))

    def better(self) -> int | None:
        scale = 1.0
        for factor in self.factors:
            scale *= factor.value if isinstance(factor, Number) else 1.0
        varying = [f for f in self.factors if not isinstance(f, Number)]
        if scale == 0 or not varying:
            return None
        if len(varying) > 1 and any(f.interval()[0] < 0 for f in varying):
            return 0
        up = common_direction([f.better() for f in varying])
        return up and (up if scale > 0 else -up)

    def normal(self) -> Expression:
        """c·x·y·… with the constant first and the others sorted by key."""
        constant, rest = 1.0, []
        pending = [factor.normal() for factor in self.factors]
        while pending:
            factor = pending.pop()
            if isinstance(factor, Product):
                pending.extend(factor.factors)
            elif isinstance(factor, Number):
                constant *= factor.value
            else:
                rest.append(factor)
        rest.sort(key=lambda f: repr(f.key()))
        if constant == 0 or not rest:
            return Number(constant)
        if len(rest) == 1 and isinstance(rest[0], Sum) and constant != 1:
            return Sum(tuple(Product((Number(constant), t)) for t in rest[0].terms)).normal()
        return _scaled(constant, rest[0] if len(rest) == 1 else Product(tuple(rest)))


@dataclass(frozen=True, eq=False, repr=False)
class Ratio(Expression):
    """numerator / denominator; undefined, with the value ``empty``, where the denominator is 0."""

    numerator: Expression
    denominator: Expression
    empty: float = 0.0

    def read(self, env: Mapping[Any, Any]) -> Reading:
        top, bottom = self.numerator.read(env), self.denominator.read(env)
        defined = both(top.defined, bottom.defined)
        filled = bottom.value != 0
        if isinstance(filled, bool):
            value = top.value / bottom.value if filled else self.empty
        elif holds_everywhere(filled):
            return Reading(top.value / bottom.value, defined)
        else:
            # The divisor is made 1 first, so that neither a value nor a gradient becomes NaN.
            value = where(filled, top.value / where(filled, bottom.value, 1.0), self.empty)
        return Reading(value, both(defined, filled))

    def text(self) -> tuple[str, int]:
        return f"{grouped(self.numerator, PRODUCT)} / {grouped(self.denominator, POWER)}", PRODUCT

    def latex(self) -> str:
        return rf"\frac{{{self.numerator.latex()}}}{{{self.denominator.latex()}}}"

    def interval(self) -> Interval:
        low, high = self.denominator.interval()
        if low <= 0 <= high:
            return intervals.WHOLE
        quotient = intervals.multiply(self.numerator.interval(), (1 / high, 1 / low))
        return intervals.hull(quotient, (self.empty, self.empty))

    def better(self) -> int | None:
        if isinstance(self.denominator, Number):
            sign = 1 if self.denominator.value > 0 else -1
            up = self.numerator.better()
            return up if up is None else sign * up
        return 0

    def normal(self) -> Expression:
        """A constant divisor becomes a factor."""
        top, bottom = self.numerator.normal(), self.denominator.normal()
        if isinstance(bottom, Number) and bottom.value != 0:
            return Product((Number(1 / bottom.value), top)).normal()
        return Ratio(top, bottom, self.empty)


@dataclass(frozen=True, eq=False, repr=False)
class Power(Expression):
    """baseᵖ; undefined, with the value 0, where that is no real number."""

    base: Expression
    exponent: float

    def read(self, env: Mapping[Any, Any]) -> Reading:
        base = self.base.read(env)
        if self.exponent > 0 and self.exponent == int(self.exponent):
            return Reading(base.value**self.exponent, base.defined)
        if self.exponent == 0.5:
            real = base.value >= 0
            # A gradient of √0 would be infinite; such points get the value 0 and no gradient.
            positive = base.value > 0 if is_tensor(base.value) else real
            root = square_root(where(positive, base.value, 1.0))
            return Reading(where(positive, root, 0.0), both(base.defined, plain_bool(real)))
        real = base.value > 0
        value = where(real, where(real, base.value, 1.0) ** self.exponent, 0.0)
        return Reading(value, both(base.defined, plain_bool(real)))

    def text(self) -> tuple[str, int]:
        exponent = number_text(self.exponent)
        exponent = f"({exponent})" if self.exponent < 0 else exponent
        return f"{grouped(self.base, ATOM)} ** {exponent}", POWER

    def latex(self) -> str:
        if self.exponent == 0.5:
            return rf"\sqrt{{{self.base.latex()}}}"
        return rf"\left({self.base.latex()}\right)^{{{number_text(self.exponent)}}}"

    def interval(self) -> Interval:
        return intervals.power(self.base.interval(), self.exponent)

    def better(self) -> int | None:
        up = self.base.better()
        if up is None or self.base.interval()[0] < 0:
            return None if up is None else 0
        return up if self.exponent > 0 else -up


@dataclass(frozen=True, eq=False, repr=False)
class Absolute(Expression):
    """|x|."""

    inner: Expression

    def read(self, env: Mapping[Any, Any]) -> Reading:
        inner = self.inner.read(env)
        return Reading(abs(inner.value), inner.defined)

    def text(self) -> tuple[str, int]:
        return f"abs({self.inner})", ATOM

    def latex(self) -> str:
        return rf"\left|{self.inner.latex()}\right|"

    def interval(self) -> Interval:
        return intervals.absolute(self.inner.interval())


@dataclass(frozen=True, eq=False, repr=False)
class Bound(Expression):
    """An expression of one class (``of``) or on the rows of a group (``on``)."""

    inner: Expression
    label: Label = None
    conditions: tuple[tuple[str, Label], ...] = ()

    def read(self, env: Mapping[Any, Any]) -> Reading:
        return self._bind(self.inner).read(env)

    def _bind(self, inner: Expression) -> Expression:
        if self.label is not None:
            return inner.map_leaves(lambda leaf: leaf.of(self.label))
        rows = Event(frozenset(Literal(column, value) for column, value in self.conditions))
        return inner.map_leaves(lambda leaf: leaf.within(rows))

    def expand(self, domain: Domain) -> Expression:
        """Fill the class or the rows into the leaves; seen from a class there are two classes."""
        if self.label is not None:
            domain.check_label(self.label, str(self))
            return self._bind(self.inner.expand(domain.seen_from(self.label)))
        for column, value in self.conditions:
            domain.check_group(column, value, str(self))
        return self._bind(self.inner).expand(domain)

    def normal(self) -> Expression:
        """The inner normal form with the class or the rows filled in, as far as that may be.

        Inside a reduction over classes a class cannot be filled in before it is written out.
        """
        inner = self.inner.normal()
        over_classes = any(getattr(node, "by", None) == "class" for node in inner.walk())
        if self.label is not None and over_classes:
            return Bound(inner, label=self.label)
        return self._bind(inner).normal()

    def text(self) -> tuple[str, int]:
        return f"{grouped(self.inner, ATOM)}.{self._suffix()}", ATOM

    def _suffix(self) -> str:
        if self.label is not None:
            return f"of({literal_text(self.label)})"
        pairs = ((c if c.isidentifier() else literal_text(c), v) for c, v in self.conditions)
        return f"on({', '.join(f'{c}={literal_text(v)}' for c, v in pairs)})"

    def latex(self) -> str:
        below = ", ".join(f"{c}={v}" for c, v in self.conditions) if self.conditions else self.label
        return rf"{{{self.inner.latex()}}}_{{\text{{{latex_text(below)}}}}}"

    def interval(self) -> Interval:
        return self.inner.interval()

    def better(self) -> int | None:
        return self.inner.better()
