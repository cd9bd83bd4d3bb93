"""Fractions: the expressions that are sums of ratios of totals, written out.

Most metrics of decisions are linear-fractional: a ratio of two weighted sums of totals, or a sum of
such ratios (a macro average). Their gradient in the totals has a closed form, and a bound on one of
them clears to a bound on a weighted sum of totals,

    N / D >= b   ⇔   N − b D >= 0   (D > 0),

which is linear in the decisions. Training and certificates both read a constraint so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setpoint.expressions.arithmetic import Expression, Number, Product, Ratio, Sum
from setpoint.expressions.reductions import Several
from setpoint.expressions.totals import Total

Form = dict[Total | None, float]  #: total -> coefficient; None stands for 1


@dataclass(frozen=True, eq=False)
class Fraction:
    """scale · top / bottom, both weighted sums of totals; 0 where the bottom is 0."""

    scale: float
    top: Form
    bottom: Form


def fractions(ground: Expression) -> tuple[Fraction, ...] | None:
    """A ground expression as a sum of fractions, or None where it is none.

    Examples
    --------
    >>> import setpoint as sp
    >>> from setpoint.expressions import Domain, Population, Task
    >>> domain = Domain(Population(Task()))
    >>> len(fractions((1 - sp.fpr).expand(domain)))
    2
    >>> fractions(sp.mcc.expand(domain)) is None
    True
    """
    form = linear(ground)
    if form is not None:
        return (Fraction(1.0, form, {None: 1.0}),)
    if isinstance(ground, Sum):
        return _joined(ground.terms, 1.0)
    if isinstance(ground, Several) and ground.how == "mean" and not ground.skip:
        return _joined(ground.items, 1 / len(ground.items))
    if isinstance(ground, Product):
        scale, varying = _constant(ground.factors)
        return _joined(varying, scale) if len(varying) == 1 else None
    if isinstance(ground, Ratio):
        if isinstance(ground.denominator, Number):
            return _joined((ground.numerator,), 1 / ground.denominator.value)
        top, bottom = linear(ground.numerator), linear(ground.denominator)
        return None if top is None or bottom is None else (Fraction(1.0, top, bottom),)
    return None


def cleared(parts: tuple[Fraction, ...]) -> tuple[Form, Form] | None:
    """(N, D) with the sum equal to N / D, where only one of the fractions has a divisor."""
    divided = [part for part in parts if set(part.bottom) != {None}]
    if len(divided) != 1:
        return None
    bottom = divided[0].bottom
    top = _scaled(divided[0].top, divided[0].scale)
    for part in parts:
        if part is divided[0]:
            continue
        if set(part.top) - {None}:
            return None
        constant = part.scale * part.top.get(None, 0.0) / part.bottom[None]
        top = _added(top, _scaled(bottom, constant))
    return top, bottom


def linear(ground: Expression) -> Form | None:
    """A ground expression as a weighted sum of totals, or None."""
    if isinstance(ground, Number):
        return {None: ground.value}
    if isinstance(ground, Total):
        return {ground: 1.0}
    if isinstance(ground, Sum):
        forms = [linear(term) for term in ground.terms]
        whole: Form = {}
        for form in forms:
            if form is None:
                return None
            whole = _added(whole, form)
        return whole
    if isinstance(ground, Product):
        scale, varying = _constant(ground.factors)
        if not varying:
            return {None: scale}
        if len(varying) > 1:
            return None
        form = linear(varying[0])
        return None if form is None else _scaled(form, scale)
    return None


def _joined(parts: Sequence[Expression], scale: float) -> tuple[Fraction, ...] | None:
    whole: list[Fraction] = []
    for part in parts:
        inner = fractions(part)
        if inner is None:
            return None
        whole.extend(Fraction(scale * x.scale, x.top, x.bottom) for x in inner)
    return tuple(whole)


def _constant(factors: tuple[Expression, ...]) -> tuple[float, list[Expression]]:
    scale = 1.0
    for factor in factors:
        scale *= factor.value if isinstance(factor, Number) else 1.0
    return scale, [f for f in factors if not isinstance(f, Number)]


def _scaled(form: Form, scale: float) -> Form:
    return {total: scale * coefficient for total, coefficient in form.items()}


def _added(a: Form, b: Form) -> Form:
    whole = dict(a)
    for total, coefficient in b.items():
        whole[total] = whole.get(total, 0.0) + coefficient
    return whole
