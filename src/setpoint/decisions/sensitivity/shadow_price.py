"""The price of a constraint: what one more unit of its bound costs the objective.

With V(c) the best merit within caps c, the price of constraint j is its multiplier, ∂V/∂c_j >= 0.
On rows V is a step function, so the slope is that of a line through V at bounds around the one
asked for, over a window as narrow as the rows can resolve: half of it, and half again, while some
hundred rows change sides within. How sharp it is, is told by weighting the rows at random (as the
Bayesian bootstrap of Rubin, 1981) and reading the slope again; of rules that are searched anew, by
the slope on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from setpoint.decisions.sensitivity.value_function import Along, Caps, Landscape
from setpoint.expressions.constraint import SLACK
from setpoint.goals.constraint_bound import ConstraintBound, in_points
from setpoint.rules.tradeoff_curve import spread_over

# The price of one constraint, as data and in words.


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


DRAWS = 32
CANDIDATES = 4000  #: thresholds read for each of the draws
WINDOW_MOST = 3000  #: rows within a window, above which it is halved
WINDOW_LEAST = 40  #: and below which it is doubled
Z = 1.645  #: a range of 90%


def prices(land: Landscape, caps: Caps, seed: int = 0) -> tuple[Price, ...]:
    """The price of every constraint at these caps, where some candidate is within them."""
    here = land.best(caps)
    if here is None:
        return ()
    priced = []
    for j, asked in enumerate(land.asked):
        if asked.equality:  # it has no side to be relaxed to
            continue
        step = _step(asked, caps[j], here.behind)
        if isinstance(land, Along):
            slope, low, high = _slope_along(land, caps, j, step, seed)
            back = 2 if asked.op == ">=" and step <= 0.01 else 1
        else:
            slope, low, high = _slope_searched(land, caps, j, step)
            back = 1
        steps = (back * step, -_tighter(asked, caps[j], step))
        moves = tuple(_move(land, caps, j, by, here.merit) for by in steps)
        priced.append(
            Price(
                constraint=str(asked.at_cap(caps[j])),
                metric=str(asked.metric),
                op=asked.op,
                objective=str(land.goal.objective),
                bound=asked.sign * caps[j] + 0.0,
                slope=slope,
                low=low,
                high=high,
                unit=_unit(asked, caps[j], step),
                points=(asked.points, in_points(land.goal.objective)),
                maximize=land.goal.sign > 0,
                binds=_binds(land, caps, j, here.merit),
                moves=tuple(move for move in moves if move is not None),
            )
        )
    return tuple(priced)


def _step(asked: ConstraintBound, cap: float, behind: int) -> float:
    """One point, less near an end of the metric's range, more where the rows cannot resolve it."""
    bound = asked.sign * cap
    if not asked.points:
        size = abs(bound) or 1.0
        return 10.0 ** math.floor(math.log10(size)) / 10
    room = min((abs(bound - end) for end in asked.span if abs(bound - end) > SLACK), default=1.0)
    step = min(0.01, 10.0 ** math.floor(math.log10(room) + 1e-9))
    coarse = (s for s in (step, 0.01, 0.02, 0.05) if s >= max(step, 2 / max(behind, 1)))
    return next(coarse, 0.05)


def _tighter(asked: ConstraintBound, cap: float, step: float) -> float:
    """A step inwards that stays off the end of the metric's range."""
    room = _room(asked, cap)
    return step if room > step * (1 + 1e-9) else room / 2


def _room(asked: ConstraintBound, cap: float) -> float:
    """How far the bound can be tightened at all."""
    bound, (low, high) = asked.sign * cap, asked.span
    return high - bound if asked.op == ">=" else bound - low


def _unit(asked: ConstraintBound, cap: float, step: float) -> float:
    """One point, or what is small beside the distance to the nearer end of the range."""
    if not asked.points:
        return step
    ends = (abs(asked.sign * cap - end) for end in asked.span)
    room = min((x for x in ends if x > SLACK), default=1.0)
    return min(0.01, 10.0 ** math.floor(math.log10(room / 5) + 1e-9))


def _with(caps: Caps, j: int, cap: float) -> tuple[float, ...]:
    return (*caps[:j], cap, *caps[j + 1 :])


def _binds(land: Landscape, caps: Caps, j: int, merit: float) -> bool:
    without = land.best(_with(caps, j, math.inf))
    return without is not None and without.merit > merit + SLACK


