"""A regression from rows to a model: part, fit the members, judge them, take one, fit it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.json_codec import Record
from setpoint._core.notes import Note
from setpoint.datasets import Parts
from setpoint.expressions import Columns
from setpoint.fit.cross_fitting import FittedMember, run_members
from setpoint.fit.regression.regression_comparison import RegressionComparison, compare
from setpoint.fit.regression.regression_members import RegressionMember, RegressionTrainingData
from setpoint.fit.regression.regression_targets import columns_of, parted
from setpoint.fit.run_record import FittedRun, RunOrigin, as_notes
from setpoint.goals import Goal, Task

HELD = 0.25  #: share of the rows that judge


@dataclass(frozen=True)
class RegressionPlan(Record):
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

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "goal": str(self.goal)}

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


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionRun(FittedRun):
    """What a regression gave.

    Attributes
    ----------
    task : Task
        With the bins and groups that were used.
    plan : RegressionPlan
    comparison : RegressionComparison
    """

    task: Task
    plan: RegressionPlan
    comparison: RegressionComparison

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, (n,), in the units of the targets."""
        rows = self.encoder.encode(X)
        (model,) = self.all_models
        return model.outputs(rows.rows(model.form))


def fit_regression(
    job: RegressionTrainingData,
    members: Sequence[RegressionMember],
    may: Sequence[str],
    refit: bool | None,
    *,
    origin: RunOrigin,
    notes: Sequence[Note | str] = (),
) -> RegressionRun:
    """Fit the members and take one of those in ``may``.

    With ``refit`` None the one taken is fitted again on all rows unless the goal has constraints:
    those were seen to hold for the model that was judged, and for no other.
    """
    split = parted(job.target, job.task, HELD, job.seed)
    parts = Parts(((split.train, split.tune),), np.zeros(0, np.intp), "by target")
    fitted = run_members(job, members, parts)
    if not fitted.ran:
        raise KeyboardInterrupt("stopped before any model was fitted; there is nothing to keep")
    ran = {one.name: one for one in fitted.ran}
    driven = {m.name: m.driven for m in members}
    predictions = [
        (name, driven[name], _columns(job, one, split.tune)) for name, one in ran.items()
    ]
    allowed = [name for name in may if name in ran] or list(ran)
    comparison = compare(job.goal, predictions, allowed, split.shared, job.seed)
    chosen = comparison.chosen
    models = ran[chosen].models
    history = [row for one in fitted.ran for row in one.history]
    again = fitted.finished and not split.shared
    again = again and (not job.goal.constraints if refit is None else refit)
    told: list[Note | str] = [*notes, *fitted.notes]
    if again:
        member = next(m for m in members if m.name == chosen)
        everything = np.arange(len(job.target))
        whole = member.fit(job, everything, everything, 0)
        models = [whole.model]
        history += [{"member": chosen, "fold": 0, **row, "refit": True} for row in whole.history]
        told.append(
            f"{chosen} was fitted again on all rows; the figures on the held rows are of the "
            "model before that"
        )
    if split.shared:
        told.append("there are too few rows to hold any back: the figures are of the rows fitted")
    told += _standing(job.goal, comparison, again)
    told.append(comparison.sentence)
    names = tuple(m.name for m in members)
    return RegressionRun(
        goal=job.goal,
        origin=origin,
        encoder=job.rows.encoder,
        models={chosen: models},
        notes=as_notes(told),
        history=history,
        finished=fitted.finished,
        task=job.task,
        plan=RegressionPlan(job.goal, len(split.train), len(split.tune), names, again),
        comparison=comparison,
    )


def _columns(job: RegressionTrainingData, one: FittedMember, rows: np.ndarray) -> Columns:
    return columns_of(job.task, job.target, one.outputs[rows], job.weight, job.groups, rows)


def _standing(goal: Goal, comparison: RegressionComparison, again: bool) -> list[str]:
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
