"""The nearest goal that could be proven on fresh rows, and how many rows the goal itself takes.

The goal is provable where some candidate has the power for every constraint; if none has, the
bounds give way to what the candidate that lacks least could prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setpoint.decisions.proof.power import MOST
from setpoint.decisions.quantities.row_states import ROWS
from setpoint.decisions.sensitivity.proof_prospects import Counted, Part
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.goals.constraint_bound import Asked, moved
from setpoint.rules.decision_rule import DecisionRule

_ENDLESS = (
    ("where score >= inf", "nowhere"),
    ("where score < inf", "everywhere"),
    ("score >= inf", "nothing decided positive"),
)


@dataclass(frozen=True)
class Provable:
    """A goal that fresh rows would prove with the power.

    Attributes
    ----------
    goal : Goal
        As asked, where that can be proven; else with bounds that can.
    as_asked : bool
    rows : int
        Fresh rows.
    value : float
        The objective of the rule below, on these rows.
    point : str
        The rule, in words.
    threshold : float or None
        Its threshold, where it has one.
    """

    goal: Goal
    as_asked: bool
    rows: int
    value: float
    point: str
    threshold: float | None


@dataclass(frozen=True)
class Labels:
    """How many fresh labelled rows would prove a goal.

    Attributes
    ----------
    goal : Goal
    rows : int or None
        With the power asked for; None where no number can be named.
    of_them : int or None
        How many of those would have a say.
    who : str
        Who has a say: "positives", "rows decided positive", …
    value : float or None
        The objective that could be had with them, on these rows: at least halfway from the worst
        there is to the best within the bounds.
    if_as_seen : bool
        These rows leave it open whether it holds at all: the number counts on the truth being what
        was seen.
    """

    goal: Goal
    rows: int | None
    of_them: int | None
    who: str
    value: float | None
    if_as_seen: bool = False


@dataclass(frozen=True, eq=False)
class Outlook:
    """Candidate rules, and what fresh rows would prove of each.

    ``parts`` holds, per constraint, what has to keep its bound; ``merit`` is that of each
    candidate, −inf where the objective is empty.
    """

    goal: Goal
    asked: tuple[Asked, ...]
    parts: tuple[tuple[Part, ...], ...]
    merit: np.ndarray
    rules: Sequence[DecisionRule] | np.ndarray
    power: float

    @property
    def each(self) -> float:
        """The power of each constraint that gives all of them together the one asked for."""
        return 1 - (1 - self.power) / len(self.asked)

    def powers(self, caps: Sequence[float], rows: float, as_seen: bool = False) -> np.ndarray:
        """The least power over the constraints, at each candidate."""
        least = np.where(self.merit > -np.inf, 1.0, 0.0)
        for asked, parts, cap in zip(self.asked, self.parts, caps, strict=True):
            for part in parts:
                told = part.as_seen if as_seen else part.power
                least = np.minimum(least, told(asked.sign * cap, rows))
        return least

    def excess(self, rows: float) -> list[np.ndarray]:
        """Per constraint, the tightest cap that is proven at each candidate."""
        return [
            np.maximum.reduce([a.sign * part.reach(rows, self.each) for part in parts])
            for a, parts in zip(self.asked, self.parts, strict=True)
        ]

    def words(self, i: int) -> tuple[str, float | None]:
        """The rule of a candidate in words, and its threshold."""
        if isinstance(self.rules, np.ndarray):
            threshold = float(self.rules[i])
            return score_words(f"score >= {threshold:.6g}"), threshold
        rule = self.rules[i]
        threshold = rule.threshold if rule.kind == "threshold" else None
        return score_words(rule.operating_point()), threshold

    # --- answers -----------------------------------------------------------------------------

    def provable(self, rows: int) -> Provable | None:
        """The nearest goal that so many fresh rows prove; None where nothing can be."""
        caps = tuple(a.cap for a in self.asked)
        able = self.powers(caps, rows) >= self.each
        if able.any():
            return self._provable(caps, able, rows, as_asked=True)
        excess = self.excess(rows)
        trios = zip(excess, caps, self.asked, strict=True)
        lacking = np.maximum.reduce([a.lacking(e, cap) for e, cap, a in trios])
        lacking = np.where(self.merit > -np.inf, lacking, np.inf)
        nearest = int(np.argmin(lacking))
        if not math.isfinite(lacking[nearest]):
            return None
        wide = tuple(
            cap if e[nearest] <= cap else a.sign * a.outward(float(e[nearest]))
            for e, cap, a in zip(excess, caps, self.asked, strict=True)
        )
        able = self.merit > -np.inf
        for e, cap, a in zip(excess, wide, self.asked, strict=True):
            able &= e <= cap + a.slack(cap)
        if not able.any() or all(_empty(a, cap) for a, cap in zip(self.asked, wide, strict=True)):
            return None
        return self._provable(wide, able, rows, as_asked=False)

    def _provable(
        self, caps: tuple[float, ...], able: np.ndarray, rows: int, as_asked: bool
    ) -> Provable:
        best = int(np.argmax(np.where(able, self.merit, -np.inf)))
        goal = self.goal if as_asked else moved(self.goal, self.asked, caps)
        value = self.goal.sign * float(self.merit[best])
        return Provable(goal, as_asked, rows, value, *self.words(best))

    def labels(self, caps: Sequence[float], worth: float, fresh: int) -> Labels:
        """The least number of fresh rows that would prove the goal at these caps.

        With a merit of at least ``worth``: to decide nothing would keep most caps.
        """
        goal = moved(self.goal, self.asked, tuple(caps))
        rows, as_seen = self._least(caps, worth, as_seen=False), False
        if rows is None:
            rows, as_seen = self._least(caps, worth, as_seen=True), True
            if rows is None or rows <= fresh:  # what is open cannot be sure with fewer rows
                return Labels(goal, None, None, ROWS, None)
        able = self._able(caps, rows, worth, as_seen)
        best = int(np.argmax(np.where(able, self.merit, -np.inf)))
        of_them, who = self._say(best, rows)
        value = self.goal.sign * float(self.merit[best])
        return Labels(goal, rows, of_them, who, value, as_seen)

    def _able(self, caps: Sequence[float], rows: float, worth: float, as_seen: bool) -> np.ndarray:
        return (self.powers(caps, rows, as_seen) >= self.each) & (self.merit >= worth - SLACK)

    def _least(self, caps: Sequence[float], worth: float, as_seen: bool) -> int | None:
        """By bisection; the power of few rows goes up and down in small teeth."""

        def enough(rows: float) -> bool:
            return bool(self._able(caps, rows, worth, as_seen).any())

        low, high = 1.0, MOST
        if not enough(high):
            return None
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        rows = _told(high)
        for _ in range(20):
            if enough(rows):
                break
            rows = _told(1.01 * rows + 1)
        return rows

    def _say(self, i: int, rows: int) -> tuple[int | None, str]:
        counted = [p for p in self.parts[0] if isinstance(p, Counted)]
        if len(self.parts) != 1 or len(self.parts[0]) != 1 or not counted:
            return None, ROWS
        part = counted[0]
        return round(rows * float(part.n[i]) / part.size), part.rate.who


def score_words(point: str) -> str:
    """An operating point without infinities."""
    for text, plain in _ENDLESS:
        point = point.replace(text, plain)
    return point


def _told(rows: float) -> int:
    """Two digits, rounded up: a plan is no more exact."""
    unit = 10 ** max(0, math.floor(math.log10(max(rows, 1.0))) - 1)
    return math.ceil(rows / unit) * unit


def _empty(asked: Asked, cap: float) -> bool:
    """Whether a bound asks for nothing."""
    low, high = asked.span
    return asked.sign * cap <= low if asked.op == ">=" else asked.sign * cap >= high
