"""Who is taken in a regression, and what training on the goal bought over plain losses.

Members are judged on rows that none of them was fitted on, by the goal itself: those that hold
every constraint first, then the objective. A member that was trained on the goal is taken over the
best plain one only if a paired bootstrap of those rows tells the two apart, or if it alone holds
the constraints. Errors have no bound, so all of it are figures, and nothing is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setpoint._core.errors import FileError
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.decisions.referee import Bout, Entrant
from setpoint.expressions import Columns
from setpoint.expressions.constraint import SLACK
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows, Point
from setpoint.rules.tradeoff_curve import number_from, number_to


@dataclass(frozen=True)
class Fared:
    """How one member fared on the held rows.

    Attributes
    ----------
    name : str
    driven : bool
        Whether it was trained on the goal.
    value : float or None
        The objective.
    kept : tuple of Kept
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
class RealComparison:
    """Everybody's figures on the held rows, and who was taken.

    Attributes
    ----------
    goal : Goal
    chosen : str
    members : tuple of Fared
        The best first.
    gain : Gain or None
        None where only plain members, or only driven ones, were fitted.
    rows : int
        Held rows.
    sentence : str
    """

    goal: Goal
    chosen: str
    members: tuple[Fared, ...]
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
        """Plain data that :meth:`from_json` reads back."""
        return _numbers({**asdict(self), "goal": str(self.goal)}, number_to)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RealComparison:
        """Read what :meth:`to_json` wrote."""
        try:
            data = _numbers(dict(data), number_from)
            members = tuple(
                Fared(**{**m, "kept": tuple(ConstraintValue(**k) for k in m["kept"])})
                for m in data["members"]
            )
            gain = None if data["gain"] is None else Gain(**data["gain"])
            rest = str(data["chosen"]), members, gain, int(data["rows"]), str(data["sentence"])
            return cls(Goal.parse(data["goal"]), *rest)
        except (KeyError, TypeError, AttributeError) as error:
            raise FileError(f"this comparison is damaged: {error!r}") from error


def compare(
    goal: Goal,
    found: Sequence[tuple[str, bool, Columns]],
    may: Sequence[str],
    shared: bool = False,
    seed: int = 0,
) -> RealComparison:
    """Judge members, choose one, and say what training on the goal bought.

    Parameters
    ----------
    goal : Goal
    found : sequence of (name, driven, columns with predictions)
        On the same rows.
    may : sequence of str
        The members that may be taken.
    shared : bool
        Whether the rows are the ones fitted on, so that they tell nobody apart.
    seed : int
        Of the bootstrap.
    """
    problem = GoalOnRows.ground(goal, found[0][2])
    points = {name: problem.judge(columns) for name, _, columns in found}
    ranks = {name: point.rank(goal.sign) for name, point in points.items()}
    order = sorted(found, key=lambda f: ranks[f[0]], reverse=True)
    fared = tuple(Fared(n, d, points[n].value, kept_at(goal, points[n])) for n, d, _ in order)
    by_name = {f.name: f for f in fared}
    driven = [f.name for f in fared if f.driven]
    plain = [f.name for f in fared if not f.driven]
    gain = None
    if driven and plain and not shared:
        pair = [f for f in found if f[0] in (driven[0], plain[0])]
        bout = Bout.of(
            goal,
            [Entrant(name, columns, "") for name, _, columns in pair],
            np.zeros(pair[0][2].size, np.int64),
            seed,
        )
        d = bout.difference(driven[0], plain[0])
        gain = Gain(driven[0], plain[0], d.value, d.low, d.high, d.separated)
    chosen = next(f.name for f in fared if f.name in may)
    rival = next((name for name in plain if name in may), None)
    if by_name[chosen].driven and rival is not None:
        alone = by_name[chosen].holds and not by_name[rival].holds
        told = gain is not None and gain.separated > 0
        chosen = chosen if alone or told else rival
    size = found[0][2].size
    return RealComparison(goal, chosen, fared, gain, size, _sentence(goal, by_name, chosen, gain))


def _sentence(goal: Goal, fared: Mapping[str, Fared], chosen: str, gain: Gain | None) -> str:
    """What training on the goal bought, in words."""
    if gain is None:
        return f"{chosen} is taken; there was nothing to compare training on the goal with."
    name, ours, theirs = str(goal.objective), fared[gain.driven], fared[gain.plain]
    said = (
        f"{name} {ours.shown()} of {ours.name} against {theirs.shown()} of {theirs.name}, "
        f"difference {gain.value:+.3g} [{gain.low:+.3g}, {gain.high:+.3g}]"
    )
    if goal.constraints:
        said += " in the objective; the verdict also counts what is broken"
    if gain.separated > 0:
        verdict = "Training on the goal paid here"
    elif gain.separated < 0:
        verdict = "A plain loss is better here"
    elif ours.holds and not theirs.holds:
        verdict = "Only training on the goal holds the constraints here"
    else:
        verdict = "Training on the goal cannot be told from a plain loss here"
    return f"{verdict}: {said}. {chosen} is taken."


def kept_at(goal: Goal, point: Point) -> tuple[ConstraintValue, ...]:
    """How each constraint stands at a point."""
    return tuple(
        ConstraintValue(str(c), side, e <= SLACK, max(e, 0.0) if e > SLACK else 0.0)
        for c, side, e in zip(goal.constraints, point.sides, point.excess, strict=True)
    )


def _numbers(x: Any, turn: Any) -> Any:
    if isinstance(x, dict):
        return {k: _numbers(v, turn) for k, v in x.items()}
    return [_numbers(v, turn) for v in x] if isinstance(x, list | tuple) else turn(x)