def _move(land: Landscape, caps: Caps, j: int, by: float, merit: float) -> Move | None:
    """The bound moved, as far as the metric goes."""
    asked = land.asked[j]
    low, high = asked.span
    bound = round(asked.sign * (caps[j] + by), 12)
    if by == 0 or not low <= bound <= high:
        return None
    spot = land.best(_with(caps, j, asked.sign * bound))
    if spot is None:
        return Move(bound, None, None)
    gain = spot.merit - merit
    if by > 0:
        gain = max(gain, 0.0)  # what is kept already can be kept on: a search may have missed it
    return Move(bound, land.goal.sign * spot.merit, gain)


def _slope_searched(
    land: Landscape, caps: Caps, j: int, step: float
) -> tuple[float | None, float | None, float | None]:
    """The slope to either side."""
    here, relaxed, tight = (land.best(_with(caps, j, caps[j] + d)) for d in (0.0, step, -step))
    sides = []
    if here is not None and relaxed is not None:
        sides.append(max(relaxed.merit - here.merit, 0.0) / step)
    if here is not None and tight is not None:
        sides.append(max(here.merit - tight.merit, 0.0) / step)
    if not sides:
        return None, None, None
    return float(np.mean(sides)), min(sides), max(sides)


def _slope_along(
    land: Along, caps: Caps, j: int, step: float, seed: int
) -> tuple[float | None, float | None, float | None]:
    """The slope around the bound, and its range over draws of the rows."""
    width = _width(land, caps, j, step)
    slope = _slope(land, caps, j, width)
    if slope is None:
        return None, None, None
    columns = land.columns
    if columns.size < 2 * WINDOW_LEAST:
        return slope, None, None
    # in the order of the scores: draws do not depend on how the rows are sorted, ties aside
    ranked = columns.take(np.argsort(np.asarray(columns.scores), kind="stable"))
    places = spread_over(land.sweep.size, CANDIDATES)
    unweighted = Along(land.goal, ranked, places)
    random = np.random.default_rng(seed)
    own = 1.0 if ranked.weight is None else np.asarray(ranked.weight)
    drawn = []
    for _ in range(DRAWS):
        weight = random.standard_exponential(columns.size) * own
        resampled = Along(land.goal, replace(ranked, weight=weight), places, like=unweighted)
        resampled_slope = _slope(resampled, caps, j, width)
        if resampled_slope is not None:
            drawn.append(resampled_slope)
    if len(drawn) < DRAWS // 2:
        return slope, None, None
    middle, reach = float(np.mean(drawn)), Z * float(np.std(drawn))  # the mean is the steadier one
    return middle, max(middle - reach, 0.0), middle + reach


def _width(land: Along, caps: Caps, j: int, step: float) -> float:
    """Half the window around the bound."""
    asked = land.asked[j]
    width, room = step, _room(asked, caps[j])
    if SLACK < room < 2 * width:  # keep off the end of the range, where all is cut off
        width = room / 2
    for _ in range(3):
        if _rows_within(land, caps, j, width / 2) < WINDOW_MOST:
            break
        width /= 2
    for _ in range(2):
        if _rows_within(land, caps, j, width) >= WINDOW_LEAST:
            break
        width *= 2
    return width


def _rows_within(land: Along, caps: Caps, j: int, width: float) -> float:
    """Rows that change sides within the window."""
    ends = [land.index(_with(caps, j, caps[j] + d)) for d in (-width, width)]
    flagged = [land.flagged[i] for i in ends if i is not None]
    if len(flagged) < 2:
        here = land.index(caps)
        flagged += [] if here is None else [land.flagged[here]]
    return abs(float(flagged[0] - flagged[-1])) if flagged else 0.0


def _slope(land: Along, caps: Caps, j: int, width: float) -> float | None:
    """The slope of the line through V at bounds within the window."""
    at = caps[j] + width * np.linspace(-1, 1, 9)
    places = [land.index(_with(caps, j, float(cap))) for cap in at]
    reachable = np.array([place is not None for place in places])
    if np.count_nonzero(reachable) < 3:
        return None
    merit = land.merit[[place for place in places if place is not None]]
    away = at[reachable] - at[reachable].mean()
    return max(float(away @ (merit - merit.mean()) / (away @ away)), 0.0)
