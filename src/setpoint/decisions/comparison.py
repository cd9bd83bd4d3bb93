"""The record of a comparison: who won, by how much, and when the baseline is the better choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from setpoint._core.json_codec import Record
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.goals import Goal


@dataclass(frozen=True)
class Contender(Record):
    """How one entrant fared.

    Attributes
    ----------
    name : str
    point : str
        Its operating point in words.
    value : float or None
        The objective on out-of-fold rows.
    kept : tuple of ConstraintValue
        The constraints there.
    merit : float
    verdict : str
        PROVEN, NOT PROVEN or REFUTED where its own rule was tested on certify rows.
    """

    name: str
    point: str
    value: float | None
    kept: tuple[ConstraintValue, ...]
    merit: float
    verdict: str = ""

    @property
    def holds(self) -> bool:
        """Whether every constraint holds on the out-of-fold rows."""
        return all(k.holds for k in self.kept)

    def shown(self) -> str:
        """The figures in words."""
        value = "empty" if self.value is None else f"{self.value:.3f}"
        broken = [f"{k.constraint} broken ({_figure(k.value)})" for k in self.kept if not k.holds]
        return ", ".join([value, *broken])


@dataclass(frozen=True)
class Difference(Record):
    """The chosen one minus another, with paired 95% intervals: the objective, and the merit."""

    name: str
    value: float
    low: float
    high: float
    merit: float
    merit_low: float
    merit_high: float

    @property
    def separated(self) -> int:
        """1 where the chosen one is better beyond chance, −1 where it is worse, else 0."""
        return int(self.merit_low > 0) - int(self.merit_high < 0)


@dataclass(frozen=True)
class Comparison(Record):
    """Who won, by how much.

    Attributes
    ----------
    goal : Goal
    chosen : str
        The name of the one that was taken.
    contenders : tuple of Contender
        The chosen one first.
    differences : tuple of Difference
        One for each of the others.
    rows, folds : int
    sentence : str
    """

    goal: Goal
    chosen: str
    contenders: tuple[Contender, ...]
    differences: tuple[Difference, ...]
    rows: int
    folds: int
    sentence: str

    def __str__(self) -> str:
        name = str(self.goal.objective)
        lines = [f"{self.goal}, on {self.rows:,} out-of-fold rows:"]
        apart = {d.name: d for d in self.differences}
        for c in self.contenders:
            words = f"  {c.name}: {name} {c.shown()}"
            if c.name in apart:
                d = apart[c.name]
                words += f" (difference {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}])"
            lines.append(words + (f"; {c.verdict} on the certify rows" if c.verdict else ""))
        if any(c.verdict for c in self.contenders):
            lines.append("  (each verdict is of one rule alone: no ground to choose among them by)")
        return "\n".join([*lines, self.sentence])

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; the goal stands as text."""
        return {**super().to_json(), "goal": str(self.goal)}


def verdict_of(goal: Goal, found: Sequence[Contender], gaps: Sequence[Difference]) -> str:
    """Who won, by how much, and when the baseline is the better choice."""
    ours, name = found[0], str(goal.objective)
    if not gaps:
        return f"{ours.name}: {name} {ours.shown()}; nothing to compare with."
    rival = max(found[1:], key=lambda c: c.merit)
    gap = next(d for d in gaps if d.name == rival.name)
    said = f"{name} {ours.shown()} against {rival.shown()} of {rival.name}"
    said += f", difference {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
    if goal.constraints:
        least, most = gap.merit_low, gap.merit_high
        said += (
            f"; with what breaking a constraint costs {gap.merit:+.3f} [{least:+.3f}, {most:+.3f}]"
        )
    if gap.separated > 0:
        return f"{ours.name} is better here: {said}."
    if gap.separated < 0:
        also = "Take it." if rival.holds else "It breaks a constraint as well."
        return f"{rival.name} is better here: {said}. {also}"
    if ours.holds and not rival.holds:
        said += f". {rival.name} breaks its constraint on rows it was not tuned on"
    if rival.holds and not ours.holds:
        said += f". {ours.name} breaks its constraint here, {rival.name} does not"
    return f"Cannot be told apart on this data: {said}. The simpler one will do if you prefer it."


def _figure(x: float | None) -> str:
    return "empty" if x is None else f"{x:.3f}"
