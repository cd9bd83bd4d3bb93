"""What a rule already knows of the columns it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.words import listing
from setpoint.cli.display.terminal import count
from setpoint.cli.inputs.scored_table import Roles, Rows, columns_of, read_rows
from setpoint.cli.inputs.shared_options import labels_of, scores_of
from setpoint.decisions import OperatingPoint
from setpoint.expressions import Label
from setpoint.goals import Goal, Task


def roles_of(
    point: OperatingPoint,
    goal: Goal,
    label: Sequence[str] | None,
    score: Sequence[str] | None,
    scores: str | None,
    positive: str | None,
    weight: str | None = None,
    group: Sequence[str] | None = None,
    query: str | None = None,
) -> Roles:
    """Which column is what: as the options say it, and where they do not, as the rule has it."""
    task, known = point.task, tuple(map(str, point.task.classes or ()))
    sought = [*columns_of(goal), *([point.by] if point.kind == "per-group" else [])]
    return Roles(
        labels=labels_of(label, task.kind) or (known if task.kind == "multilabel" else ()),
        scores=score_columns(task, scores_of(score, scores)),
        task=task.kind,
        score_kind=task.score,
        positive=positive_of(task, positive),
        classes=known if task.kind == "multiclass" else None,
        weight=weight,
        groups=tuple(group or ()),
        query=query,
        sought=tuple(dict.fromkeys(name for name in sought if name is not None)),
    )


def read_for(task: Task, file: Path, roles: Roles) -> Rows:
    """Rows whose labels are spelled as the task has its classes."""
    return spelled_for(task, read_rows(file, roles))


def spelled_for(task: Task, rows: Rows) -> Rows:
    """The rows, their labels spelled as the task has its classes."""
    if task.kind != "multiclass":
        return rows
    return replace(rows, y=in_classes_of(task, rows.y), task=task)


def labels_for(task: Task, rows: Rows) -> np.ndarray:
    """The labels as the task wants them: with its positive label where it states one."""
    positive = task.positive
    if task.kind != "binary" or positive is None:
        return rows.y
    if isinstance(positive, str):
        return np.where(rows.y == 1, positive, "")
    return np.where(rows.y == 1, float(positive), float(positive) + 1)


def score_columns(task: Task, given: Sequence[str]) -> tuple[str, ...]:
    """The columns of scores; of a multiclass rule, without others, those named as its classes."""
    kind, classes = task.kind, tuple(map(str, task.classes or ()))
    if kind not in ("multiclass", "multilabel"):
        if len(given) > 1:
            raise KindError(f"this rule is {kind} and takes one --score; {len(given)} are given.")
        return tuple(given)
    what = "class" if kind == "multiclass" else "label"
    if not given and kind == "multiclass":
        return classes
    if len(given) != len(classes):
        raise KindError(
            f"this rule needs one score per {what} ({listing(classes)}): say --scores with "
            f"{count(len(classes), 'column')}, in that order; given: "
            f"{listing(given) or 'none'}."
        )
    if set(given) == set(classes) and tuple(given) != classes:
        raise KindError(
            f"the scores are named in another order than the rule has them; say --scores "
            f"{','.join(classes)}."
        )
    return tuple(given)


def positive_of(task: Task, given: str | None) -> Any:
    """The positive label: as the rule has it, or as it is given."""
    known = task.positive
    if known is None:
        return given
    if given is not None and given != str(known):
        raise KindError(f"--positive {given} contradicts the rule, which has {known!r} as positive")
    return known


def in_classes_of(task: Task, values: np.ndarray) -> np.ndarray:
    """Labels as the task has its classes: the number 1 for a text "1", or the other way."""
    spelled: dict[str, Label] = {str(c): c for c in task.classes or ()}
    return np.array([spelled.get(str(v), v) for v in values.tolist()])
