"""Choice among the members of a regression, and what training on the goal gains over plain losses.

Members are judged on rows that none of them was fitted on, by the goal itself: those that hold
every constraint first, then the objective. A member that was trained on the goal is taken over the
best plain one only if a paired bootstrap of those rows tells the two apart, or if it alone holds
the constraints. Errors have no bound, so all of it are figures, and nothing is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.json_codec import Record
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.decisions.referee import Bout, Entrant
from setpoint.expressions import Columns
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows, Point


@dataclass(frozen=True)
class MemberFigures:
    """How one member fared on the held rows.

    Attributes
    ----------
    name : str
    driven : bool
        Whether it was trained on the goal.
    value : float or None
        The objective.
    kept : tuple of ConstraintValue
        The constraints.
    """

    name: str
    driven: bool
    value: float | None
    kept: tuple[ConstraintValue, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every constraint holds."""
        return all(k.holds for k in self.kept)

    def shown(self) -> str:
        """The figures in words."""
        parts = ["empty" if self.value is None else f"{self.value:.4g}"]
        for k in self.kept:
            figure = "empty" if k.value is None else f"{k.value:.4g}"
            parts.append(f"{k.constraint} {'holds' if k.holds else 'BROKEN'} ({figure})")
        return ", ".join(parts)


@dataclass(frozen=True)
class Gain:
    """The best member trained on the goal minus the best plain one, with a paired 95 % interval.

    ``separated``: 1 where the rows say it is better, constraints included, −1 worse, 0 neither.
    """

    driven: str
    plain: str
    value: float
    low: float
    high: float
    separated: int


@dataclass(frozen=True)
class RegressionComparison(Record):
    """Everybody's figures on the held rows, and who was taken.

    Attributes
    ----------
    goal : Goal
    chosen : str
    members : tuple of MemberFigures
        The best first.
    gain : Gain or None
        None where only plain members, or only driven ones, were fitted, and where the rows are
        those fitted on.
    rows : int
        Held rows, or all of them where they were too few to hold any out.
    sentence : str
    """

    goal: Goal
    chosen: str
    members: tuple[MemberFigures, ...]
    gain: Gain | None
    rows: int
    sentence: str

    def __str__(self) -> str:
        name, lines = str(self.goal.objective), [f"{self.goal}, on {self.rows:,} held rows:"]
        for m in self.members:
            taken = "  ← taken" if m.name == self.chosen else ""
            lines.append(f"  {m.name}: {name} {m.shown()}{taken}")
        return "\n".join([*lines, self.sentence])

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "goal": str(self.goal)}


def compare(
    goal: Goal,
    predictions: Sequence[tuple[str, bool, Columns]],
    may: Sequence[str],
    shared: bool = False,
    seed: int = 0,
) -> RegressionComparison:
    """Judge members, choose one, and say what training on the goal bought.

    Parameters
    ----------
    goal : Goal
    predictions : sequence of (name, driven, columns with predictions)
        On the same rows.
    may : sequence of str
        The members that may be taken.
    shared : bool
        Whether the rows are the ones fitted on, so that they tell nobody apart.
    seed : int
        Of the bootstrap.
    """
    problem = GoalOnRows.ground(goal, predictions[0][2])
    points = {name: problem.judge(columns) for name, _, columns in predictions}
    ranks = {name: point.rank(goal.sign) for name, point in points.items()}
    order = sorted(predictions, key=lambda p: ranks[p[0]], reverse=True)
    members = tuple(
        MemberFigures(name, driven, points[name].value, constraint_values(goal, points[name]))
        for name, driven, _ in order
    )
    by_name = {m.name: m for m in members}
    driven = [m.name for m in members if m.driven]
    plain = [m.name for m in members if not m.driven]
    gain = None
    if driven and plain and not shared:
        gain = _gain(goal, driven[0], plain[0], predictions, seed)
    chosen = next(m.name for m in members if m.name in may)
    rival = next((name for name in plain if name in may), None)
    if by_name[chosen].driven and rival is not None:
        alone = by_name[chosen].holds and not by_name[rival].holds
        separated = gain is not None and gain.separated > 0
        chosen = chosen if alone or separated else rival
    return RegressionComparison(
        goal=goal,
        chosen=chosen,
        members=members,
        gain=gain,
        rows=predictions[0][2].size,
        sentence=_sentence(goal, by_name, chosen, gain, shared),
    )


def _gain(
    goal: Goal,
    driven: str,
    plain: str,
    predictions: Sequence[tuple[str, bool, Columns]],
    seed: int,
) -> Gain:
    pair = [
        Entrant(name, columns, "") for name, _, columns in predictions if name in (driven, plain)
    ]
    one_fold = np.zeros(pair[0].columns.size, np.int64)
    gap = Bout.of(goal, pair, one_fold, seed).difference(driven, plain)
    return Gain(driven, plain, gap.value, gap.low, gap.high, gap.separated)


def _sentence(
    goal: Goal,
    members: Mapping[str, MemberFigures],
    chosen: str,
    gain: Gain | None,
    shared: bool,
) -> str:
    """What training on the goal gained, in words."""
    compared = len({member.driven for member in members.values()}) == 2
    if gain is None and compared and shared:
        return (
            f"{chosen} is taken; the rows are those the models were fitted on, so they cannot show "
            "whether training on the goal pays."
        )
    if gain is None:
        return f"{chosen} is taken; there was nothing to compare training on the goal with."
    name = str(goal.objective)
    ours = members[gain.driven]
    theirs = members[gain.plain]
    figures = (
        f"{name} {ours.shown()} of {ours.name} against {theirs.shown()} of {theirs.name}, "
        f"difference {gain.value:+.3g} [{gain.low:+.3g}, {gain.high:+.3g}]"
    )
    if goal.constraints:
        figures += " in the objective; the verdict also counts what is broken"
    if gain.separated > 0:
        verdict = "Training on the goal paid here"
    elif gain.separated < 0:
        verdict = "A plain loss is better here"
    elif ours.holds and not theirs.holds:
        verdict = "Only training on the goal holds the constraints here"
    else:
        verdict = "Training on the goal cannot be told from a plain loss here"
    return f"{verdict}: {figures}. {chosen} is taken."


def constraint_values(goal: Goal, point: Point) -> tuple[ConstraintValue, ...]:
    """How each constraint stands at a point."""
    return tuple(
        ConstraintValue(str(c), side, e <= SLACK, max(e, 0.0) if e > SLACK else 0.0)
        for c, side, e in zip(goal.constraints, point.sides, point.excess, strict=True)
    )
