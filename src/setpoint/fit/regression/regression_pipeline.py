"""A regression from rows to a model: part, fit the members, judge them, take one, fit it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.errors import FileError
from setpoint.fit.regression.regression_comparison import RealComparison, compare
from setpoint.fit.regression.regression_members import RealJob, RealMade, RealMember
from setpoint.fit.regression.regression_targets import columns_of, parted
from setpoint.fit.training_data import FitProgress
from setpoint.goals import Goal

HELD = 0.25  #: share of the rows that judge


@dataclass(frozen=True)
class RealPlan:
    """What a regression did.

    Attributes
    ----------
    goal : Goal
    train, held : int
        Rows that members were fitted on, and rows that judged them.
    members : tuple of str
    refitted : bool
        Whether the one taken was fitted again on all rows.
    """

    goal: Goal
    train: int
    held: int
    members: tuple[str, ...]
    refitted: bool

    def __str__(self) -> str:
        end = "fitted again on all rows" if self.refitted else "kept as it was judged"
        return "\n".join(
            [
                f"goal     {self.goal}",
                f"rows     train {self.train:,} · held {self.held:,}",
                f"models   {' · '.join(self.members)}",
                f"choice   by the goal on the held rows; {end}",
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        rest = {"train": self.train, "held": self.held, "members": list(self.members)}
        return {"goal": str(self.goal), **rest, "refitted": self.refitted}

    @classmethod
    def from_json(cls, data: Any) -> RealPlan:
        """Read what :meth:`to_json` wrote."""
        try:
            rest = int(data["train"]), int(data["held"]), tuple(map(str, data["members"]))
            return cls(Goal.parse(data["goal"]), *rest, bool(data["refitted"]))
        except (KeyError, TypeError) as error:
            raise FileError(f"this plan is damaged: {error!r}") from error


@dataclass(frozen=True, eq=False)
class RealDone:
    """What a regression gave."""

    made: RealMade
    comparison: RealComparison
    plan: RealPlan
    history: list[dict[str, Any]]
    notes: tuple[str, ...]
    finished: bool


def fit_real(
    job: RealJob, members: Sequence[RealMember], may: Sequence[str], refit: bool | None, tell: Any
) -> RealDone:
    """Fit the members and take one of those in ``may``.

    With ``refit`` None the one taken is fitted again on all rows unless the goal has constraints:
    those were seen to hold for the model that was judged, and for no other.
    """
    parts = parted(job.target, job.task, HELD, job.seed)
    made: dict[str, RealMade] = {}
    notes: list[str] = []
    finished = True
    for k, member in enumerate(members):
        tell(FitProgress("fit", k, len(members), member.name, 1, 1))
        made[member.name] = member.fit(job, parts.train)
        finished = made[member.name].finished
        if not finished:
            notes.append(f"stopped by hand while fitting {member.name}")
            break
    found = [
        (m.name, m.driven, _predicted(job, made[m.name], parts.tune))
        for m in members
        if m.name in made
    ]
    allowed = [name for name in may if name in made] or list(made)
    comparison = compare(job.goal, found, allowed, parts.shared, job.seed)
    chosen = next(m for m in members if m.name == comparison.chosen)
    again = finished and not parts.shared
    again = again and (not job.goal.constraints if refit is None else refit)
    kept, history = made[chosen.name], [row for m in made.values() for row in m.history]
    if again:
        kept = chosen.fit(job, np.arange(len(job.target)))
        history += [{**row, "refit": True} for row in kept.history]
        notes.append(
            f"{chosen.name} was fitted again on all rows; the figures on the held rows are of the "
            "model before that"
        )
    if parts.shared:
        notes.append("there are too few rows to hold any back: the figures are of the rows fitted")
    notes += _standing(job.goal, comparison, again)
    names = tuple(m.name for m in members)
    plan = RealPlan(job.goal, len(parts.train), len(parts.tune), names, again)
    return RealDone(kept, comparison, plan, history, tuple(notes), finished)


def _predicted(job: RealJob, made: RealMade, rows: np.ndarray) -> Any:
    predicted = made.predict(job.rows, rows)
    return columns_of(job.task, job.target, predicted, job.weight, job.groups, rows)


def _standing(goal: Goal, comparison: RealComparison, again: bool) -> list[str]:
    """What can and what cannot be said of the constraints."""
    if not goal.constraints:
        return []
    fared = next(m for m in comparison.members if m.name == comparison.chosen)
    held = "hold" if fared.holds else "do NOT all hold"
    before = " before it was fitted again" if again else ""
    figures = f"{goal.objective} {fared.shown()}"
    return [
        f"the constraints {held} on {comparison.rows:,} held rows{before}: {figures}. That "
        "is a figure, not a proof, and the rows also chose the model: an error has no upper bound, "
        "so no number of rows proves a bound on its mean"
    ]
