"""A constraint: an expression compared with a number or with another expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from setpoint._core.arrays import both
from setpoint._core.errors import KindError

if TYPE_CHECKING:
    from setpoint.expressions.arithmetic import Expression

OPERATORS = (">=", "<=", "==")

#: Rounding slack of a comparison, relative to max(1, |bound|). A rate of counts k/n is correctly
#: rounded and needs none; a difference of two rates (0.55 − 0.50 ≤ 0.05) does.
SLACK = 1e-12


class ConstraintReading(NamedTuple):
    """A constraint read on totals.

    ``value`` is the left side, ``excess`` how far it is on the wrong side (negative: slack left),
    ``defined`` where both sides are, ``holds`` where it is met.
    """

    value: Any
    excess: Any
    defined: Any
    holds: Any


@dataclass(frozen=True)
class Constraint:
    """``left op right``, with op one of ``>=``, ``<=``, ``==``.

    A constraint has no truth value, so that ``0.1 <= fpr <= 0.2``, which Python reads as
    ``(0.1 <= fpr) and (fpr <= 0.2)``, is caught.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.precision >= 0.9
    Constraint('precision >= 0.9')
    """

    left: Expression
    op: str
    right: Expression

    def __bool__(self) -> bool:
        raise KindError(
            f'the constraint "{self}" is neither true nor false until it meets data. For a range '
            "write two constraints, subject_to(m >= a, m <= b); `a <= m <= b` and `and` do not work"
        )

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"

    def __repr__(self) -> str:
        return f"Constraint({str(self)!r})"

    def latex(self) -> str:
        """The constraint as LaTeX, without the dollar signs."""
        sign = {">=": r"\ge", "<=": r"\le", "==": "="}[self.op]
        return f"{self.left.latex()} {sign} {self.right.latex()}"

    @property
    def sides(self) -> tuple[Expression, Expression]:
        """Left and right expression."""
        return self.left, self.right

    @cached_property
    def number(self) -> float | None:
        """The bound, where the right side is a number; None where it is an expression."""
        return None if self.right.needs() else float(self.right.read({}).value)

    def judge(self, env: Mapping[Any, Any]) -> ConstraintReading:
        """Read both sides; where either is undefined (an empty rate) it does not hold.

        excess = right − left for >=, left − right for <=, |left − right| for ==, in units of
        max(1, |right|) where the right side is a number.
        """
        left, right = self.left.read(env), self.right.read(env)
        gap = left.value - right.value
        excess = -gap if self.op == ">=" else gap if self.op == "<=" else abs(gap)
        scale = abs(self.number or 0.0)
        if scale > 1:
            excess = excess / scale
        defined = both(left.defined, right.defined)
        return ConstraintReading(left.value, excess, defined, both(defined, excess <= SLACK))
