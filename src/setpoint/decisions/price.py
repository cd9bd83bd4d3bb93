"""The price of one constraint, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.expressions.constraint import SLACK


@dataclass(frozen=True)
class Move:
    """Another bound of one constraint, and the objective there; None where none keeps it."""

    bound: float
    value: float | None
    gain: float | None


@dataclass(frozen=True)
class Price:
    """What a constraint costs.

    Attributes
    ----------
    constraint, metric, op, objective : str
    bound : float
        Where the price is taken.
    slope : float or None
        The objective lost by tightening the bound by 1 (gained by relaxing it), in the units of
        the metrics; 0 where it costs nothing, None where these rows cannot tell.
    low, high : float or None
        The slope lies between these, as far as these rows can tell.
    unit : float
        What one speaks of: 0.01 is one point.
    points : pair of bool
        Whether the metric and the objective are counted in points.
    maximize : bool
    binds : bool
        Whether the objective would be better without it.
    moves : tuple of Move
        The bound relaxed, and tightened.
    """

    constraint: str
    metric: str
    op: str
    objective: str
    bound: float
    slope: float | None
    low: float | None
    high: float | None
    unit: float
    points: tuple[bool, bool]
    maximize: bool
    binds: bool
    moves: tuple[Move, ...] = ()

    def sentence(self) -> str:
        """One point of precision costs 2.3 points of recall here."""
        if self.slope is None:
            return f"what {self.constraint} costs cannot be told from these rows"
        if not self.binds:
            return f"{self.constraint} costs nothing here"
        if self.slope <= SLACK:
            return f"a little more or less than {self.constraint} changes nothing here"
        cost = self.amount(self.slope * self.unit)
        return f"{self._unit()} {self.metric} {self._verb(cost)} here{self._range()}"

    def sentences(self) -> list[str]:
        """The price, and what other bounds would bring; nothing where it costs nothing."""
        moves = [self._moved(move) for move in self.moves if self.slope]
        return [self.sentence(), *(said for said in moves if said)]

    def amount(self, x: float) -> str:
        """An amount of the objective: in points where it has them."""
        if not self.points[1]:
            return short(x)
        return f"{short(100 * x)} point{'' if short(100 * x) == '1' else 's'}"

    def _unit(self) -> str:
        names = {1.0: "one point of", 0.1: "a tenth of a point of", 0.01: "0.01 points of"}
        named = names.get(round(100 * self.unit, 9)) if self.points[0] else None
        return named or f"{self.unit:g} of"

    def _verb(self, cost: str) -> str:
        if self.op == ">=":
            words = f"costs {cost} of" if self.maximize else f"adds {cost} to"
        else:
            words = f"buys {cost} of" if self.maximize else f"takes {cost} off"
        return f"{words} {self.objective}"

    def _range(self) -> str:
        if self.low is None or self.high is None or self.slope is None:
            return ""
        scale = self.unit * (100 if self.points[1] else 1)
        low, high = short(self.low * scale), short(self.high * scale)
        if low == high:
            return ""
        return f" (at most {high})" if self.low <= SLACK else f" (between {low} and {high})"

    def _moved(self, move: Move) -> str:
        relaxed = (move.bound < self.bound) == (self.op == ">=")
        to = self._to(move.bound, relaxed)
        if move.gain is None or abs(move.gain) <= SLACK:
            return ""
        amount = self.amount(abs(move.gain))
        if relaxed:
            buys = f"buy {amount} of" if self.maximize else f"take {amount} off"
            return f"{to} would {buys} {self.objective}"
        costs = f"cost {amount} of" if self.maximize else f"add {amount} to"
        return f"{to} would {costs} {self.objective}"

    def _to(self, bound: float, relaxed: bool) -> str:
        if self.op == ">=":
            return f"{'relaxing' if relaxed else 'tightening'} {self.metric} to {bound:g}"
        sign = "%" if self.points[0] else ""
        ends = [f"{100 * b if sign else b:g}{sign}" for b in (self.bound, bound)]
        verb = "raising" if relaxed else "lowering"
        return f"{verb} the cap on {self.metric} from {ends[0]} to {ends[1]}"


def short(x: float) -> str:
    """A number in two digits or so: 12, 2.3, 0.41.

    >>> short(12.34), short(2.345), short(1.0), short(0.4123)
    ('12', '2.3', '1', '0.41')
    """
    if abs(x) >= 10:
        return f"{x:,.0f}"
    return f"{x:.1f}".removesuffix(".0") if abs(x) >= 1 else f"{x:.2g}"
