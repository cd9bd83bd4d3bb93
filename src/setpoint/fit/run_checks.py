"""Measurements once a rule stands: scored rows, checks of the table, diagnosis, label plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint._core.errors import SetpointError
from setpoint._core.notes import Note, NoteCode
from setpoint.datasets import Parts
from setpoint.decisions import DecisionRule, Diagnosis, Plan, diagnose, plan
from setpoint.fit.training_data import ClassTrainingData, Encoder
from setpoint.goals import Goal
from setpoint.reports import Check, CheckInputs, ScoredRows, make_checks


def scored_rows(
    name: str,
    job: ClassTrainingData,
    rows: np.ndarray,
    scores: np.ndarray,
    fold: np.ndarray | None = None,
) -> ScoredRows:
    """Rows in one role, as a report takes them."""
    groups = {key: values[rows] for key, values in job.groups.items()} or None
    y = job.labels.named(job.target[rows])
    return ScoredRows(name, y, scores, groups, job.weights(rows), fold)


def table_checks(
    job: ClassTrainingData,
    parts: Parts,
    counts: Mapping[str, tuple[int, int | None]],
    out_of_fold: ScoredRows,
    rule: DecisionRule,
    *,
    fitted: bool,
) -> tuple[Check, ...]:
    """The checks of a table and its parts.

    Parameters
    ----------
    parts : Parts
        As they were before rows went back into training.
    counts : mapping
        Rows of each part, and positives.
    fitted : bool
        Whether a model was fitted on the columns; scores from elsewhere hold nothing to check.
    """
    X = job.rows.X
    on_columns = fitted and len(np.shape(X)) == 2
    return make_checks(
        CheckInputs(
            table=X if on_columns else None,
            features=_used(X, job.rows.encoder) if on_columns else None,
            target=job.target,
            train=parts.train,
            certify=parts.certify,
            counts=counts,
            out_of_fold=out_of_fold,
            rule=rule,
        )
    )


def _used(X: Any, encoder: Encoder) -> Any:
    """The columns that the schema uses: what it ignores cannot leak."""
    if encoder.schema is None or not hasattr(X, "iloc"):
        return X
    return X.iloc[:, [j for j, c in enumerate(encoder.schema.columns) if c.kind != "ignored"]]


def prospects(
    goal: Goal, rule: DecisionRule, scored: Sequence[ScoredRows], confidence: float
) -> tuple[Diagnosis | None, Plan | None, tuple[Note, ...]]:
    """Diagnosis and label plan; where there is none of this goal or rule, a note says why.

    Parameters
    ----------
    goal : Goal
        Lowered.
    scored : sequence of ScoredRows
        Certify rows, where there are any, then out-of-fold rows.
    """
    if not goal.constraints or rule.point.no_proof:
        return None, None, ()
    out_of_fold = scored[-1]
    rows = out_of_fold.y, out_of_fold.scores
    options = {
        "group": out_of_fold.group,
        "task": rule.task,
        "kind": rule.kind,
        "confidence": confidence,
    }
    fresh = len(scored[0].y) if len(scored) > 1 else None
    diagnosis = None
    # the models are fitted by now: whatever goes wrong here must not lose them
    try:
        diagnosis = diagnose(goal, *rows, **options, sample_weight=out_of_fold.weight, fresh=fresh)
        label_plan = plan(goal, *rows, **options)
    except (SetpointError, ArithmeticError, ValueError) as error:
        what = "prices of the constraints" if diagnosis is None else "number of labels to prove it"
        note = Note(
            NoteCode.NOT_DIAGNOSED,
            f"the {what} could not be worked out: {error}",
            {"error": type(error).__name__},
        )
        return diagnosis, None, (note,)
    return diagnosis, label_plan, ()
